package checkout_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/benchtest"
	"till/rail"
)

// All that can become of a session happens to it at once, in the moment in which its time
// ends: its money comes and is told twice, its merchant cancels it twice and has
// instructions made, somebody ends it in the console, and the payer says that they have
// paid and chooses again. One thing becomes of it, its money has one outcome, and whoever
// is told of either is told once. TILL_FAULT_RACES is how many sessions there are.
func TestWhateverHappensAtOnceASessionHasOneEnd(t *testing.T) {
	t.Parallel()
	rounds := benchtest.Often(t, "TILL_FAULT_RACES", 10)
	each(t, func(w *world) {
		w.endpoint("https://a.example/hook", flow.ChargeSuccess, flow.SessionCancelKind, flow.SessionExpiredKind)
		became := map[string]int{}
		for round := range rounds {
			became[w.eightAtOnce(round)]++
			if w.t.Failed() {
				w.t.Fatalf("round %d fails", round)
			}
		}
		w.t.Logf("%d sessions, eight things at once to each: %v", rounds, became)
	})
}

// eightAtOnce does eight things to a session at once, and says what became of it. In
// each third round its money is at the bank before, which tells nobody; and in each third
// one the bank answers no question, and the money comes as the first of those who end the
// session has had its way.
func (w *world) eightAtOnce(round int) string {
	w.t.Helper()
	t, person := w.t, fmt.Sprint("ada", round)
	session := w.session(flow.InChat)
	id := session.ID
	w.hear(person, code(session))
	w.hear(person, method(flow.BankTransfer))
	to := w.attempts(id)[0].Instructions.AccountNumber
	w.setClock(session.ExpiresAt.Add(-time.Second))
	came := func() error {
		_, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: to, Amount: 500_000, SenderName: "BOLA ADE", Copies: 2, ValueTime: w.clock()})
		return err
	}
	before, after := round%3 == 0, round%3 == 1
	if before {
		w.pay(id, 500_000, true)
		came = func() error { return nil }
	}
	var once sync.Once
	ended := make(chan struct{})
	ends := func(do func() error) func() error {
		return func() error {
			defer once.Do(func() { close(ended) })
			return do()
		}
	}
	cancel := func(key string) func() error {
		return ends(func() error {
			_, err := w.service.Cancel(t.Context(), id, call(key, "h", nil))
			return err
		})
	}
	if after {
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return nil, rail.ErrUnknown })
		comes := came
		came = func() error { <-ended; return comes() }
	}
	w.atOnce(
		came,
		func() error { w.pass(2 * time.Second); return nil },
		cancel(""),
		cancel("cancel "+string(id)),
		ends(func() error { return w.service.EndNow(t.Context(), project, id, "wsp_per_1") }),
		func() error { return w.instruct(t.Context(), id) },
		func() error { return w.hears(person, person+" paid", flow.Intent{Kind: flow.MeansPaid}) },
		func() error { return w.hears(person, person+" card", method(flow.Card)) },
	)
	w.rail.checking(nil)
	w.until("the money is here", func() bool { return len(w.payments(id)) > 0 })
	w.rest()
	s, p, told := w.read(id), w.payments(id), w.events(id)
	w.balanced(id, 500_000)
	receipts := 0
	for _, text := range w.texts(person) {
		if text == "receipt" {
			receipts++
		}
	}
	paid := 0
	if s.Status == flow.SessionPaid {
		paid = 1
	}
	switch {
	case len(p) != 1 || p[0].Amount != 500_000 || p[0].Applied != flow.Kobo(paid)*500_000 || s.AmountPaid != p[0].Applied:
		t.Errorf("it is %s with %d, and its money is %+v", s.Status, s.AmountPaid, p)
	case told[flow.ChargeSuccess] != paid || receipts != paid:
		t.Errorf("it is %s, its merchant was told %v, and its payer %q", s.Status, told, w.texts(person))
	case told[flow.SessionCancelKind]+told[flow.SessionExpiredKind] > 1:
		t.Errorf("it ended more than once: %v", told)
	case before && paid == 0:
		t.Errorf("its money was there before, and it is %s", s.Status)
	case s.Status == flow.SessionPending || s.Status == flow.SessionProcessing:
		t.Errorf("its time is over, and it is %s", s.Status)
	}
	return fmt.Sprintf("%s %s, cancelled %d and expired %d times", s.Status, p[0].Match, told[flow.SessionCancelKind], told[flow.SessionExpiredKind])
}

// atOnce does things in the same moment. A refusal is an answer; anything else that goes
// wrong is a fault.
func (w *world) atOnce(things ...func() error) {
	w.t.Helper()
	start, errs := make(chan struct{}), make([]error, len(things))
	var all sync.WaitGroup
	for i, do := range things {
		all.Go(func() { <-start; errs[i] = do() })
	}
	close(start)
	all.Wait()
	for i, err := range errs {
		if err != nil && flow.CodeOf(err) == flow.CodeInternal {
			w.t.Errorf("thing %d ended with %v", i, err)
		}
	}
}
