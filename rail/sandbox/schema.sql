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
  kind          TEXT NOT NULL CHECK (kind IN ('credit', 'declined', 'reversal', 'paid_out', 'payout_failed')),
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
  reverses      TEXT UNIQUE,      -- a credit is taken back once, and what was sent comes back once
  collects      TEXT NOT NULL     -- whose collection account it came to
) STRICT;
CREATE INDEX IF NOT EXISTS movements_by_reference ON movements (reference, seq);
CREATE INDEX IF NOT EXISTS movements_by_value_time ON movements (value_time, seq);

-- What Till ordered to be sent out, taken on or refused for good. What became of
-- it is in the movements of its reference.
CREATE TABLE IF NOT EXISTS disbursements (
  reference    TEXT PRIMARY KEY,
  kind         TEXT NOT NULL CHECK (kind IN ('refund', 'payout')),
  amount       INTEGER NOT NULL CHECK (amount > 0),
  credit       TEXT NOT NULL,    -- refund: of which credit
  bank         TEXT NOT NULL,    -- payout: to whom
  account      TEXT NOT NULL,
  account_name TEXT NOT NULL,
  narration    TEXT NOT NULL,
  project      TEXT NOT NULL,
  held         INTEGER NOT NULL CHECK (held IN (0, 1)), -- waits for other weather
  refused      TEXT NOT NULL,    -- the code of the refusal, and its words
  why          TEXT NOT NULL,
  taken_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS disbursements_by_credit ON disbursements (credit) WHERE credit <> '';
CREATE INDEX IF NOT EXISTS disbursements_held ON disbursements (kind) WHERE held = 1;

-- Money that is on its way until a time, in or out, and transfers that are sent
-- back then; every other movement is what it is at once.
CREATE TABLE IF NOT EXISTS transits (
  movement INTEGER PRIMARY KEY REFERENCES movements (seq),
  lands_at INTEGER NOT NULL,
  returned INTEGER NOT NULL CHECK (returned IN (0, 1))
) STRICT;
CREATE INDEX IF NOT EXISTS transits_by_time ON transits (lands_at);
CREATE INDEX IF NOT EXISTS transits_returned ON transits (returned) WHERE returned = 1;

-- What came in and what was ordered to go out, ever, so that the balance need
-- not be summed up. Neither knows what is on its way: the transits tell.
CREATE TABLE IF NOT EXISTS totals (
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  came INTEGER NOT NULL,
  went INTEGER NOT NULL
) STRICT;
INSERT INTO totals (one, came, went) VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
CREATE TRIGGER IF NOT EXISTS totals_came AFTER INSERT ON movements WHEN new.kind IN ('credit', 'reversal', 'payout_failed') BEGIN
  UPDATE totals SET came = came + CASE new.kind WHEN 'reversal' THEN -new.amount ELSE new.amount END;
END;
CREATE TRIGGER IF NOT EXISTS totals_went AFTER INSERT ON disbursements WHEN new.refused = '' BEGIN
  UPDATE totals SET went = went + new.amount;
END;

-- What Till is still to be told, and what it never will be. A row goes when Till has
-- answered with 2xx.
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
  outcome   TEXT NOT NULL,
  project   TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE IF NOT EXISTS settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
