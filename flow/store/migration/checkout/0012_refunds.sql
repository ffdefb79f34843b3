-- Money on its way back to who paid it. amount is set aside in the ledger from
-- the moment the row exists; aside of it was unapplied, the rest the merchant's.
-- reference is what the rail knows the refund by, tries how often it was ordered
-- under that name.
CREATE TABLE refunds (
  id                  TEXT PRIMARY KEY,
  project             TEXT NOT NULL CHECK (project <> ''),
  payment             TEXT NOT NULL REFERENCES payments (id),
  session             TEXT NOT NULL,
  amount              {{int}} NOT NULL CHECK (amount > 0),
  aside               {{int}} NOT NULL CHECK (aside BETWEEN 0 AND amount),
  status              TEXT NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'PROCESSED', 'FAILED', 'NEEDS_ATTENTION')),
  origin              TEXT NOT NULL CHECK (origin IN ('MERCHANT', 'POLICY', 'CLOCK', 'RESOLVE')),
  reason              TEXT NOT NULL,
  reference           TEXT NOT NULL UNIQUE,
  tries               {{int}} NOT NULL CHECK (tries >= 0),
  held                {{int}} NOT NULL CHECK (held IN (0, 1)),
  returned            {{int}} NOT NULL CHECK (returned IN (0, 1)),
  rail_transaction_id TEXT NOT NULL,
  failure             TEXT NOT NULL,
  created_at          {{int}} NOT NULL,
  sent_at             {{int}} NOT NULL,
  done_at             {{int}} NOT NULL,
  CHECK ((status = 'PROCESSED') = (done_at > 0)),
  CHECK (status <> 'PROCESSING' OR tries > 0)
) {{strict}};
CREATE INDEX refund_payment ON refunds (payment);
CREATE INDEX refund_session ON refunds (session) WHERE session <> '';
CREATE INDEX refund_project ON refunds (project, id);
