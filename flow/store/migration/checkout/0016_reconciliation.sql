-- What the rail calls the movement that a transaction is about, and that
-- movement's value time there: by the two it is compared with the rail's own
-- statement. Empty and 0 of a transaction that moves nothing at the rail.
ALTER TABLE ledger ADD COLUMN rail_id TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN value_at {{int}} NOT NULL DEFAULT 0;

-- What was posted before gets both from the rows that it is about; the amounts
-- stay as they are.
{{sqlite}} DROP TRIGGER ledger_never_changes;
{{postgres}} ALTER TABLE ledger DISABLE TRIGGER ledger_stays;
UPDATE ledger SET rail_id = COALESCE((SELECT p.rail_transaction_id FROM payments p WHERE p.id = ledger.subject), ''),
  value_at = COALESCE((SELECT p.paid_at FROM payments p WHERE p.id = ledger.subject), 0) WHERE kind = 'payment';
UPDATE ledger SET rail_id = subject, value_at = COALESCE((SELECT r.taken_at FROM reversals r WHERE r.rail_transaction_id = ledger.subject), 0) WHERE kind = 'reversal';
UPDATE ledger SET rail_id = COALESCE((SELECT f.rail_transaction_id FROM refunds f WHERE f.reference = ledger.subject), ''),
  value_at = COALESCE((SELECT f.done_at FROM refunds f WHERE f.reference = ledger.subject), 0) WHERE kind = 'refund_paid';
UPDATE ledger SET rail_id = subject WHERE kind IN ('refund_returned', 'settle_returned');
UPDATE ledger SET value_at = created_at WHERE value_at = 0 AND rail_clearing <> 0;
{{sqlite}} CREATE TRIGGER ledger_never_changes BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is never changed'); END;
{{postgres}} ALTER TABLE ledger ENABLE TRIGGER ledger_stays;

CREATE INDEX ledger_value ON ledger (value_at) WHERE rail_clearing <> 0;
CREATE INDEX ledger_rail ON ledger (rail_id) WHERE rail_id <> '';
