package checkout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
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
