-- What a project is paid out for a day. created_at is 0 while the lines of a
-- settlement are being gathered: a project gathers one at a time, and has one for
-- each day. The bank knows it by its id.
CREATE TABLE settlements (
  id                  TEXT PRIMARY KEY,
  project             TEXT NOT NULL CHECK (project <> ''),
  settles_on          TEXT NOT NULL,
  status              TEXT NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'SUCCEEDED', 'FAILED')),
  amount              {{int}} NOT NULL,
  carried             {{int}} NOT NULL,
  lines               {{int}} NOT NULL CHECK (lines >= 0),
  bank_code           TEXT NOT NULL,
  bank_name           TEXT NOT NULL,
  account_number      TEXT NOT NULL,
  account_name        TEXT NOT NULL,
  tries               {{int}} NOT NULL CHECK (tries >= 0),
  returned            {{int}} NOT NULL CHECK (returned IN (0, 1)),
  rail_transaction_id TEXT NOT NULL,
  failure             TEXT NOT NULL,
  created_at          {{int}} NOT NULL,
  sent_at             {{int}} NOT NULL,
  done_at             {{int}} NOT NULL,
  CHECK (created_at = 0 OR amount > 0 AND account_number <> ''),
  CHECK (created_at > 0 OR status = 'PENDING'),
  CHECK ((status = 'SUCCEEDED') = (done_at > 0)),
  CHECK (status <> 'PROCESSING' OR tries > 0)
) {{strict}};
CREATE UNIQUE INDEX settlement_gathers ON settlements (project) WHERE created_at = 0;
CREATE UNIQUE INDEX settlement_day ON settlements (project, settles_on) WHERE created_at > 0;
CREATE INDEX settlement_project ON settlements (project, id);
CREATE INDEX settlement_open ON settlements (id) WHERE status IN ('PENDING', 'PROCESSING');

-- Each line of the ledger that is the merchant's until its settlement day, from
-- the moment it is posted, and the settlement that it is in, '' while it waits.
-- net is what the merchant gets for it.
CREATE TABLE settlement_items (
  kind       TEXT NOT NULL,
  subject    TEXT NOT NULL,
  settlement TEXT NOT NULL,
  project    TEXT NOT NULL CHECK (project <> ''),
  net        {{int}} NOT NULL CHECK (net <> 0),
  created_at {{int}} NOT NULL,
  UNIQUE (kind, subject)
) {{strict}};
INSERT INTO settlement_items SELECT kind, subject, '', project, -merchant_pending, created_at FROM ledger
  WHERE merchant_pending <> 0 AND project <> '' AND kind <> 'settle';
CREATE INDEX settlement_item_waits ON settlement_items (project, created_at) WHERE settlement = '';
CREATE INDEX settlement_item_line ON settlement_items (settlement, created_at, kind, subject) WHERE settlement <> '';

-- What earlier payouts left: few lines, and a project's at once.
CREATE INDEX ledger_available ON ledger (project) WHERE merchant_available <> 0;
