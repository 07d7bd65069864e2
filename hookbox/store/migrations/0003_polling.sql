-- What the poller knows of each sender's event list, and when the box could not take anything.

-- How the last round of a polled source went. `caught_up_at`: when the end of the list was last reached. `stopped`: nothing
-- is asked until a person has done something about the trouble.
CREATE TABLE poll (
  source_id INTEGER PRIMARY KEY REFERENCES source (id),
  tried_at INTEGER NOT NULL,
  caught_up_at INTEGER,
  trouble TEXT,
  stopped INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1)),
  CHECK (stopped = 0 OR trouble IS NOT NULL)
) STRICT;

-- Of which list the cursor is: another address is another list.
ALTER TABLE cursor ADD COLUMN url TEXT NOT NULL DEFAULT '';

-- How far reading the sender's own state has come, for gaps that only that can close.
ALTER TABLE gap ADD COLUMN position TEXT NOT NULL DEFAULT '';
CREATE INDEX gap_open ON gap (source_id, id) WHERE closed_at IS NULL;

-- Webhooks of a source that its cursor drives: kept, acknowledged, and not yet events. The event list brings each of them
-- in its order; the row then counts as a repeat of that event, and goes.
CREATE TABLE early (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES source (id),
  key TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  raw_kind TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  signed_at INTEGER,
  via TEXT NOT NULL CHECK (via IN ('webhook', 'simulate')),
  verified_by TEXT NOT NULL CHECK (verified_by IN ('current', 'previous', 'none')),
  remote TEXT NOT NULL,
  headers TEXT NOT NULL,
  is_text INTEGER NOT NULL CHECK (is_text IN (0, 1)),
  body BLOB NOT NULL,
  content BLOB,
  UNIQUE (source_id, key, digest)
) STRICT;

CREATE INDEX early_age ON early (source_id, received_at);

-- When the box last could commit, and the times in which it could not.
CREATE TABLE heartbeat (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  beat_at INTEGER NOT NULL
) STRICT;

CREATE TABLE outage (
  id INTEGER PRIMARY KEY,
  from_at INTEGER NOT NULL,
  to_at INTEGER NOT NULL,
  CHECK (from_at < to_at)
) STRICT;

-- Since when a source is served: an outage before that cost it nothing.
ALTER TABLE source ADD COLUMN since INTEGER;
