-- Why a merchant decided about money as they did, in their words.
ALTER TABLE payments ADD COLUMN resolve_reason TEXT NOT NULL DEFAULT '';

-- Parts that were held used to be released by the transaction of the payment that
-- completed them. Now each payment's own transactions tell what became of it:
-- what was released stands under the part, and not under what completed it.
INSERT INTO ledger (kind, subject, payment, project, rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled, created_at)
 SELECT 'accept', p.id, p.id, p.project, 0, l.unapplied, 0, 0, -l.unapplied, 0, 0, p.received_at
 FROM payments p JOIN sessions s ON s.id = p.session AND s.status = 'PAID'
 JOIN (SELECT payment, SUM(unapplied) AS unapplied FROM ledger WHERE payment <> '' GROUP BY payment) AS l ON l.payment = p.id
 WHERE p.match_status = 'PARTIAL' AND l.unapplied < 0;
INSERT INTO ledger (kind, subject, payment, project, rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled, created_at)
 SELECT 'accept', p.id || '/parts', p.id, p.project, 0, -SUM(a.merchant_pending), 0, 0, SUM(a.merchant_pending), 0, 0, p.received_at
 FROM payments p JOIN payments part ON part.session = p.session AND part.session <> '' AND part.match_status = 'PARTIAL'
 JOIN ledger a ON a.kind = 'accept' AND a.subject = part.id
 WHERE p.match_status IN ('MATCHED', 'EXCESS') GROUP BY p.id, p.project, p.received_at;

-- Money that waits for a decision goes back by itself a day after it came, as its
-- payers were told.
UPDATE payments SET returns_at = received_at + 86400000 WHERE resolution = ''
 AND (match_status IN ('LATE', 'DUPLICATE') OR match_status = 'PARTIAL' AND session IN (SELECT id FROM sessions WHERE status IN ('EXPIRED', 'CANCELLED')))
 AND id IN (SELECT payment FROM ledger WHERE payment <> '' GROUP BY payment HAVING SUM(unapplied) < 0);
INSERT INTO tasks (kind, subject, due, token, gen, attempts) SELECT 'payment.return', id, returns_at, '', 1, 0 FROM payments WHERE returns_at > 0;
