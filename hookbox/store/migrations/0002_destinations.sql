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

-- Effects that must happen once. `token` fences: whoever claimed with an older one changes nothing any more. The lease
-- ends `lease_ms` after `renewed_at`.
CREATE TABLE effect (
  key TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('claimed', 'completed')),
  token INTEGER NOT NULL,
  claimed_by TEXT NOT NULL,
  claimed_at INTEGER NOT NULL,
  renewed_at INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  completed_at INTEGER,
  result TEXT,
  CHECK ((state = 'completed') = (completed_at IS NOT NULL))
) STRICT, WITHOUT ROWID;
