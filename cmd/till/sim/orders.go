package sim

import (
	"strings"

	"till/bot"
)

// ordered judges that a bank is only called for a session whose merchant or payer
// asked for a method.
func (w *world) ordered(path, id string) {
	if id == "" || strings.Contains(path, "/disbursements") {
		return
	}
	w.mu.Lock()
	w.asked = append(w.asked, id)
	w.mu.Unlock()
}

// wishes takes in that words of a payer are handed over: any but the code of a link
// may choose a method of what was opened by then.
func (w *world) wishes(p *person, m bot.Message) {
	if m.Own || m.Text == "" || strings.HasPrefix(m.Text, "Pay ") {
		return
	}
	for _, s := range w.sessions {
		s.mayCall = s.mayCall || s.payer == p
	}
}

// judgeOrders judges the calls of a step: by then every session has its name.
func (w *world) judgeOrders() {
	w.mu.Lock()
	asked := w.asked
	w.asked = nil
	w.mu.Unlock()
	for _, id := range asked {
		for _, s := range w.sessions {
			if w.called(id) == s.ref && !s.mayCall {
				w.breaks("I8", "the bank was called for %s, of which nobody asked for a method", s.ref)
			}
		}
	}
}

// actives are the attempts of a method that can be paid, oldest first.
func (e *ledgerBook) actives(method string) []*attemptRow {
	var list []*attemptRow
	for _, id := range e.order {
		if a := e.attempts[id]; a.method == method && a.status == "ACTIVE" {
			list = append(list, a)
		}
	}
	return list
}
