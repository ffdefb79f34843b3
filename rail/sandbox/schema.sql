-- The books of the pretend bank. Amounts are kobo, times are Unix milliseconds.

CREATE TABLE IF NOT EXISTS instruments (
  reference    TEXT PRIMARY KEY,
  session      TEXT NOT NULL,
  method       TEXT NOT NULL CHECK (method IN ('bank_transfer', 'ussd', 'card')),
  amount       INTEGER NOT NULL CHECK (amount > 0),
  account_name TEXT NOT NULL,
  account      TEXT UNIQUE,      -- bank_transfer
  payment_code TEXT UNIQUE,      -- ussd
  token        TEXT UNIQUE,      -- card: names the page; shown again to whoever asks with the reference
  outcome      TEXT NOT NULL DEFAULT '',
  expires_at   INTEGER NOT NULL,
  created_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS movements (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  kind          TEXT NOT NULL CHECK (kind IN ('credit', 'declined', 'reversal')),
  reference     TEXT NOT NULL,
  account       TEXT NOT NULL,
  amount        INTEGER NOT NULL CHECK (amount > 0),
  channel       TEXT NOT NULL,
  value_time    INTEGER NOT NULL,
  payer_name    TEXT NOT NULL,
  payer_bank    TEXT NOT NULL,
  payer_account TEXT NOT NULL,
  nip           TEXT NOT NULL,
  reason        TEXT NOT NULL,
  reverses      TEXT UNIQUE       -- a credit is taken back once
) STRICT;
CREATE INDEX IF NOT EXISTS movements_by_reference ON movements (reference, seq);

-- Transfers that are on their way until a time, and those that are sent back
-- then; every other movement is what it is at once.
CREATE TABLE IF NOT EXISTS transits (
  movement INTEGER PRIMARY KEY REFERENCES movements (seq),
  lands_at INTEGER NOT NULL,
  returned INTEGER NOT NULL CHECK (returned IN (0, 1))
) STRICT;

-- What Till is still to be told. A row goes when Till has answered 200.
CREATE TABLE IF NOT EXISTS notices (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  movement INTEGER NOT NULL REFERENCES movements (seq),
  state    TEXT NOT NULL CHECK (state IN ('owed', 'lost', 'given_up')),
  due      INTEGER NOT NULL,
  tries    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS notices_by_due ON notices (state, due);

CREATE TABLE IF NOT EXISTS calls (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  at        INTEGER NOT NULL,
  operation TEXT NOT NULL,
  reference TEXT NOT NULL,
  session   TEXT NOT NULL,
  outcome   TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
