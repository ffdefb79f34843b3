package sim

import (
	"strings"
	"testing"

	"till/flow/store/lite"
)

// falsehood is something that the service would never do, done to its files behind
// its back: the judge must see it, and name what it breaks.
type falsehood struct {
	name, script, invariant string
}

func TestAFalseWorldIsSeen(t *testing.T) {
	tpl := template1(t, nil)
	some := `(SELECT id FROM sessions WHERE status = 'PAID' LIMIT 1)`
	for _, f := range []falsehood{
		{"a paid session is open again", `UPDATE sessions SET status = 'EXPIRED', paid_at = 0, amount_paid = 0 WHERE id = ` + some, "I6"},
		{"an attempt that ended otherwise afterwards", `UPDATE attempts SET status = CASE status WHEN 'EXPIRED' THEN 'FAILED' ELSE 'EXPIRED' END
 WHERE id = (SELECT id FROM attempts WHERE status IN ('SUPERSEDED', 'FAILED', 'EXPIRED') LIMIT 1)`, "I6"},
		{"money that no bank booked", `INSERT INTO ledger (kind, subject, payment, project, rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled, created_at, rail_id)
 VALUES ('payment', 'x', 'x', 'x', 500, 0, 0, 0, -500, 0, 0, 1, 'made up')`, "I2"},
		{"a posting that does not sum to zero", `INSERT INTO ledger (kind, subject, payment, project, rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled, created_at, rail_id)
 VALUES ('payment', 'x', 'x', 'x', 500, -400, 0, 0, 0, 0, 0, 1, 'made up')`, "I1"},
		{"a line of the ledger that grew", `DROP TRIGGER ledger_never_changes; UPDATE ledger SET rail_clearing = rail_clearing + 500, merchant_pending = merchant_pending - 500 WHERE kind = 'payment'`, "I1"},
		{"two accounts of one payment at once", `DROP INDEX attempt_live; INSERT INTO attempts SELECT id || n, session, method, reference || n, amount, 'ACTIVE', 1, '', '', '', '', '', created_at, expires_at
 FROM attempts, (SELECT 'x' AS n UNION SELECT 'y') WHERE id = (SELECT id FROM attempts WHERE status = 'EXPIRED' LIMIT 1)`, "I8"},
		{"a message that was another one", `UPDATE log SET data = replace(data, '"kind":"method"', '"kind":"money"') WHERE kind = 'heard'`, "I14"},
		{"a second charge.success", `DROP INDEX event_once; INSERT INTO events SELECT 'wsp_evt_x', kind, project, session, sequence + 50, body, created_at FROM events WHERE kind = 'charge.success' LIMIT 1`, "I4"},
		{"an event that nobody is sent", `INSERT INTO events SELECT 'wsp_evt_y', 'charge.late', project, session, sequence + 60, body, created_at + 9000000000 FROM events WHERE kind = 'charge.success' LIMIT 1`, "I7"},
		{"a payment of another outcome", `INSERT INTO payments (id, project, session, attempt, amount, fee, channel, paid_at, received_at, payer, nip_session, rail_transaction_id, match_status)
 SELECT 'wsp_pay_z', project, session, attempt, amount, 0, channel, paid_at, received_at, payer, nip_session, 'ttb_z', 'LATE' FROM payments LIMIT 1`, "I2"},
		{"a card number that is kept", `INSERT INTO sim_moves (what, id, was, now, more) VALUES ('kept', '', '', '', '5060 6666 6666 6666 666')`, "I13"},
		{"a session that ended before its time", `INSERT INTO events SELECT 'wsp_evt_v', 'session.expired', project, id, sequence + 70, x'7b7d', expires_at - 1 FROM sessions WHERE status = 'PENDING' LIMIT 1; UPDATE sessions SET status = 'EXPIRED'
 WHERE id = (SELECT session FROM events WHERE id = 'wsp_evt_v')`, "I6"},
		{"an end that its merchant is not told of", `UPDATE sessions SET status = 'CANCELLED' WHERE id = (SELECT id FROM sessions WHERE status = 'PENDING' LIMIT 1)`, "I7"},
		{"a reply that is not kept", `DELETE FROM says WHERE id = (SELECT id FROM says WHERE state <> 'pending' LIMIT 1)`, "I12"},
		{"tries that left no record", `DELETE FROM delivery_attempts`, "I7"},
		{"a message decided twice", `DROP INDEX log_heard_once; INSERT INTO log SELECT stream, seq + 100000, at, kind, cause, session, message, data FROM log WHERE kind = 'heard' AND message <> '' LIMIT 1`, "I12"},
	} {
		t.Run(f.name, func(t *testing.T) {
			var found *Broken
			inBubble(func() { found = falsified(tpl, f.script) })
			if found == nil || found.Invariant != f.invariant {
				t.Errorf("want %s broken, got %v", f.invariant, found)
			}
		})
	}
}

// falsified runs the first days of a seed, does something behind the service's
// back, and says what the judge finds.
func falsified(tpl *template, script string) *Broken {
	const seed, steps = 2, 260
	done := false
	r := play{seed: seed, tpl: tpl, goals: newGoals(), meddles: func(w *world) {
		pending := 0
		for _, one := range w.book.envs[0].sessions {
			if one.status == "PENDING" {
				pending++
			}
		}
		if done || w.steps < steps || pending == 0 {
			return
		}
		done = true
		for one := range strings.SplitSeq(script, "; ") {
			db, err := lite.Open(tpl.uri(w.inst.dir, "test"), "busy_timeout(5000)", "ignore_check_constraints(1)")
			if err == nil {
				_, err = db.Exec(one)
			}
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				w.breaks("script", "%v", err)
			}
		}
	}}.run()
	return r.Broken
}
