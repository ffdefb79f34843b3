-- What is known of an endpoint's health, and how it ended. failures counts those
-- in a row, failing_since and failed_at are the first and the last of them. While
-- open_since is set, the endpoint is given one try at a time (a probe; probes
-- counts those that failed) and all else that it is owed is held. wake_at is when
-- what is held is looked at next: 0 for never by itself.
ALTER TABLE endpoints ADD COLUMN version {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN failures {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN failing_since {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN failed_at {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN open_since {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN probes {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN wake_at {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN disabled_at {{int}} NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN disabled_reason TEXT NOT NULL DEFAULT '' CHECK (disabled_reason IN ('', 'gone', 'failing', 'requested'));
ALTER TABLE endpoints ADD COLUMN deleted_at {{int}} NOT NULL DEFAULT 0;
-- Until when the second secret signs beside the first.
ALTER TABLE endpoints ADD COLUMN retiring_at {{int}} NOT NULL DEFAULT 0;
CREATE INDEX endpoint_wakes ON endpoints (wake_at) WHERE wake_at > 0;
UPDATE endpoints SET disabled_reason = 'gone', disabled_at = created_at WHERE status = 'DISABLED';

-- Why a delivery is tried next, and, for a try that was asked for by hand, where
-- the delivery goes back to if that fails: such a try spends none of its schedule.
{{postgres}} ALTER TABLE deliveries DROP CONSTRAINT deliveries_state_check;
{{postgres}} ALTER TABLE deliveries ADD CHECK (state IN ('pending', 'delivered', 'dead', 'held', 'cancelled'));
{{postgres}} ALTER TABLE deliveries ADD COLUMN created_at {{int}} NOT NULL DEFAULT 0;
{{postgres}} ALTER TABLE deliveries ADD COLUMN cause TEXT NOT NULL DEFAULT 'auto' CHECK (cause IN ('auto', 'resend', 'replay', 'ping'));
{{postgres}} ALTER TABLE deliveries ADD COLUMN back_to TEXT NOT NULL DEFAULT '' CHECK (back_to IN ('', 'pending', 'delivered', 'dead', 'held', 'cancelled'));
{{postgres}} ALTER TABLE deliveries ADD COLUMN back_at {{int}} NOT NULL DEFAULT 0;

-- SQLite changes no CHECK of a table that is there.
{{sqlite}} CREATE TABLE deliveries_again (
  id         TEXT PRIMARY KEY,
  event      TEXT NOT NULL REFERENCES events (id),
  endpoint   TEXT NOT NULL REFERENCES endpoints (id),
  state      TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead', 'held', 'cancelled')),
  attempts   {{int}} NOT NULL,
  next_at    {{int}} NOT NULL,
  token      TEXT NOT NULL,
  done_at    {{int}} NOT NULL,
  created_at {{int}} NOT NULL DEFAULT 0,
  cause      TEXT NOT NULL DEFAULT 'auto' CHECK (cause IN ('auto', 'resend', 'replay', 'ping')),
  back_to    TEXT NOT NULL DEFAULT '' CHECK (back_to IN ('', 'pending', 'delivered', 'dead', 'held', 'cancelled')),
  back_at    {{int}} NOT NULL DEFAULT 0,
  UNIQUE (event, endpoint)
) {{strict}};
{{sqlite}} INSERT INTO deliveries_again (id, event, endpoint, state, attempts, next_at, token, done_at)
  SELECT id, event, endpoint, state, attempts, next_at, token, done_at FROM deliveries;
{{sqlite}} DROP TABLE deliveries;
{{sqlite}} ALTER TABLE deliveries_again RENAME TO deliveries;
{{sqlite}} CREATE INDEX delivery_due ON deliveries (next_at) WHERE state = 'pending';
UPDATE deliveries SET created_at = (SELECT v.created_at FROM events v WHERE v.id = deliveries.event);
-- What one endpoint is owed: due, and held. Nobody waits behind what another is
-- owed.
CREATE INDEX delivery_due_there ON deliveries (endpoint, next_at) WHERE state = 'pending';
CREATE INDEX delivery_held ON deliveries (endpoint, next_at) WHERE state = 'held';
CREATE INDEX delivery_endpoint ON deliveries (endpoint, id);

-- The request that a try sent: where, when and how it was signed.
ALTER TABLE delivery_attempts ADD COLUMN cause TEXT NOT NULL DEFAULT 'auto' CHECK (cause IN ('auto', 'resend', 'replay', 'ping'));
ALTER TABLE delivery_attempts ADD COLUMN url TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery_attempts ADD COLUMN signature TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery_attempts ADD COLUMN signed_at {{int}} NOT NULL DEFAULT 0;

CREATE INDEX event_project ON events (project, id);
