-- Instants are integer milliseconds UTC. Ids of delivery, event and quarantine are given out by the one writer, rising.
--
-- Where rows are written one by one, a CHECK spells out its words with OR: for an IN of more than two SQLite builds a
-- temporary table, for every row anew, which took a quarter of the writer's time.

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE source (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  provider TEXT NOT NULL
) STRICT;

-- One verified POST (or polled page) of which at least one piece was kept. `body` is null once retention took it;
-- `is_text` says that it is UTF-8 without NUL, so that the views may show it as text.
CREATE TABLE delivery (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES source (id),
  received_at INTEGER NOT NULL,
  signed_at INTEGER,
  via TEXT NOT NULL CHECK (via = 'webhook' OR via = 'poll' OR via = 'simulate'),
  verified_by TEXT NOT NULL
    CHECK (verified_by = 'current' OR verified_by = 'previous' OR verified_by = 'none'),
  remote TEXT NOT NULL,
  headers TEXT NOT NULL,
  is_text INTEGER NOT NULL CHECK (is_text IN (0, 1)),
  body BLOB
) STRICT;

-- The content of an event is its own `content`, else the slice of its delivery's body, else that whole body.
-- `place` is where its first application stands in the one order of applied events and decisions. What a person had
-- forgotten has given up its key, and the meanings that it claimed.
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  delivery_id INTEGER NOT NULL REFERENCES delivery (id) DEFERRABLE INITIALLY DEFERRED,
  raw_kind TEXT NOT NULL,
  slice_start INTEGER,
  slice_length INTEGER,
  synthesised INTEGER NOT NULL CHECK (synthesised IN (0, 1)),
  state TEXT NOT NULL DEFAULT 'pending'
    CHECK (state = 'pending' OR state = 'applied' OR state = 'quarantined' OR state = 'failed'),
  kind TEXT,
  recipient TEXT,
  message_id TEXT,
  occurred_at INTEGER,
  duplicates INTEGER NOT NULL DEFAULT 0,
  last_duplicate_at INTEGER,
  content BLOB,
  place INTEGER,
  forgotten INTEGER NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1)),
  CHECK ((slice_start IS NULL) = (slice_length IS NULL)),
  CHECK (state <> 'applied' OR kind IS NOT NULL)
) STRICT;

-- The one place that decides what is new.
CREATE UNIQUE INDEX event_identity ON event (source_id, key);
CREATE INDEX event_delivery ON event (delivery_id);
CREATE UNIQUE INDEX event_place ON event (place) WHERE place IS NOT NULL;

-- Senders that sign a token instead of the content: what each token vouched for first.
CREATE TABLE token (
  source_id INTEGER NOT NULL REFERENCES source (id),
  token TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (source_id, token)
) STRICT, WITHOUT ROWID;

-- `address` is the folded recipient; `candidates` a JSON list of whom an ambiguous one may mean. `claims` is 1 for the
-- first of several that tell one fact, and it alone counts; 0 for the others; null where no other could tell the same.
CREATE TABLE notification (
  id INTEGER PRIMARY KEY,
  event_id INTEGER NOT NULL REFERENCES event (id),
  source_id INTEGER NOT NULL,
  message_id TEXT,
  recipient TEXT,
  address TEXT,
  candidates TEXT,
  kind TEXT NOT NULL,
  bounce_class TEXT CHECK (bounce_class = 'hard' OR bounce_class = 'soft' OR bounce_class = 'block'
    OR bounce_class = 'undetermined'),
  reject_reason TEXT,
  occurred_at INTEGER NOT NULL,
  time_source TEXT NOT NULL,
  ambiguous INTEGER NOT NULL CHECK (ambiguous IN (0, 1)),
  suppress INTEGER NOT NULL CHECK (suppress IN (0, 1)),
  scope TEXT NOT NULL,
  meaning TEXT,
  claims INTEGER CHECK (claims IN (0, 1)),
  effect TEXT NOT NULL
) STRICT;

CREATE INDEX notification_event ON notification (event_id);
CREATE INDEX notification_address ON notification (address) WHERE address IS NOT NULL;
-- One fact that a sender reports under two keys counts once.
CREATE UNIQUE INDEX notification_meaning ON notification (source_id, meaning) WHERE claims = 1;

