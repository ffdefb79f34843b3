package checkout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

func TestWhoCancelsIsToldOfMoneyThatCameBefore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.paying()
		w.pay(session.ID, 500_000, true) // the bank does not tell of it
		if _, err := w.service.Cancel(t.Context(), session.ID, call("", "", nil)); flow.CodeOf(err) != flow.CodeNotCancellable {
			t.Errorf("it is paid, and cancelling it says %v", err)
		}
		if s := w.read(session.ID); s.Status != flow.SessionPaid || len(s.Exceptions) != 0 {
			t.Errorf("%s, %v", s.Status, s.Exceptions)
		}
		w.balanced(session.ID, 500_000)
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

// A session that the bank knows money for on its way is not cancelled, and somebody
// asks again what became of that.
func TestMoneyOnItsWayToWhatIsCancelledIsAskedForAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		n := newSession(flow.Headless)
		n.ExpiresIn = 7 * 24 * time.Hour
		var made checkout.Made
		_, err := w.service.Open(t.Context(), n, call("", "", &made))
		w.must(err)
		id := made.Session.ID
		_, _, err = w.service.Instruct(t.Context(), project, id, checkout.Ask{Method: flow.BankTransfer})
		w.must(err)
		w.passes(27, time.Hour) // by now nobody asks by the clock any more
		a := w.attempts(id)[0]
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
			return []flow.Notice{said(flow.Pending, "", a, 500_000, w.clock())}, nil
		})
		for range 2 {
			if _, err := w.service.Cancel(t.Context(), id, call("", "", nil)); flow.CodeOf(err) != flow.CodeNotCancellable {
				t.Errorf("it is cancelled under money on its way: %v", err)
			}
			w.is(id, flow.SessionProcessing)
		}
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return nil, nil })
		w.later(5 * time.Minute)
		w.is(id, flow.SessionPending)
		_, err = w.service.Cancel(t.Context(), id, call("", "", nil))
		w.must(err)
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
