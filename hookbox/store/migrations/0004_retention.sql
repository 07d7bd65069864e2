-- What retention came by and left, since something still needs it: deliveries with their content (`bodies`), events with
-- their identity (`keys`). It is looked at again each time.
CREATE TABLE kept_longer (
  stage TEXT NOT NULL CHECK (stage IN ('bodies', 'keys')),
  id INTEGER NOT NULL,
  PRIMARY KEY (stage, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX quarantine_event ON quarantine_entry (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX quarantine_resolved ON quarantine_entry (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX token_seen ON token (seen_at);
-- Who else tells a fact: an event that told it first stays until those that told it again have gone.
CREATE INDEX notification_repeat ON notification (source_id, meaning) WHERE claims = 0;

-- How far events that are gone had brought a status that rests on a later one: a JSON list of rank, kind, bounce class,
-- time and event. Null where that is nothing, or is the status itself.
ALTER TABLE status ADD COLUMN settled TEXT;

-- Addresses that somebody had erased, by the names that they go by since: a hash with a key that is not in the database.
CREATE TABLE erasure (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  pseudonym TEXT NOT NULL
) STRICT;
