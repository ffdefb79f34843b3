package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestWhoCancelsOrEndsATimeIsToldOfMoneyThatCameBefore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for doing, end := range map[string]func(flow.SessionID) error{
			"cancelling it": func(id flow.SessionID) error {
				_, err := w.service.Cancel(t.Context(), id, call("", "", nil))
				return err
			},
			"ending its time": func(id flow.SessionID) error { return w.service.EndNow(t.Context(), project, id, "wsp_per_1") },
		} {
			session := w.session(flow.Headless)
			w.must(w.instruct(t.Context(), session.ID))
			w.pay(session.ID, 500_000, true) // the bank does not tell of it
			if err := end(session.ID); flow.CodeOf(err) != flow.CodeNotCancellable {
				t.Errorf("it is paid, and %s says %v", doing, err)
			}
			if s := w.read(session.ID); s.Status != flow.SessionPaid || len(s.Exceptions) != 0 {
				t.Errorf("after %s: %s, %v", doing, s.Status, s.Exceptions)
			}
			w.balanced(session.ID, 500_000)
		}
	})
}

func TestABankIsAskedOnceBeforeASessionIsCancelled(t *testing.T) {
	t.Parallel()
	w := one(t)
	var asked atomic.Int64
	w.rail.set(func(r *shakyRail) {
		r.onCheck = func(context.Context, string) ([]flow.Notice, error) {
			asked.Add(1)
			return nil, nil
		}
	})
	session, _ := w.paying()
	bare := w.session(flow.Headless) // nobody can have paid it
	before := asked.Load()
	for range 3 {
		for _, id := range []flow.SessionID{session.ID, bare.ID} {
			_, err := w.service.Cancel(t.Context(), id, call("cancel "+string(id), "h", nil))
			w.must(err)
		}
	}
	if n := asked.Load() - before; n != 1 {
		t.Errorf("the bank was asked %d times", n)
	}
	if _, err := w.service.Cancel(t.Context(), session.ID, call("", "", nil)); flow.CodeOf(err) != flow.CodeNotCancellable || asked.Load()-before != 1 {
		t.Errorf("cancelled once more it says %v, and the bank was asked %d times", err, asked.Load()-before)
	}
}

func TestABankThatSaysNothingDoesNotHoldUpWhoCancels(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paying()
	w.rail.set(func(r *shakyRail) {
		r.onCheck = func(ctx context.Context, _ string) ([]flow.Notice, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	began := time.Now()
	_, err := w.service.Cancel(t.Context(), session.ID, call("", "", nil))
	if took := time.Since(began); err != nil || took > 20*time.Second || w.read(session.ID).Status != flow.SessionCancelled {
		t.Errorf("after %v: %v, and it is %s", took, err, w.read(session.ID).Status)
	}
}

// Whoever asks the bank about a session that money is on its way to, somebody asks
// again what became of that; and it is neither cancelled nor ended meanwhile.
func TestMoneyOnItsWayIsAskedForAgainWhoeverAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask     func(w *world, id flow.SessionID) error
		refused bool
	}{
		"cancel": {func(w *world, id flow.SessionID) error {
			_, err := w.service.Cancel(w.t.Context(), id, call("", "", nil))
			return err
		}, true},
		"end": {func(w *world, id flow.SessionID) error {
			return w.service.EndNow(w.t.Context(), project, id, "wsp_per_1")
		}, true},
		"requery": {func(w *world, id flow.SessionID) error { return w.service.AskBank(w.t.Context(), project, id) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				id, a := w.unasked()
				w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
					return []flow.Notice{said(flow.Pending, "", a, 500_000, w.clock())}, nil
				})
				for range 2 {
					if err := c.ask(w, id); (err != nil) != c.refused || c.refused && flow.CodeOf(err) != flow.CodeNotCancellable {
						t.Errorf("it says %v", err)
					}
					w.is(id, flow.SessionProcessing)
					w.later(10 * time.Second)
				}
				w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return nil, nil })
				w.later(5 * time.Minute)
				w.is(id, flow.SessionPending)
				w.must(c.ask(w, id))
			})
		})
	}
}

