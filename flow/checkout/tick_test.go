package checkout_test

import (
	"fmt"
	"sync"
	"testing"

	"till/flow"
	"till/flow/checkout"
)

func TestTicksAreKeptTogetherAndNoneIsLostWhenTheProgramEnds(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		const chats = 40
		for c := range chats {
			w.hear(fmt.Sprint("p", c), code(session))
		}
		w.mu.Lock()
		sent := append([]checkout.Outgoing(nil), w.sent...)
		w.mu.Unlock()
		var all sync.WaitGroup
		for _, o := range sent {
			all.Go(func() {
				for _, state := range []string{"read", "delivered", "read"} { // late, doubled
					if err := w.service.Tick(t.Context(), checkout.Tick{Number: o.Number, Message: o.ID, State: state, At: w.clock()}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		w.must(w.service.Tick(t.Context(), checkout.Tick{Message: "of a person", State: "read"}))
		w.end() // at once: what waits is kept first
		w.open(true)
		if n := w.lines(session.ID); n["read"] != chats || n["delivered"] != 0 {
			t.Errorf("of %d messages %d were read and %d delivered", chats, n["read"], n["delivered"])
		}
		for _, o := range sent {
			if said, _, err := w.db.Said(t.Context(), o.ID); err != nil || said.State != "read" {
				t.Errorf("%s is %s (%v)", o.ID, said.State, err)
			}
		}
	})
}

func TestATickIsKeptAtOnceWhileNobodyKeepsThemTogether(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.end()
	w.open(true) // and not run
	w.must(w.service.Tick(t.Context(), checkout.Tick{Message: w.sent[0].ID, State: "delivered"}))
	if n := w.lines(session.ID)["delivered"]; n != 1 {
		t.Errorf("%d messages were delivered", n)
	}
	w.run()
	w.must(w.service.Tick(t.Context(), checkout.Tick{Message: w.sent[0].ID, State: "read"}))
	w.rest()
	if n := w.lines(session.ID)["read"]; n != 1 {
		t.Errorf("%d messages were read", n)
	}
}
