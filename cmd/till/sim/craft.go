package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// crafts has the bank tell of a movement that it books late or against its own
// word: money that was declined comes after all, what failed was sent. The world
// is the bank: what it tells is so.
func (w *world) crafts() {
	e := w.book.envs[0]
	var m map[string]any
	switch w.rng.IntN(5) {
	case 3:
		w.resends(true)
	case 4:
		w.resends(false)
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
				if kind == "paid_out" {
					w.besides += e.refundOf[id].amount
				}
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
	told := w.makesUp(m)
	w.tell(fmt.Sprintf("notice %s %v of %s, against the bank's word", told.Kind, told.Amount, w.called(told.Reference)), []byte(encoded(m)), 0)
}

// makesUp has a movement be at the bank, which says the same of it when it is asked.
func (w *world) makesUp(m map[string]any) moved {
	w.crafted++
	id := fmt.Sprintf("ttb_%032x", w.crafted)
	w.name(id, fmt.Sprintf("crafted%d", w.crafted))
	m["id"], m["valueTime"], m["payerName"], m["payerBank"], m["payerAccount"] = id, w.now(), "ADA TEST PAYER", "GTBank", "******1234"
	var told moved
	if err := json.Unmarshal([]byte(encoded(m)), &told); err != nil {
		w.breaks("sim", "make a movement up: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bank.moves[id] = told
	if told.Kind == "paid_out" {
		w.minds[told.Reference] = told
	}
	return told
}

// otherwise is the bank's answer about an order of which it said something else
// than what its books have.
func (w *world) otherwise(r *http.Request, answer *http.Response) (*http.Response, error) {
	reference, is := strings.CutPrefix(r.URL.Path, "/bank/v1/disbursements/")
	w.mu.Lock()
	said, changed := w.minds[reference]
	w.mu.Unlock()
	if !is || !changed || answer.StatusCode != http.StatusOK {
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, err
	}
	out["found"], out["status"], out["railTransactionId"], out["at"] = true, "done", said.ID, said.ValueTime
	delete(out, "reverses")
	answer.Body = io.NopCloser(strings.NewReader(encoded(out)))
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	return answer, nil
}

// resends has a merchant send a refund again that failed, about which the bank
// changed its mind in silence, or of whose payment it takes back all that came
// while it is still asked.
func (w *world) resends(changed bool) {
	e := w.book.envs[0]
	for _, id := range e.refundOrder {
		r, p := e.refundOf[id], e.payments[e.refundOf[id].payment]
		if e.refunds[id] != "FAILED" || p == nil || p.reversed || e.sessions[p.session] == nil {
			continue
		}
		var m *merchant
		for _, one := range w.merchants {
			if string(one.project) == e.sessions[p.session].project {
				m = one
			}
		}
		if m == nil {
			continue
		}
		if changed {
			p.reversed = true // as in crafts
			w.besides += r.amount
			told := w.makesUp(map[string]any{"kind": "paid_out", "reference": r.reference, "amount": r.amount, "channel": "bank_transfer"})
			w.saw("the bank sent %s after all, and says so to nobody", w.called(told.Reference))
		} else {
			w.sets("the bank's line is slow", 9*time.Second, func() { w.bank.line = "slow" }, func() { w.bank.line = "" })
			w.after(time.Second, "take back", func() {
				w.plays("take back of "+w.called(p.id), func() error {
					_, err := w.bank.player.Reverse(w.ctx, p.railID)
					return err
				})
			})
		}
		w.insist("resend of "+w.called(id), request{method: http.MethodPost, path: "/v1/refunds/" + id + "/retry", key: m.secret, once: m.once()}, nil)
		return
	}
}
