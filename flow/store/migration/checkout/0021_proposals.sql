-- What one person wants done with so much money that a second one has to agree.
-- Nobody agrees with themselves, and one subject waits once.
CREATE TABLE proposals (
  id        TEXT PRIMARY KEY,
  project   TEXT NOT NULL CHECK (project <> ''),
  session   TEXT NOT NULL,
  act       TEXT NOT NULL CHECK (act IN ('payment.accept', 'payment.send_back', 'refund.retry', 'refund.done_by_hand')),
  subject   TEXT NOT NULL,
  amount    {{int}} NOT NULL CHECK (amount > 0),
  reason    TEXT NOT NULL,
  transfer  TEXT NOT NULL,
  sent_at   {{int}} NOT NULL,
  asked_key TEXT NOT NULL,
  asked_by  TEXT NOT NULL CHECK (asked_by <> ''),
  asked_at  {{int}} NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('OPEN', 'AGREED', 'REFUSED', 'EXPIRED')),
  ended_by  TEXT NOT NULL,
  ended_why TEXT NOT NULL,
  ended_at  {{int}} NOT NULL,
  CHECK ((status = 'OPEN') = (ended_at = 0)),
  CHECK (status <> 'AGREED' OR (ended_by <> '' AND ended_by <> asked_by))
) {{strict}};
CREATE UNIQUE INDEX proposal_open ON proposals (subject) WHERE status = 'OPEN';
CREATE INDEX proposal_waits ON proposals (project, id) WHERE status = 'OPEN';
CREATE INDEX proposal_session ON proposals (session, id) WHERE session <> '';
