package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// held makes calls to the bank wait until they are released or cut short.
func (w *world) held() (begun chan flow.Order, release chan struct{}) {
	begun, release = make(chan flow.Order, 10), make(chan struct{})
	w.rail.starting(func(ctx context.Context, o flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
		begun <- o
		select {
		case <-release:
			return call()
		case <-ctx.Done():
			return flow.Instructions{}, fmt.Errorf("%w: %w", rail.ErrUnavailable, ctx.Err())
		}
	})
	return begun, release
}

func (w *world) instruct(ctx context.Context, id flow.SessionID) error {
	_, _, err := w.service.Instruct(ctx, project, id, checkout.Ask{Method: flow.BankTransfer})
	return err
}

func TestWhateverAMerchantIsCalledItCanBePaid(t *testing.T) {
	t.Parallel()
	w := one(t)
	for _, c := range []struct{ name, want string }{
		{"Ada Stores", "Ada Stores/CHECKOUT"},
		{strings.Repeat("Ọ", 100), strings.Repeat("Ọ", 91) + "/CHECKOUT"},
		{strings.Repeat("a", 90) + " b", strings.Repeat("a", 90) + "/CHECKOUT"},
		{"Ada\u00a0Stores", "Ada Stores/CHECKOUT"},
		{"Fix\u00a0👩\u200d🔧\u200b", "Fix 👩🔧/CHECKOUT"},
		{"\u200d", "CHECKOUT"},
	} {
		n := newSession(flow.Headless)
		n.Merchant = c.name
		session := w.opened(n)
		if err := w.instruct(t.Context(), session.ID); err != nil {
			t.Errorf("%q cannot be paid: %v", c.name, err)
			continue
		}
		if got := w.attempts(session.ID)[0].Instructions.AccountName; got != c.want {
			t.Errorf("%q has an account in the name of %q, want %q", c.name, got, c.want)
		}
	}
}

func TestACallerWhoHangsUpDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	begun, release := w.held()
	first, hangUp := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	go func() { errs <- w.instruct(first, session.ID) }()
	<-begun
	w.must(w.says("ada", method(flow.BankTransfer))) // the worker joins the call that is under way
	second := make(chan error, 1)
	go func() { second <- w.instruct(t.Context(), session.ID) }()
	w.until("all three to wait", func() bool { return w.service.Waiting(w.attempts(session.ID)[0].ID) == 3 })
	hangUp()
	if err := <-errs; flow.CodeOf(err) != flow.CodeRailTimeout {
		t.Errorf("the caller who hung up got %v", err)
	}
	close(release)
	if err := <-second; err != nil {
		t.Errorf("the caller who waited got %v", err)
	}
	w.rest()
	if got := w.texts("ada"); !slices.Contains(got, "transfer_how") {
		t.Errorf("the payer read %q", got)
	}
	if calls := w.calls(); calls["create_virtual_account"] != 1 || len(w.rail.asked()) != 1 {
		t.Errorf("the bank was called %v, asked %+v", calls, w.rail.asked())
	}
}

func TestACallThatNobodyWaitsForIsCutShortAndItsOutcomeUnknown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.Headless)
		begun, release := w.held()
		ctx, hangUp := context.WithCancel(t.Context())
		errs := make(chan error, 1)
		go func() { errs <- w.instruct(ctx, session.ID) }()
		<-begun
		hangUp()
		if err := <-errs; flow.CodeOf(err) != flow.CodeRailTimeout {
			t.Errorf("it said %v", err)
		}
		if a := w.attempts(session.ID)[0]; a.Status != flow.AttemptActive || a.Tries != 1 {
			t.Errorf("cutting a call short decided about the attempt: %+v", a)
		}
		close(release)
		w.must(w.instruct(t.Context(), session.ID))
		if second := <-begun; !second.Again {
			t.Error("the bank was asked blindly after an unknown outcome")
		}
	})
}

