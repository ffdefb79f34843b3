package sim

import (
	"syscall"
)

// trap is a crash that waits for a moment in the middle of something: the bank
// has answered and that is not kept, the merchant has said 200 and that is not
// marked, a reply is on its way, a transaction is half on the disk.
type trap struct {
	at  string
	hit bool
}

// atWrite is the trap in the middle of a write: the power goes.
const atWrite = "write"

// cuts has the power go after one of the next writes: what the process does from then
// on reaches nobody, and what is found on the disk is what the next one begins with.
func (w *world) cuts(t *trap) {
	i, to := w.inst, w.following()
	w.tpl.disk.CutAfter(1+w.rng.IntN(maxWrites), i.dir+"/", to+"/", w.power(to), func() {
		i.dead.Store(true)
		w.mu.Lock()
		defer w.mu.Unlock()
		t.hit = true
	})
}

// maxWrites is how many writes a trap may wait for: some forty transactions.
const maxWrites = 600

// untrap takes a trap away that nobody is in.
func (w *world) untrap() {
	w.tpl.disk.CutAfter(0, "", "", nil, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trap = nil
}

// caught stops a call of the service at a trap, for good: its process dies while
// it waits. Nil where there is none.
func (w *world) caught(i *instance, at string) error {
	w.mu.Lock()
	caught := w.trap != nil && w.trap.at == at && !w.trap.hit && !i.dead.Load()
	if caught {
		w.trap.hit = true
	}
	w.mu.Unlock()
	if !caught {
		return nil
	}
	w.saw("crash at %s", at)
	<-i.killed
	return syscall.ECONNRESET
}

// springs has the process die whose call is held in a trap.
func (w *world) springs() {
	w.mu.Lock()
	hit := w.trap != nil && w.trap.hit
	at := ""
	if hit {
		at = w.trap.at
		w.trap = nil
	}
	w.mu.Unlock()
	if !hit {
		return
	}
	w.goals.reached("crash", at, w)
	if at == atWrite {
		w.cut = true
		w.saw("crash at %s", at)
	} else {
		w.observe()
	}
	w.crash(at == atWrite)
	w.drain()
	w.observe() // what comes next may change who is owed what, and this came before
}