-- The outbox. A running job belongs to (instance, token); finishing it needs both.
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  event_id INTEGER NOT NULL REFERENCES event (id),
  target TEXT NOT NULL,
  replay INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'available'
    CHECK (state = 'available' OR state = 'running' OR state = 'completed' OR state = 'exhausted'
      OR state = 'cancelled' OR state = 'held'),
  run_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  instance INTEGER,
  token INTEGER,
  last_outcome TEXT,
  finished_at INTEGER,
  UNIQUE (event_id, target, replay),
  CHECK ((state = 'running') = (token IS NOT NULL)),
  CHECK ((token IS NULL) = (instance IS NULL)),
  CHECK ((state = 'completed' OR state = 'exhausted' OR state = 'cancelled') = (finished_at IS NOT NULL))
) STRICT;

CREATE INDEX job_due ON job (target, run_at) WHERE state = 'available';
CREATE INDEX job_suspect ON job (target, run_at) WHERE state = 'available' AND crashes > 0;
CREATE INDEX job_running ON job (instance) WHERE state = 'running';
CREATE INDEX job_held ON job (target) WHERE state = 'held';

CREATE TABLE attempt (
  job_id INTEGER NOT NULL REFERENCES job (id),
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  took_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  status INTEGER,
  excerpt TEXT NOT NULL DEFAULT '' CHECK (length(excerpt) <= 200),
  PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

-- Authentic, but not applied: conflicts, unreadable pieces, events whose work kept failing.
CREATE TABLE quarantine_entry (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES source (id),
  key TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  reason TEXT NOT NULL,
  delivery_id INTEGER NOT NULL REFERENCES delivery (id) DEFERRABLE INITIALLY DEFERRED,
  event_id INTEGER REFERENCES event (id),
  raw_kind TEXT NOT NULL DEFAULT '',
  slice_start INTEGER,
  slice_length INTEGER,
  content BLOB,
  received_at INTEGER NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 0,
  last_repeat_at INTEGER,
  resolved_at INTEGER,
  resolution TEXT,
  CHECK ((resolved_at IS NULL) = (resolution IS NULL))
) STRICT;

CREATE UNIQUE INDEX quarantine_identity ON quarantine_entry (source_id, key, digest, reason);
CREATE INDEX quarantine_delivery ON quarantine_entry (delivery_id);
CREATE INDEX quarantine_open ON quarantine_entry (id) WHERE resolved_at IS NULL;

CREATE TABLE refusal (
  source_id INTEGER NOT NULL REFERENCES source (id),
  reason TEXT NOT NULL,
  minute INTEGER NOT NULL,
  count INTEGER NOT NULL,
  last_skew_s REAL,
  last_remote TEXT NOT NULL,
  PRIMARY KEY (source_id, reason, minute)
) STRICT, WITHOUT ROWID;

-- Secrets, sealed. `owner` is `source.NAME` or `destination.NAME`.
CREATE TABLE secret (
  owner TEXT NOT NULL,
  slot TEXT NOT NULL CHECK (slot IN ('current', 'previous')),
  sealed BLOB NOT NULL,
  set_at INTEGER NOT NULL,
  PRIMARY KEY (owner, slot)
) STRICT, WITHOUT ROWID;

-- How often each slot proved a delivery, so that one can see when the previous secret is safe to drop.
CREATE TABLE secret_use (
  source_id INTEGER NOT NULL REFERENCES source (id),
  slot TEXT NOT NULL CHECK (slot IN ('current', 'previous', 'none')),
  accepted INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  PRIMARY KEY (source_id, slot)
) STRICT, WITHOUT ROWID;

-- Status of one (source, message, recipient): the highest rank that was ever reported. `recipient` is the folded
-- address, `shown` the spelling that came first; a message without an id has the empty one.
CREATE TABLE status (
  source_id INTEGER NOT NULL REFERENCES source (id),
  message_id TEXT NOT NULL,
  recipient TEXT NOT NULL,
  shown TEXT NOT NULL,
  rank INTEGER NOT NULL,
  kind TEXT NOT NULL,
  bounce_class TEXT,
  status_at INTEGER NOT NULL,
  event_id INTEGER NOT NULL,
  PRIMARY KEY (source_id, message_id, recipient)
) STRICT, WITHOUT ROWID;

CREATE INDEX status_recipient ON status (recipient, rank, status_at);
CREATE INDEX status_event ON status (event_id);

-- What persons decided about the ledger: who, when and why. `id` is its place in the one order of applied events and
-- decisions.
CREATE TABLE decision (
  id INTEGER PRIMARY KEY,
  verb TEXT NOT NULL CHECK (verb IN ('add', 'import', 'lift', 'forget', 'replay', 'rebuild')),
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  address TEXT,
  scope TEXT,
  event_id INTEGER
) STRICT;

-- A row is never deleted: a person's lift closes it, and what happens after the lift opens another.
CREATE TABLE suppression (
  id INTEGER PRIMARY KEY,
  address TEXT NOT NULL,
  scope TEXT NOT NULL,
  shown TEXT NOT NULL,
  reason TEXT NOT NULL,
  since INTEGER NOT NULL,
  event_id INTEGER,
  source_id INTEGER REFERENCES source (id),
  lift_id INTEGER REFERENCES decision (id)
) STRICT;

CREATE UNIQUE INDEX suppression_active ON suppression (address, scope) WHERE lift_id IS NULL;
CREATE INDEX suppression_address ON suppression (address);

-- Every cause that was ever heard of, the first one included. What a person asked for has the decision behind it.
CREATE TABLE suppression_cause (
  suppression_id INTEGER NOT NULL REFERENCES suppression (id),
  reason TEXT NOT NULL,
  since INTEGER NOT NULL,
  event_id INTEGER,
  source_id INTEGER REFERENCES source (id),
  decision_id INTEGER REFERENCES decision (id),
  CHECK ((event_id IS NULL) = (decision_id IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX suppression_cause_once ON suppression_cause (suppression_id, reason, coalesce(event_id, 0));
CREATE INDEX suppression_cause_decision ON suppression_cause (decision_id) WHERE decision_id IS NOT NULL;

-- What is needed to read a message's current state at its sender.
CREATE TABLE message_place (
  source_id INTEGER NOT NULL REFERENCES source (id),
  message_id TEXT NOT NULL,
  inbox_id TEXT NOT NULL,
  thread_id TEXT,
  PRIMARY KEY (source_id, message_id)
) STRICT, WITHOUT ROWID;

-- A probe tells a sender "our fault" on purpose and keeps what it does then. One at a time for a source.
CREATE TABLE probe (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES source (id),
  started_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  failures INTEGER NOT NULL CHECK (failures > 0),
  ended_at INTEGER,
  outcome TEXT,
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE UNIQUE INDEX probe_active ON probe (source_id) WHERE ended_at IS NULL;

CREATE TABLE probe_request (
  probe_id INTEGER NOT NULL REFERENCES probe (id),
  number INTEGER NOT NULL,
  key TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  signed_at INTEGER,
  answered TEXT NOT NULL CHECK (answered IN ('busy', 'ok')),
  headers TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (probe_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE cursor (
  source_id INTEGER PRIMARY KEY REFERENCES source (id),
  cursor TEXT NOT NULL,
  saved_at INTEGER NOT NULL
) STRICT;

CREATE TABLE gap (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES source (id),
  from_sequence INTEGER,
  to_sequence INTEGER,
  reason TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  closed_at INTEGER
) STRICT;

-- The documented views. Times are ISO-8601 UTC; content that is not UTF-8 text is shown as `hex:…`.

CREATE VIEW events AS
SELECT
  e.id,
  s.name AS source,
  s.provider,
  e.key,
  e.kind,
  e.raw_kind,
  e.recipient,
  e.message_id,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred_at / 1000.0, 'unixepoch') AS occurred_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', d.received_at / 1000.0, 'unixepoch') AS received_at,
  d.via,
  d.verified_by,
  e.state,
  e.duplicates,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.last_duplicate_at / 1000.0, 'unixepoch') AS last_duplicate_at,
  CASE d.is_text
    WHEN 1 THEN CAST(coalesce(e.content, substr(d.body, e.slice_start + 1, e.slice_length), d.body) AS TEXT)
    ELSE 'hex:' || hex(coalesce(e.content, substr(d.body, e.slice_start + 1, e.slice_length), d.body))
  END AS content,
  e.synthesised
FROM event AS e
JOIN delivery AS d ON d.id = e.delivery_id
JOIN source AS s ON s.id = e.source_id;

CREATE VIEW notifications AS
SELECT
  n.event_id,
  s.name AS source,
  n.message_id,
  n.recipient,
  n.kind,
  n.bounce_class,
  n.reject_reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', n.occurred_at / 1000.0, 'unixepoch') AS occurred_at,
  n.ambiguous,
  n.effect
FROM notification AS n
JOIN source AS s ON s.id = n.source_id;

CREATE VIEW recipients AS
SELECT
  s.name AS source,
  nullif(t.message_id, '') AS message_id,
  t.shown AS recipient,
  t.kind AS status,
  t.bounce_class,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.status_at / 1000.0, 'unixepoch') AS status_at,
  t.event_id
FROM status AS t
JOIN source AS s ON s.id = t.source_id;

CREATE VIEW suppressions AS
SELECT
  p.shown AS address,
  p.scope,
  p.reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', p.since / 1000.0, 'unixepoch') AS since,
  p.event_id,
  s.name AS source,
  strftime('%Y-%m-%dT%H:%M:%fZ', d.at / 1000.0, 'unixepoch') AS lifted_at,
  d.who AS lifted_by,
  d.reason AS lift_reason
FROM suppression AS p
LEFT JOIN source AS s ON s.id = p.source_id
LEFT JOIN decision AS d ON d.id = p.lift_id;

CREATE VIEW quarantine AS
SELECT
  q.id,
  s.name AS source,
  q.key,
  q.reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', q.received_at / 1000.0, 'unixepoch') AS received_at,
  CASE d.is_text
    WHEN 1 THEN CAST(coalesce(q.content, substr(d.body, q.slice_start + 1, q.slice_length), d.body) AS TEXT)
    ELSE 'hex:' || hex(coalesce(q.content, substr(d.body, q.slice_start + 1, q.slice_length), d.body))
  END AS content,
  strftime('%Y-%m-%dT%H:%M:%fZ', q.resolved_at / 1000.0, 'unixepoch') AS resolved_at,
  q.resolution
FROM quarantine_entry AS q
JOIN delivery AS d ON d.id = q.delivery_id
JOIN source AS s ON s.id = q.source_id;

CREATE VIEW outbox AS
SELECT
  id,
  event_id,
  target,
  replay,
  state,
  attempts,
  strftime('%Y-%m-%dT%H:%M:%fZ', run_at / 1000.0, 'unixepoch') AS run_at,
  last_outcome
FROM job;

CREATE VIEW attempts AS
SELECT
  job_id,
  number,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
  took_ms,
  outcome,
  status,
  excerpt
FROM attempt;

CREATE VIEW refusals AS
SELECT
  s.name AS source,
  r.reason,
  strftime('%Y-%m-%dT%H:%MZ', r.minute * 60, 'unixepoch') AS minute,
  r.count,
  r.last_skew_s,
  r.last_remote
FROM refusal AS r
JOIN source AS s ON s.id = r.source_id;

CREATE VIEW cursors AS
SELECT
  s.name AS source,
  c.cursor,
  strftime('%Y-%m-%dT%H:%M:%fZ', c.saved_at / 1000.0, 'unixepoch') AS saved_at
FROM cursor AS c
JOIN source AS s ON s.id = c.source_id;

CREATE VIEW gaps AS
SELECT
  s.name AS source,
  g.from_sequence,
  g.to_sequence,
  g.reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', g.opened_at / 1000.0, 'unixepoch') AS opened_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', g.closed_at / 1000.0, 'unixepoch') AS closed_at
FROM gap AS g
JOIN source AS s ON s.id = g.source_id;