func TestAMethodWhoseCallMayHaveBeenMadeIsLookedUpFirst(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
		ins, err := call()
		w.once(w.crash) // the bank made it; nobody here will ever know
		return ins, err
	})
	_ = w.instruct(t.Context(), session.ID)
	w.end()
	w.start(true)
	w.until("the service to run", func() bool { idle, err := w.service.Idle(t.Context()); return err == nil && idle })
	w.hear("ada", method(flow.BankTransfer)) // the same method, now out of the chat
	orders := w.rail.asked()
	if len(orders) != 2 || !orders[1].Again {
		t.Errorf("the second order went out blindly: %+v", orders)
	}
}

func TestABankThatIsDownSaysNothingOfAnEarlierCall(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.Headless)
	outcome := rail.ErrUnknown
	w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
		return flow.Instructions{}, outcome
	})
	if err := w.instruct(t.Context(), session.ID); flow.CodeOf(err) != flow.CodeRailTimeout {
		t.Fatalf("an unknown outcome is %v", err)
	}
	outcome = rail.ErrUnavailable
	if err := w.instruct(t.Context(), session.ID); flow.CodeOf(err) != flow.CodeRailTimeout {
		t.Errorf("it became %v", err)
	}
	if a := w.attempts(session.ID); len(a) != 1 || a[0].Status != flow.AttemptActive {
		t.Errorf("the attempt that the bank may have made was given up: %+v", a)
	}
}

// Who waits for the bank asks it by itself: the worker does only where they may have died.
func TestWhatACallerAsksTheBankForNobodyElseAsksForMeanwhile(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.Headless)
	w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
		return flow.Instructions{}, rail.ErrUnknown
	})
	if err := w.instruct(t.Context(), session.ID); flow.CodeOf(err) != flow.CodeRailTimeout {
		t.Fatalf("it said %v", err)
	}
	for _, c := range []struct {
		passes time.Duration
		asked  int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}} {
		if w.later(c.passes); len(w.rail.asked()) != c.asked {
			t.Errorf("%v later the bank was asked %d times, want %d", c.passes, len(w.rail.asked()), c.asked)
		}
	}
}

func TestAPayerWhoAsksAgainForAMethodThatDoesNotComeIsToldAgain(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
		return flow.Instructions{}, rail.ErrUnknown
	})
	down := func() int {
		n := 0
		for _, text := range w.texts("ada") {
			if text == "method_down" {
				n++
			}
		}
		return n
	}
	for round := 1; round <= 3; round++ {
		w.hear("ada", method(flow.BankTransfer))
		w.passes(4, 15*time.Second)
		if n := down(); n != round {
			t.Fatalf("after asking %d times the payer was told %d times: %q", round, n, w.texts("ada"))
		}
	}
	w.later(29 * time.Minute) // the attempt is over: nobody is asked about it any more
	asked := len(w.rail.asked())
	w.later(time.Hour)
	if n := len(w.rail.asked()); n != asked {
		t.Errorf("an attempt that is over is still asked for (%d, then %d)", asked, n)
	}
	if n := w.lines(session.ID)["rail.answer"]; n != 10 || asked <= 10 {
		t.Errorf("the log got %d lines of %d times no answer", n, asked)
	}
	moments, _, err := checkout.StoryPage(t.Context(), w.db.Reader, session.ID, checkout.StoryPlace{}, 100)
	w.must(err)
	if !slices.ContainsFunc(moments, func(m checkout.Moment) bool {
		return strings.HasPrefix(m.Told, "The bank was asked for an account number and did not answer in time")
	}) {
		t.Errorf("the story tells of no answer as %+v", moments)
	}
}

func TestARailThatPanicsIsAFailedCall(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
		panic("a bug")
	})
	if err := w.instruct(t.Context(), session.ID); err == nil {
		t.Fatal("a panic gave instructions")
	}
	w.hear("ada", code(session))
	w.hear("ada", method(flow.BankTransfer))
	w.rail.set(func(r *shakyRail) { r.onStart = nil })
	w.later(time.Minute)
	if got := w.texts("ada"); !slices.Contains(got, "transfer_how") {
		t.Errorf("the payer read %q", got)
	}
}

