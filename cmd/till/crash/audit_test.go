package crash

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// audit compares what Till acknowledged with what Till has.
type audit struct {
	w    *world
	shop *shop
	sink *sink

	seen      int               // how many calls were compared once
	compared  int               // replies that were asked for again
	ended     map[string]string // sessions that were seen in a state without end
	movements int               // at the bank
	checks    int               // of the ledger

	mu   sync.Mutex
	busy bool
}

// The bounds of what is compared after one kill.
const (
	olderReplies = 20 // besides all that came since the last kill
	endedLooked  = 20
	together     = 8
)

// after compares, right after a start, what came since the last one, and some of
// what is older.
func (a *audit) after(random *rand.Rand) {
	all := a.w.journal.of("call")
	list, old := slices.Clone(all[a.seen:]), slices.Clone(all[:a.seen])
	a.seen = len(all)
	for range min(olderReplies, len(old)) { // each once: the same call twice at once is told that it runs
		n := random.IntN(len(old))
		list, old = append(list, old[n]), slices.Delete(old, n, n+1)
	}
	a.replies(list)
	a.stillEnded(random)
	a.proveBeside()
}

// replies makes acknowledged calls again: each must be answered with the bytes
// of before.
func (a *audit) replies(list []entry) {
	each(list, func(e entry) {
		var r reply
		var err error
		if !await.Within(tilltest.Patience, func() bool {
			r, err = a.w.call(http.MethodPost, e.Path, e.Key, e.Body)
			return err == nil && r.status < 500
		}) {
			a.w.wrong("lost", "%s %s is not answered any more: %v %d", e.Path, e.Key, err, r.status)
			return
		}
		if r.status != e.Status || r.body != e.Reply || !r.replayed {
			a.w.wrong("lost", "%s %s was answered with %d %s, and is now with %d %s (again: %v)", e.Path, e.Key, e.Status, e.Reply, r.status, r.body, r.replayed)
		}
	})
	a.compared += len(list)
}

// each does something for every entry, a few at once.
func each[T any](list []T, do func(T)) {
	places := make(chan struct{}, together)
	var group sync.WaitGroup
	for _, one := range list {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			do(one)
		})
	}
	group.Wait()
}

// session reads one session's state.
func (a *audit) session(id string) string {
	var r reply
	var err error
	if !await.Within(tilltest.Patience, func() bool {
		r, err = a.w.call(http.MethodGet, "/v1/whatsapp/checkout/sessions/"+id, "", "")
		return err == nil && r.status < 500
	}) {
		a.w.wrong("lost", "session %s is not read any more: %v %d", id, err, r.status)
		return ""
	}
	if r.status != http.StatusOK {
		a.w.wrong("lost", "session %s is %d %s", id, r.status, r.body)
	}
	return r.text("status")
}

// stillEnded looks at some sessions: what had ended must be as it was (I6).
func (a *audit) stillEnded(random *rand.Rand) {
	all := a.shop.all()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	each(all[:min(endedLooked, len(all))], func(one sale) { a.look(one.session) })
}

// look reads a session and compares it with how it was.
func (a *audit) look(id string) string {
	is := a.session(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if was, ended := a.ended[id]; ended && is != was {
		a.w.wrong("undone", "session %s was %s and is %q", id, was, is)
	}
	if is == "PAID" || is == "CANCELLED" || is == "EXPIRED" {
		a.ended[id] = is
	}
	return is
}

// proveBeside has the ledger prove itself while Till works, unless it still does.
func (a *audit) proveBeside() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy {
		return
	}
	a.busy = true
	a.checks++
	a.w.proofs.Go(func() {
		a.prove()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.busy = false
	})
}

// prove runs till ledger check: I1 to I4.
func (a *audit) prove() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if out, err := tilltest.Output(ctx, a.w.dir, a.w.env, "ledger", "check"); err != nil {
		a.w.wrong("ledger", "till ledger check: %v\n%s", err, out)
	}
}
