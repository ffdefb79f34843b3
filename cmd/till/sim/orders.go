package sim

import "strings"

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
