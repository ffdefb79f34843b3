-- A session may be paid with less than was asked for, where its merchant says so.
{{postgres}} ALTER TABLE sessions DROP CONSTRAINT sessions_check1;
{{postgres}} ALTER TABLE sessions ADD CHECK ((status = 'PAID') = (paid_at > 0)), ADD CHECK (CASE WHEN status = 'PAID' THEN amount_paid > 0 ELSE amount_paid < amount END);

-- SQLite changes no CHECK of a table that is there.
{{sqlite}} CREATE TABLE sessions_again (
  id             TEXT PRIMARY KEY,
  project        TEXT NOT NULL,
  merchant       TEXT NOT NULL,
  mode           TEXT NOT NULL CHECK (mode IN ('headless', 'chat')),
  amount         {{int}} NOT NULL CHECK (amount BETWEEN 100 AND 2500000000),
  amount_paid    {{int}} NOT NULL CHECK (amount_paid BETWEEN 0 AND amount),
  status         TEXT NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'PAID', 'EXPIRED', 'CANCELLED')),
  exceptions     TEXT NOT NULL,
  methods        TEXT NOT NULL,
  customer_email TEXT NOT NULL,
  customer_phone TEXT NOT NULL,
  customer_name  TEXT NOT NULL,
  reference      TEXT NOT NULL,
  description    TEXT NOT NULL,
  metadata       TEXT NOT NULL,
  callback_url   TEXT NOT NULL,
  policy         TEXT NOT NULL,
  entry_code     TEXT NOT NULL,
  number         TEXT NOT NULL,
  charge         TEXT NOT NULL,
  charge_asked   {{int}} NOT NULL CHECK (charge_asked IN (0, 1)),
  sequence       {{int}} NOT NULL,
  version        {{int}} NOT NULL,
  created_at     {{int}} NOT NULL,
  expires_at     {{int}} NOT NULL,
  paid_at        {{int}} NOT NULL,
  swept          {{int}} NOT NULL DEFAULT 0 CHECK (swept IN (0, 1)),
  CHECK ((status = 'PAID') = (paid_at > 0)),
  CHECK (CASE WHEN status = 'PAID' THEN amount_paid > 0 ELSE amount_paid < amount END)
) {{strict}};
{{sqlite}} INSERT INTO sessions_again SELECT * FROM sessions;
{{sqlite}} DROP TABLE sessions;
{{sqlite}} ALTER TABLE sessions_again RENAME TO sessions;
{{sqlite}} CREATE UNIQUE INDEX session_reference ON sessions (project, reference) WHERE reference <> '';
{{sqlite}} CREATE UNIQUE INDEX session_entry_code ON sessions (entry_code) WHERE entry_code <> '';
{{sqlite}} CREATE UNIQUE INDEX session_charge ON sessions (charge) WHERE charge <> '';
{{sqlite}} CREATE INDEX session_project ON sessions (project, id);
{{sqlite}} CREATE INDEX session_due ON sessions (expires_at) WHERE swept = 0;

-- The ledger: a row is a transaction, with a column for each account, so that the
-- table itself refuses one that does not sum to zero. A movement of the rail, a
-- refund and a settlement are each posted once; nothing is ever changed. What is
-- ours is positive, what we owe is negative.
CREATE TABLE ledger (
  kind               TEXT NOT NULL CHECK (kind IN ('payment', 'reversal', 'accept', 'refund', 'refund_paid', 'refund_failed', 'refund_returned',
                       'settle', 'settle_paid', 'settle_failed', 'settle_returned')),
  subject            TEXT NOT NULL CHECK (subject <> ''),
  payment            TEXT NOT NULL,
  project            TEXT NOT NULL,
  rail_clearing      {{int}} NOT NULL,
  merchant_pending   {{int}} NOT NULL,
  merchant_available {{int}} NOT NULL,
  fees               {{int}} NOT NULL,
  unapplied          {{int}} NOT NULL,
  refunds_payable    {{int}} NOT NULL,
  settled            {{int}} NOT NULL,
  created_at         {{int}} NOT NULL,
  PRIMARY KEY (kind, subject),
  CHECK (rail_clearing + merchant_pending + merchant_available + fees + unapplied + refunds_payable + settled = 0)
) {{strict}};
INSERT INTO ledger SELECT CASE WHEN reversal = '' THEN 'payment' ELSE 'reversal' END, CASE WHEN reversal = '' THEN payment ELSE reversal END,
  payment, project,
  CAST(SUM(CASE WHEN account = 'rail_clearing' THEN amount ELSE 0 END) AS {{int}}),
  CAST(SUM(CASE WHEN account = 'merchant_pending' THEN amount ELSE 0 END) AS {{int}}),
  CAST(SUM(CASE WHEN account = 'merchant_available' THEN amount ELSE 0 END) AS {{int}}),
  CAST(SUM(CASE WHEN account = 'fees' THEN amount ELSE 0 END) AS {{int}}),
  CAST(SUM(CASE WHEN account = 'unapplied' THEN amount ELSE 0 END) AS {{int}}),
  CAST(SUM(CASE WHEN account = 'refunds_payable' THEN amount ELSE 0 END) AS {{int}}),
  CAST(SUM(CASE WHEN account = 'settled' THEN amount ELSE 0 END) AS {{int}}),
  MIN(created_at) FROM postings GROUP BY payment, reversal, project;
DROP TABLE postings;
CREATE INDEX ledger_payment ON ledger (payment, created_at) WHERE payment <> '';
CREATE INDEX ledger_project ON ledger (project, created_at);

{{sqlite}} CREATE TRIGGER ledger_never_changes BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is never changed'); END;
{{sqlite}} CREATE TRIGGER ledger_never_forgets BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is never changed'); END;
{{postgres}} CREATE FUNCTION ledger_stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the ledger is never changed'; END $$;
{{postgres}} CREATE TRIGGER ledger_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION ledger_stays();

-- What a merchant, or the clock, decided about money that did not fit.
ALTER TABLE payments ADD COLUMN resolution TEXT NOT NULL DEFAULT '' CHECK (resolution IN ('', 'ACCEPTED', 'REFUNDED'));
ALTER TABLE payments ADD COLUMN resolved_at {{int}} NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN resolved_by TEXT NOT NULL DEFAULT '';
-- When money that waits for a decision goes back by itself, 0 for never.
ALTER TABLE payments ADD COLUMN returns_at {{int}} NOT NULL DEFAULT 0;
CREATE INDEX payment_project ON payments (project, id);
CREATE INDEX payment_outcome ON payments (project, match_status, id);
CREATE INDEX payment_returns ON payments (returns_at) WHERE returns_at > 0;