// unasked is an open session, and its instructions, of which nobody asks the bank by the
// clock any more.
func (w *world) unasked() (flow.SessionID, flow.Attempt) {
	w.t.Helper()
	n := newSession(flow.Headless)
	n.ExpiresIn = 7 * 24 * time.Hour
	id := w.opened(n).ID
	w.must(w.instruct(w.t.Context(), id))
	w.passes(27, time.Hour)
	return id, w.attempts(id)[0]
}

// Where a bank tells of money on its way when nobody asks by the clock any more, somebody asks
// what became of that; and at once where only a part of it came, or none.
func TestMoneyThatABankTellsToBeOnItsWayIsAskedFor(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		id, a := w.unasked()
		var asked atomic.Int64
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
			asked.Add(1)
			return nil, nil
		})
		comes := func() {
			w.must(w.tell(said(flow.Pending, "", a, 500_000, w.clock())))
			w.rest()
			w.is(id, flow.SessionProcessing)
		}
		comes()
		if n := asked.Load(); n != 0 {
			t.Errorf("the bank that just told of it was asked %d times", n)
		}
		w.later(flow.ComingAgain)
		w.is(id, flow.SessionPending)
		for name, kind := range map[string]flow.NoticeKind{"a part came": flow.Credit, "it went back": flow.Returned} {
			comes()
			before := asked.Load()
			w.must(w.tell(said(kind, "T"+string(kind), a, 100_000, w.clock())))
			w.rest()
			w.is(id, flow.SessionPending)
			if n := asked.Load() - before; n != 1 {
				t.Errorf("when %s the bank was asked %d times for the rest", name, n)
			}
		}
	})
}

// Everybody who asks the bank about a session that is not paid leaves a line of it.
func TestEveryQuestionToTheBankLeavesALine(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		first, _ := w.paying()
		other := w.session(flow.Headless)
		w.must(w.instruct(t.Context(), other.ID))
		w.must(w.service.AskBank(t.Context(), project, first.ID))
		w.must(w.service.AskBank(t.Context(), project, other.ID))
		w.must(w.service.EndNow(t.Context(), project, other.ID, "wsp_per_1"))
		cancelled := w.session(flow.Headless)
		w.must(w.instruct(t.Context(), cancelled.ID))
		_, err := w.service.Cancel(t.Context(), cancelled.ID, call("", "", nil))
		w.must(err)
		w.passes(2, 31*time.Minute) // the instructions run out
		w.later(w.read(first.ID).ExpiresAt.Sub(w.clock()) + time.Second)
		w.is(first.ID, flow.SessionExpired)
		lines := 0
		for _, id := range []flow.SessionID{first.ID, other.ID, cancelled.ID} {
			lines += w.lines(id)["bank.asked"]
		}
		if asked := w.calls()["check"]; lines != asked || asked < 12 {
			t.Errorf("%d lines of %d questions", lines, asked)
		}
	})
}

// Money that the bank tells of and that cannot be kept is not cancelled over.
func TestNothingIsCancelledOverMoneyThatCannotBeKept(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paying()
	w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
		return nil, &flow.Error{Code: flow.CodeStorage, Message: "Not now."}
	})
	if _, err := w.service.Cancel(t.Context(), session.ID, call("", "", nil)); flow.CodeOf(err) != flow.CodeStorage {
		t.Errorf("cancelling it says %v", err)
	}
	w.is(session.ID, flow.SessionPending)
}