func TestInstructionsEndWhenTheBankSaysSo(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
		ins, err := call()
		ins.ExpiresAt = w.clock().Add(5 * time.Minute) // of the half hour that was asked for
		return ins, err
	})
	w.hear("ada", method(flow.BankTransfer))
	w.later(5*time.Minute + time.Second)
	if got := w.texts("ada"); got[len(got)-1] != "lapsed" {
		t.Errorf("the payer read %q", got)
	}
}

// Whoever pays an account that was made for a session which is over pays in vain.
func TestASessionThatEndsWhileTheBankAnswersIsNotPaidAnyMore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.Headless)
		begun, release := w.held()
		errs := make(chan error, 1)
		go func() { errs <- w.instruct(w.t.Context(), session.ID) }()
		<-begun
		_, err := w.service.Cancel(w.t.Context(), session.ID, call("", "", nil))
		w.must(err)
		close(release)
		if err := <-errs; flow.CodeOf(err) != flow.CodeSessionCancelled {
			w.t.Errorf("who asked how to pay it was told %v", err)
		}
	})
}

func TestASessionThatEndsBeforeTheBankIsAskedIsNoRefusalOfTheBank(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for range 40 {
			instructed, charged := w.session(flow.Headless), w.session(flow.Headless)
			errs, ends := make(chan error, 2), make(chan error, 2)
			go func() { errs <- w.instruct(w.t.Context(), instructed.ID) }()
			go func() {
				_, err := w.service.OpenCharge(w.t.Context(), checkout.NewSession{}, charged.ID, call("", "", nil))
				errs <- err
			}()
			for _, s := range []flow.Session{instructed, charged} {
				go func() {
					_, err := w.service.Cancel(w.t.Context(), s.ID, call("", "", nil))
					ends <- err
				}()
			}
			for range 2 {
				w.must(<-ends)
				if err := <-errs; err != nil && flow.CodeOf(err) != flow.CodeSessionCancelled {
					w.t.Fatalf("who asked how to pay a session that was cancelled was told %v", err)
				}
			}
		}
	})
}

// A bank knows an order by its reference and its amount. A part that comes to an account of
// before, while nobody knows what became of the order, does not change what was ordered; what
// is there at last asks for the rest.
func TestAPartDoesNotChangeWhatTheBankWasAskedFor(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.Headless)
		w.must(w.instruct(t.Context(), session.ID))
		first := w.attempts(session.ID)[0]
		w.later(31 * time.Minute)
		w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			if _, err := call(); err != nil {
				return flow.Instructions{}, err
			}
			return flow.Instructions{}, rail.ErrUnknown // it was made, and we are not told
		})
		if err := w.instruct(t.Context(), session.ID); flow.CodeOf(err) != flow.CodeRailTimeout {
			t.Fatalf("an unknown outcome is %v", err)
		}
		w.must(w.tell(credit("T1", first.Reference, 200_000, w.clock())))
		w.rail.starting(nil)
		w.must(w.instruct(t.Context(), session.ID))
		list := w.attempts(session.ID)
		if a := list[len(list)-1]; len(list) != 2 || a.Instructions == nil || a.Amount != 300_000 {
			t.Errorf("what is asked for is %+v", list)
		}
		if calls := w.calls(); calls["create_virtual_account"] != 2 {
			t.Errorf("the bank was called %v", calls)
		}
	})
}

// A page that the bank makes while a part comes asks for all that was due. Who waits for it is
// given one for the rest instead.
func TestWhoWaitsForAPageWhileAPartComesIsGivenOneForTheRest(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.Headless)
		w.must(w.instruct(t.Context(), session.ID))
		account := w.attempts(session.ID)[0]
		comes := true
		w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			ins, err := call()
			if comes {
				comes = false
				w.must(w.tell(credit("T1", account.Reference, 200_000, w.clock())))
			}
			return ins, err
		})
		_, a, err := w.service.Instruct(t.Context(), project, session.ID, checkout.Ask{Method: flow.Card})
		if err != nil || a.Amount != 300_000 || a.Status != flow.AttemptActive {
			t.Errorf("it was given %+v, %v", a, err)
		}
		for _, a := range w.attempts(session.ID) {
			if a.Status == flow.AttemptActive && a.Amount != 300_000 {
				t.Errorf("%s asks for %d", a.Method, a.Amount)
			}
		}
	})
}
