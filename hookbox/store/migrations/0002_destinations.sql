-- `spared`: how many of a job's attempts do not count against its schedule (a person wanted it tried anew, or a stop
-- interrupted it). `hands_on` is 0 for an `apply` job that must not lead to `forward` jobs.
ALTER TABLE job ADD COLUMN spared INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN hands_on INTEGER NOT NULL DEFAULT 1 CHECK (hands_on IN (0, 1));

CREATE INDEX job_exhausted ON job (id) WHERE state = 'exhausted';

-- Who comes before whom at a destination that keeps an order. A job has a line for each thing whose order it keeps (its
-- recipients, or its source) until it is finished; while an earlier job has a line for the same thing, it is held.
CREATE TABLE job_turn (
  target TEXT NOT NULL,
  thing TEXT NOT NULL,
  job_id INTEGER NOT NULL REFERENCES job (id),
  PRIMARY KEY (target, thing, job_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_turn_job ON job_turn (job_id);

-- What holds for a target as a whole: a person's pause, and what the circuit breaker found.
CREATE TABLE lane (
  target TEXT PRIMARY KEY,
  paused_at INTEGER,
  paused_by TEXT,
  pause_reason TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  broken_at INTEGER,
  probe_at INTEGER,
  last_failure TEXT,
  CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
  CHECK ((paused_at IS NULL) = (pause_reason IS NULL)),
  CHECK ((broken_at IS NULL) = (probe_at IS NULL))
) STRICT, WITHOUT ROWID;

-- Effects that must happen once. A claim is its holder's while the token is; it ends `lease_ms` after `renewed_at`. What
-- was given up has no row. What a person settled as done has no token: nobody holds it any more.
CREATE TABLE effect (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE CHECK (length(key) BETWEEN 1 AND 200),
  state TEXT NOT NULL CHECK (state IN ('claimed', 'completed')),
  token TEXT,
  claimed_by TEXT NOT NULL,
  claimed_at INTEGER NOT NULL,
  renewed_at INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL CHECK (lease_ms > 0),
  completed_at INTEGER,
  result TEXT,
  CHECK ((state = 'completed') = (completed_at IS NOT NULL)),
  CHECK (state = 'completed' OR token IS NOT NULL),
  CHECK (state = 'completed' OR result IS NULL)
) STRICT;

CREATE INDEX effect_claimed ON effect (renewed_at) WHERE state = 'claimed';

-- What persons found out about effects that were unknown.
CREATE TABLE effect_settlement (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('done', 'undone')),
  settled_at INTEGER NOT NULL,
  settled_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  claimed_by TEXT NOT NULL,
  claimed_at INTEGER NOT NULL
) STRICT;

CREATE INDEX effect_settlement_key ON effect_settlement (key);

-- Unknown is what is still `claimed` after its `lease_until`.
CREATE VIEW effects AS
SELECT
  key,
  state,
  claimed_by,
  strftime('%Y-%m-%dT%H:%M:%fZ', claimed_at / 1000.0, 'unixepoch') AS claimed_at,
  CASE state
    WHEN 'claimed' THEN strftime('%Y-%m-%dT%H:%M:%fZ', (renewed_at + lease_ms) / 1000.0, 'unixepoch')
  END AS lease_until,
  strftime('%Y-%m-%dT%H:%M:%fZ', completed_at / 1000.0, 'unixepoch') AS completed_at,
  result
FROM effect;

CREATE VIEW settlements AS
SELECT
  id,
  key,
  verdict,
  strftime('%Y-%m-%dT%H:%M:%fZ', settled_at / 1000.0, 'unixepoch') AS settled_at,
  settled_by,
  reason,
  claimed_by,
  strftime('%Y-%m-%dT%H:%M:%fZ', claimed_at / 1000.0, 'unixepoch') AS claimed_at
FROM effect_settlement;