// Whoever hears nothing sends the same word twice. What was written before the
// question whether to cancel could be read is no answer to it.
func TestACancelThatWasWrittenBeforeTheQuestionConfirmsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		cancel := flow.Intent{Kind: flow.MeansConfirm}
		w.sending(func(checkout.Outgoing) error { return &checkout.NotYetError{Wait: time.Second} }) // as if it were being typed
		w.must(w.says("ada", cancel))
		w.must(w.says("ada", cancel))
		if s := w.read(session.ID); s.Status != flow.SessionPending {
			w.t.Fatalf("cancelled before the payer was asked: %s", s.Status)
		}
		w.sending(nil)
		w.later(2 * time.Second)
		w.must(w.service.Hear(w.t.Context(), checkout.Inbound{Number: ourNumber, Person: "ada", Message: "DELAYED", Intent: cancel, Wrote: w.clock().Add(-10 * time.Second)}))
		w.rest()
		if s := w.read(session.ID); s.Status != flow.SessionPending {
			w.t.Fatalf("cancelled by what was written before the question: %s", s.Status)
		}
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "cancel_confirm"}) {
			w.t.Errorf("the payer reads %q", got)
		}
		w.must(w.service.Hear(w.t.Context(), checkout.Inbound{Number: ourNumber, Person: "ada", Message: "READ", Intent: cancel, Wrote: w.clock().Truncate(time.Second)}))
		w.rest()
		if s := w.read(session.ID); s.Status != flow.SessionCancelled {
			w.t.Errorf("confirmed, and it is %s", s.Status)
		}
	})
}

// The clock of the test environment can be moved, that of the network cannot: a payer
// who reads the question and confirms is heard all the same.
func TestAMovedClockMakesNoAnswerTooEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t, store.Checkout))
	began := w.clock()
	w.real = func() time.Time { return began }
	w.start(true)
	session := w.session(flow.InChat)
	w.pass(time.Hour)
	for i, in := range []flow.Intent{code(session), {Kind: flow.MeansConfirm}, {Kind: flow.MeansConfirm}} {
		w.must(w.service.Hear(t.Context(), checkout.Inbound{Number: ourNumber, Person: "ada", Message: fmt.Sprint("MOVED", i), Intent: in, Wrote: began}))
		w.rest()
	}
	if s := w.read(session.ID); s.Status != flow.SessionCancelled {
		t.Errorf("confirmed, and it is %s", s.Status)
	}
}

// A link can be sent on. Who only has its code ends nothing that somebody else has
// paid a part of.
func TestOnlyWhoPaidAPartCancelsInTheChat(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, a := w.paying()
		w.hear("obi", code(session))
		w.hear("obi", flow.Intent{Kind: flow.MeansCancel}) // before any of it was paid
		w.must(w.tell(credit("T1", a.Reference, 200_000, w.clock())))
		w.rest()
		w.hear("obi", flow.Intent{Kind: flow.MeansConfirm})
		w.hear("obi", flow.Intent{Kind: flow.MeansConfirm})
		if s := w.read(session.ID); s.Status != flow.SessionPending {
			w.t.Fatalf("somebody who paid nothing cancelled it: %s", s.Status)
		}
		if got := w.texts("obi"); !slices.Equal(got[len(got)-2:], []string{"not_yours", "not_yours"}) {
			w.t.Errorf("they read %q", got)
		}
		w.hear("ada", flow.Intent{Kind: flow.MeansCancel})
		w.hear("ada", flow.Intent{Kind: flow.MeansConfirm})
		if s := w.read(session.ID); s.Status != flow.SessionCancelled {
			w.t.Errorf("whose money it is cancelled it, and it is %s", s.Status)
		}
	})
}

// A session that was cancelled says when, and with which key: nothing else of it may
// be kept, for no event is where nobody asked for it. A call that is made again says
// it once.
func TestAStoryTellsWhenASessionWasCancelledAndByWhom(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.Headless)
		w.later(time.Hour)
		at := w.clock()
		c := call("cancel", "h", nil)
		c.By = "wsp_key_1"
		for range 2 {
			_, err := w.service.Cancel(t.Context(), session.ID, c)
			w.must(err)
		}
		w.later(time.Hour)
		story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
		w.must(err)
		var told []checkout.Moment
		for _, m := range story {
			if m.What == "cancelled" {
				told = append(told, m)
			}
		}
		if len(told) != 1 || told[0].Who != "merchant" || told[0].Why != "by wsp_key_1" || !told[0].At.Equal(at) || !strings.Contains(told[0].Told, "cancelled") {
			t.Errorf("of being cancelled at %s it tells %+v", at, told)
		}
	})
}
