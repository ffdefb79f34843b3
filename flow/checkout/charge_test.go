package checkout_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

func (w *world) charge(ctx context.Context, key, hash string) (checkout.Made, checkout.Answer, error) {
	var made checkout.Made
	answer, err := w.service.OpenCharge(ctx, newSession(flow.InChat), "", call(key, hash, &made))
	return made, answer, err
}

func (w *world) sessions() int {
	w.t.Helper()
	list, _, err := w.service.List(w.t.Context(), project, checkout.Filter{Limit: 100})
	w.must(err)
	return len(list)
}

func TestSixtyFourCallsWithOneKeyMakeOneCharge(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		var mu sync.Mutex
		bodies := map[string]int{}
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				_, answer, err := w.charge(t.Context(), "key-1", "same")
				switch {
				case err == nil:
					mu.Lock()
					bodies[string(answer.Body)]++
					mu.Unlock()
				case flow.CodeOf(err) != flow.CodeIdempotencyRunning:
					t.Errorf("a call said %v", err)
				}
			})
		}
		all.Wait()
		_, last, err := w.charge(t.Context(), "key-1", "same")
		w.must(err)
		if len(bodies) != 1 || bodies[string(last.Body)] == 0 || !last.Replayed {
			t.Errorf("the calls were answered with %v, the last with %s", bodies, last.Body)
		}
		if n := w.sessions(); n != 1 || w.calls()["create_virtual_account"] != 1 {
			t.Errorf("there are %d sessions, and the bank was called %v", n, w.calls())
		}
		if _, _, err := w.charge(t.Context(), "key-1", "other"); flow.CodeOf(err) != flow.CodeIdempotencyReused {
			t.Errorf("another request with the key said %v", err)
		}
	})
}

func TestAChargeWhoseBankFailedIsTakenUpUnderItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for i, failure := range []error{rail.ErrUnknown, rail.ErrUnavailable, rail.ErrRejected} {
			key := string(rune('a' + i))
			w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
				return flow.Instructions{}, failure
			})
			if _, _, err := w.charge(t.Context(), key, "same"); err == nil {
				t.Fatalf("%v made a charge", failure)
			}
			w.rail.set(func(r *shakyRail) { r.onStart = nil })
			w.pass(time.Second)
			made, answer, err := w.charge(t.Context(), key, "same")
			if err != nil || answer.Replayed {
				t.Fatalf("after %v the key said %+v, %v", failure, answer, err)
			}
			if w.sessions() != i+1 || flow.RecordVirtualAccount(made.Attempts[len(made.Attempts)-1]) == nil {
				t.Errorf("after %v there are %d sessions, and %+v", failure, w.sessions(), made.Attempts)
			}
		}
	})
}

func TestAChargeThatWasPaidAfterItsCallWasCutOffIsAnswered(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			if _, err := call(); err != nil {
				return flow.Instructions{}, err
			}
			return flow.Instructions{}, rail.ErrUnknown // it was made, and we are not told
		})
		if _, _, err := w.charge(t.Context(), "key", "same"); flow.CodeOf(err) != flow.CodeRailTimeout {
			t.Fatalf("it said %v", err)
		}
		list, _, err := w.service.List(t.Context(), project, checkout.Filter{Limit: 1})
		w.must(err)
		w.must(w.tell(flow.Notice{
			Kind: flow.Credit, RailTransactionID: "T1", Reference: list[0].Attempts[0].Reference, Amount: 500_000, Channel: flow.BankTransfer, PaidAt: w.clock(),
		}))
		made, answer, err := w.charge(t.Context(), "key", "same")
		if err != nil || made.Session.Status != flow.SessionPaid {
			t.Fatalf("the call was answered with %s, %v", answer.Body, err)
		}
		if _, again, err := w.charge(t.Context(), "key", "same"); err != nil || !again.Replayed || string(again.Body) != string(answer.Body) {
			t.Errorf("and then with %s, %v", again.Body, err)
		}
	})
}

func TestAKeyIsFreeAgainAfterADay(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		open := func(hash string) (checkout.Answer, error) {
			return w.service.Open(t.Context(), newSession(flow.Headless), call("key", hash, nil))
		}
		first, err := open("one")
		w.must(err)
		w.pass(24 * time.Hour)
		if again, err := open("one"); err != nil || string(again.Body) != string(first.Body) {
			t.Errorf("within a day it was answered with %s, %v", again.Body, err)
		}
		w.pass(time.Millisecond)
		second, err := open("two")
		if err != nil || second.Replayed || second.Location == first.Location {
			t.Errorf("after a day it was answered with %+v, %v", second, err)
		}
		if again, err := open("two"); err != nil || !again.Replayed || again.Location != second.Location {
			t.Errorf("the new use of the key is answered with %+v, %v", again, err)
		}
	})
}

// A charge opens the chat of a session that had none, and leaves one that had its own.
func TestAChargeOpensTheChatOfItsSession(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for _, mode := range []flow.Mode{flow.Headless, flow.InChat} {
			before := w.session(mode)
			var first, again checkout.Made
			for _, into := range []*checkout.Made{&first, &again} {
				_, err := w.service.OpenCharge(t.Context(), checkout.NewSession{}, before.ID, call("", "", into))
				w.must(err)
			}
			s := first.Session
			if s.ID != before.ID || s.Charge == "" || !s.ChargeAsked || s.Number != ourNumber || s.EntryCode == "" || mode == flow.InChat && s.EntryCode != before.EntryCode {
				t.Errorf("the charge of a %s session made it %+v", mode, s)
			}
			if o := again.Session; o.Charge != s.Charge || o.EntryCode != s.EntryCode || len(again.Attempts) != 1 {
				t.Errorf("asked for again it is %+v", again)
			}
			person := string(mode)
			w.hear(person, code(s))
			if len(w.texts(person)) == 0 {
				t.Errorf("the code of a %s session opens no chat", mode)
			}
		}
	})
}

// Who is told that the bank failed is told of the session that is there, and goes on with it.
func TestAChargeWhoseBankFailedNamesItsSession(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
		return flow.Instructions{}, rail.ErrUnknown
	})
	_, _, err := w.charge(w.t.Context(), "", "")
	refusal, ok := errors.AsType[*flow.Error](err)
	if !ok || refusal.Code != flow.CodeRailTimeout || !strings.Contains(refusal.Message, "call again with its sessionId") {
		t.Fatalf("it said %v", err)
	}
	w.rail.set(func(r *shakyRail) { r.onStart = nil })
	var made checkout.Made
	_, err = w.service.OpenCharge(t.Context(), checkout.NewSession{}, flow.SessionID(refusal.Details["sessionId"]), call("", "", &made))
	if err != nil || w.sessions() != 1 || len(made.Attempts) != 1 || made.Attempts[0].Instructions == nil {
		t.Errorf("gone on with it is %+v, %v", made, err)
	}
}
