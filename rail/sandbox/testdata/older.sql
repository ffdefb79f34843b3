-- The books as they were before the bank sent anything out, and what lay in them.

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

INSERT INTO instruments (reference, session, method, amount, account_name, account, expires_at, created_at)
  VALUES ('ref', 'wsp_sess_x', 'bank_transfer', 500000, 'ADA STORES/CHECKOUT', '9000000000', 4000000000000, 1700000000000);
INSERT INTO movements (seq, id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason, reverses) VALUES
  (7, 'ttb_credit', 'credit', 'ref', '9000000000', 500000, 'bank_transfer', 1700000000000, 'BOLA OKE', 'Test', '******1234', '', '', NULL),
  (8, 'ttb_taken', 'credit', 'ref', '9000000000', 100000, 'bank_transfer', 1700000001000, 'BOLA OKE', 'Test', '******1234', '', '', NULL),
  (9, 'ttb_back', 'reversal', 'ref', '9000000000', 100000, 'bank_transfer', 1700000002000, 'BOLA OKE', 'Test', '******1234', '', 'back', 'ttb_taken'),
  (10, 'ttb_sent_back', 'credit', 'ref', '9000000000', 1, 'bank_transfer', 1700000003000, 'BOLA OKE', 'Test', '******1234', '', 'no', NULL);
INSERT INTO transits (movement, lands_at, returned) VALUES (10, 1700000003000, 1);
INSERT INTO notices (movement, state, due) VALUES (8, 'owed', 1700000001000);
INSERT INTO calls (at, operation, reference, session, outcome) VALUES (1700000000000, 'create_virtual_account', 'ref', 'wsp_sess_x', 'ok');
