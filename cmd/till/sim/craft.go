package sim

import (
	"encoding/json"
	"fmt"
)

// crafts has the bank tell of a movement that it books late or against its own
// word: money that was declined comes after all, what failed was sent. The world
// is the bank: what it tells is so.
func (w *world) crafts() {
	e := w.book.envs[0]
	var m map[string]any
	switch w.rng.IntN(3) {
	case 0:
		for _, id := range e.order {
			a := e.attempts[id]
			s := e.sessions[a.session]
			if a.status == "FAILED" && s != nil && s.status == "PENDING" {
				m = map[string]any{"kind": "credit", "reference": a.reference, "amount": s.amount, "channel": a.method}
			}
		}
	case 1:
		for _, id := range e.refundOrder {
			if r := e.refunds[id]; r == "FAILED" || r == "NEEDS_ATTENTION" {
				row := e.payments[e.refundOf[id].payment]
				row.reversed = true // the bank's own fault: more may go back than came
				kind := pick(w, "paid_out", "paid_out", "payout_failed")
				m = map[string]any{"kind": kind, "reference": e.refundOf[id].reference, "amount": e.refundOf[id].amount, "channel": "bank_transfer"}
			}
		}
	default:
		for _, id := range e.settlementOrder {
			if e.settlements[id] == "FAILED" {
				m = map[string]any{"kind": "paid_out", "reference": id, "amount": e.settlementAmount[id], "channel": "bank_transfer"}
			}
		}
	}
	if m == nil {
		return
	}
	w.crafted++
	id := fmt.Sprintf("ttb_%032x", w.crafted)
	w.name(id, fmt.Sprintf("crafted%d", w.crafted))
	m["id"], m["valueTime"], m["payerName"], m["payerBank"], m["payerAccount"] = id, w.now(), "ADA TEST PAYER", "GTBank", "******1234"
	body := []byte(encoded(m))
	var told moved
	if err := json.Unmarshal(body, &told); err != nil {
		w.breaks("sim", "craft a notice: %v", err)
		return
	}
	w.mu.Lock()
	w.bank.moves[id] = told
	w.mu.Unlock()
	w.tell(fmt.Sprintf("notice %s %v of %s, against the bank's word", told.Kind, told.Amount, w.called(told.Reference)), body, 0)
}
