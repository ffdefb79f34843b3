package checkout_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// payingUnder is paying for a session with another policy, which lasts an hour.
func (w *world) payingUnder(change func(*flow.Policy)) flow.Session {
	w.t.Helper()
	n := newSession(flow.InChat)
	n.ExpiresIn = time.Hour
	change(&n.Policy)
	session := w.opened(n)
	w.hear("ada", code(session))
	w.hear("ada", method(flow.BankTransfer))
	return session
}

// comes is money for a session, and the payment that it became.
func (w *world) comes(id flow.SessionID, amount flow.Kobo) flow.Payment {
	w.t.Helper()
	before := w.payments(id)
	w.pay(id, amount, false)
	w.until("the money is here", func() bool { return len(w.payments(id)) > len(before) })
	w.rest()
	list := w.payments(id)
	return list[slices.IndexFunc(list, func(p flow.Payment) bool {
		return !slices.ContainsFunc(before, func(q flow.Payment) bool { return q.ID == p.ID })
	})]
}

// refundsOf are the refunds of a session, oldest first.
func (w *world) refundsOf(id flow.SessionID) []flow.Refund {
	w.t.Helper()
	list, err := w.db.Refunds(w.t.Context(), store.RefundFilter{Project: project, Session: id, Limit: 100})
	w.must(err)
	slices.Reverse(list)
	return list
}

// sentBack waits until the one refund of a session was sent, and returns it.
func (w *world) sentBack(id flow.SessionID) flow.Refund {
	w.t.Helper()
	list := w.refundsOf(id)
	if len(list) != 1 {
		w.t.Fatalf("%d refunds: %+v", len(list), list)
	}
	w.rest()
	w.pass(time.Second) // which the bank takes over it
	return w.becomes(list[0].ID, flow.RefundProcessed)
}

func (w *world) resolve(id flow.PaymentID, accept bool) (flow.Payment, error) {
	w.t.Helper()
	var made checkout.Made
	_, err := w.service.Resolve(w.t.Context(), id, checkout.NewResolution{Accept: accept, Key: "wsp_key_1", Reason: "As agreed"}, call("", "", &made))
	return made.Payment, err
}

func (w *world) payment(id flow.PaymentID) flow.Payment {
	w.t.Helper()
	p, err := w.db.Payment(w.t.Context(), id)
	w.must(err)
	return p
}

// lastRead are the last messages that ada read.
func (w *world) lastRead(n int) string {
	got := w.texts("ada")
	return strings.Join(got[max(0, len(got)-n):], " ")
}

func TestAPolicySendsMoneyBackAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for _, c := range []struct {
			name   string
			policy func(*flow.Policy)
			wait   time.Duration // before it comes
			amount flow.Kobo
			back   flow.Kobo
			match  flow.MatchStatus
			status flow.SessionStatus
			event  flow.EventKind
			says   string // the last two messages: at the decision, and when it is sent
		}{
			{"too little", func(p *flow.Policy) { p.Underpayment = "refund" }, 0, 300_000, 300_000, flow.Partial, flow.SessionPending, flow.ChargeUnderpaid, "too_little refunded"},
			{"too much", func(p *flow.Policy) { p.Overpayment = "refund_excess" }, 0, 620_000, 120_000, flow.Excess, flow.SessionPaid, flow.ChargeSuccess, "over_returned refunded"},
			{"too late", func(p *flow.Policy) { p.LatePayment = "refund" }, 2 * time.Hour, 500_000, 500_000, flow.Late, flow.SessionExpired, flow.ChargeLate, "returning refunded"},
		} {
			session := w.payingUnder(c.policy)
			w.later(c.wait)
			p := w.comes(session.ID, c.amount)
			r := w.sentBack(session.ID)
			if p = w.payment(p.ID); p.Match != c.match || p.Resolution != flow.ResolvedRefunded || p.ResolvedBy != flow.ByPolicy || p.Unapplied != 0 || p.Refunded != c.back || p.Applied != c.amount-c.back {
				t.Errorf("%s: it became %+v", c.name, p)
			}
			if r.Origin != flow.OriginPolicy || r.Amount != c.back {
				t.Errorf("%s: sent back %+v", c.name, r)
			}
			if s := w.read(session.ID); s.Status != c.status || w.events(session.ID)[c.event] != 1 || w.events(session.ID)[flow.RefundProcessedKind] != 1 {
				t.Errorf("%s: session %s, told %v", c.name, s.Status, w.events(session.ID))
			}
			if got := w.lastRead(2); got != c.says {
				t.Errorf("%s: the payer read %q", c.name, got)
			}
			w.balanced(session.ID, c.amount-c.back)
		}
	})
}

func TestTooLittleOrTooLateIsTakenWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		less := w.payingUnder(func(p *flow.Policy) { p.Underpayment = "accept" })
		p := w.comes(less.ID, 300_000)
		s := w.read(less.ID)
		if s.Status != flow.SessionPaid || s.AmountPaid != 300_000 || !slices.Contains(s.Exceptions, flow.PartiallyPaid) || p.Fee != flow.Fee(300_000) || p.Unapplied != 0 {
			t.Errorf("it became %+v, %+v", s, p)
		}
		w.lies(less.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: p.Fee - 300_000, flow.Fees: -p.Fee})
		if got := w.lastRead(1); got != "receipt" {
			t.Errorf("the payer read %q", got)
		}
		kobo := w.payingUnder(func(p *flow.Policy) { p.LatePayment = "accept" })
		late := w.payingUnder(func(p *flow.Policy) { p.LatePayment, p.Underpayment = "accept", "accept" })
		w.later(2 * time.Hour)
		p = w.comes(kobo.ID, 100)
		if s := w.read(kobo.ID); s.Status != flow.SessionExpired || p.Match != flow.Late || p.ReturnsAt.IsZero() || w.events(kobo.ID)[flow.ChargeSuccess] != 0 {
			t.Errorf("a naira of 5,000 made it %+v, %+v", s, p)
		}
		w.comes(late.ID, 200_000)
		if s := w.read(late.ID); s.Status != flow.SessionPaid || s.AmountPaid != 200_000 || !slices.Contains(s.Exceptions, flow.PaidLate) || w.events(late.ID)[flow.ChargeSuccess] != 1 {
			t.Errorf("it became %+v", s)
		}
	})
}

func TestMoneyThatNobodyDecidesAboutGoesBackAfterADay(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for _, c := range []struct {
			name string
			come func() (flow.SessionID, flow.Payment)
			says string
		}{
			{"late", func() (flow.SessionID, flow.Payment) {
				s := w.payingUnder(func(*flow.Policy) {})
				w.later(2 * time.Hour)
				return s.ID, w.comes(s.ID, 500_000)
			}, "paid_late returning refunded"},
			{"twice", func() (flow.SessionID, flow.Payment) {
				s := w.payingUnder(func(*flow.Policy) {})
				w.comes(s.ID, 500_000)
				return s.ID, w.comes(s.ID, 500_000)
			}, "paid_twice returning refunded"},
			{"a part", func() (flow.SessionID, flow.Payment) {
				s := w.payingUnder(func(*flow.Policy) {})
				p := w.comes(s.ID, 200_000)
				w.later(time.Hour)
				return s.ID, w.payment(p.ID)
			}, "part_waits returning refunded"},
		} {
			id, p := c.come()
			if want := w.clock().Add(flow.ReturnAfter); !p.ReturnsAt.Equal(want) && c.name == "a part" || p.ReturnsAt.IsZero() || !p.Waits(w.read(id)) {
				t.Fatalf("%s: it goes back at %v: %+v", c.name, p.ReturnsAt, p)
			}
			w.later(p.ReturnsAt.Sub(w.clock()) - time.Second)
			if got := w.payment(p.ID); got.Resolution != flow.Unresolved || len(w.refundsOf(id)) != 0 {
				t.Errorf("%s: it went back too early: %+v", c.name, got)
			}
			w.end()
			w.start(true) // what is owed outlives the program
			w.later(time.Second)
			r := w.sentBack(id)
			if p = w.payment(p.ID); p.Resolution != flow.ResolvedRefunded || p.ResolvedBy != flow.ByClock || p.Unapplied != 0 || r.Origin != flow.OriginClock || r.Amount != p.Amount {
				t.Errorf("%s: it became %+v, sent back %+v", c.name, p, r)
			}
			if got := w.lastRead(3); got != c.says {
				t.Errorf("%s: the payer read %q", c.name, got)
			}
			if s := w.read(id); s.Status != flow.SessionPaid && (s.AmountPaid != 0 || slices.Contains(s.Exceptions, flow.PartiallyPaid)) {
				t.Errorf("%s: the session still counts it: %+v", c.name, s)
			}
			w.later(48 * time.Hour)
			if n := len(w.refundsOf(id)); n != 1 {
				t.Errorf("%s: it went back %d times", c.name, n)
			}
			w.tells(id, "Money that had been set aside goes back to who paid it, because nobody decided in time.")
		}
	})
}

func TestWhatWasDecidedMeanwhileDoesNotGoBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		paid := w.payingUnder(func(*flow.Policy) {})
		w.comes(paid.ID, 200_000)
		w.comes(paid.ID, 300_000) // the rest of it
		accepted := w.payingUnder(func(*flow.Policy) {})
		w.later(2 * time.Hour)
		late := w.comes(accepted.ID, 500_000)
		p, err := w.resolve(late.ID, true)
		w.must(err)
		w.rest()
		if p.Resolution != flow.ResolvedAccepted || p.ResolvedBy != "wsp_key_1" || p.ResolvedWhy != "As agreed" || p.Applied != 500_000 || p.Fee != flow.Fee(500_000) || !p.ReturnsAt.IsZero() {
			t.Errorf("accepted as %+v", p)
		}
		if s := w.read(accepted.ID); s.Status != flow.SessionPaid || s.Charge == "" || w.events(accepted.ID)[flow.ChargeSuccess] != 1 || w.lastRead(1) != "receipt" {
			t.Errorf("it became %+v, the payer read %q", s, w.lastRead(1))
		}
		if _, err := w.resolve(late.ID, false); flow.CodeOf(err) != flow.CodeNotResolvable {
			t.Errorf("it was decided about twice: %v", err)
		}
		w.later(72 * time.Hour)
		for _, id := range []flow.SessionID{paid.ID, accepted.ID} {
			if n := len(w.refundsOf(id)); n != 0 {
				t.Errorf("%d refunds of what is paid", n)
			}
			w.lies(id, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		}
		story, err := checkout.Timeline(t.Context(), w.service.Reader(), accepted.ID)
		w.must(err)
		if !slices.ContainsFunc(story, func(m checkout.Moment) bool {
			return m.Who == "merchant" && strings.HasPrefix(m.What, "resolved wsp_pay_") && strings.HasSuffix(m.What, ": ACCEPTED") && m.Why == "by wsp_key_1: As agreed" && strings.HasSuffix(m.Told, ", as the API key wsp_key_1 decided: As agreed.")
		}) {
			t.Errorf("nobody is told who decided: %+v", story)
		}
		more := w.payingUnder(func(p *flow.Policy) { p.Overpayment = "refund_excess" })
		w.later(2 * time.Hour)
		_, err = w.resolve(w.comes(more.ID, 600_000).ID, true)
		w.must(err)
		w.tells(more.ID, "₦1,000 is to go back to who paid it, because the policy of the session says so.")
	})
}

// tells fails unless a session's story holds these words, said once.
func (w *world) tells(id flow.SessionID, words string) {
	w.t.Helper()
	story, err := checkout.Timeline(w.t.Context(), w.service.Reader(), id)
	w.must(err)
	var told []string
	for _, m := range story {
		told = append(told, m.Told)
	}
	if !slices.Contains(told, words) {
		w.t.Errorf("%q is not told, but %q", words, told)
	}
}

// Whoever is first, a merchant who takes it, one who sends it back, or the clock:
// one of them decides, and all that follows is that one's.
func TestOneOfManyDecides(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for round := range 6 {
			session := w.payingUnder(func(*flow.Policy) {})
			w.later(2 * time.Hour)
			p := w.comes(session.ID, 500_000)
			start := make(chan struct{})
			errs := make(chan error, 8)
			var done sync.WaitGroup
			for i := range cap(errs) {
				done.Go(func() {
					<-start
					_, err := w.service.Resolve(t.Context(), p.ID, checkout.NewResolution{Accept: i%2 == 0, Key: "wsp_key_1"}, call("", "", nil))
					errs <- err
				})
			}
			done.Go(func() {
				<-start
				w.pass(flow.ReturnAfter) // the clock wants it too
			})
			close(start)
			done.Wait()
			close(errs)
			won := 0
			for err := range errs {
				if err == nil {
					won++
				} else if flow.CodeOf(err) != flow.CodeNotResolvable {
					t.Errorf("round %d: %v", round, err)
				}
			}
			w.rest()
			p = w.payment(p.ID)
			byClock := p.ResolvedBy == flow.ByClock
			if byClock && won != 0 || !byClock && won != 1 {
				t.Errorf("round %d: %d decided, and the row says %+v", round, won, p)
			}
			refunds, want := w.refundsOf(session.ID), map[flow.Resolution]int{flow.ResolvedAccepted: 0, flow.ResolvedRefunded: 1}[p.Resolution]
			if len(refunds) != want || w.events(session.ID)[flow.ChargeSuccess] != 1-want || p.Unapplied != 0 {
				t.Errorf("round %d: %s, %d refunds, told %v", round, p.Resolution, len(refunds), w.events(session.ID))
			}
			if want == 1 {
				w.sentBack(session.ID)
			}
			w.balanced(session.ID, flow.Kobo(1-want)*500_000)
		}
	})
}

func TestMoneyThatCannotGoBackWaitsForAnotherDecision(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.weather(rail.Conditions{Refunds: "fail"})
		session := w.payingUnder(func(p *flow.Policy) { p.LatePayment = "refund" })
		w.later(2 * time.Hour)
		p := w.comes(session.ID, 500_000)
		w.rest()
		w.pass(time.Second)
		w.becomes(w.refundsOf(session.ID)[0].ID, flow.RefundFailed)
		if p = w.payment(p.ID); p.Resolution != flow.Unresolved || p.Unapplied != 500_000 || p.Refunded != 0 || !p.ReturnsAt.Equal(w.clock().Add(time.Hour)) {
			t.Fatalf("it became %+v", p)
		}
		if p, err := w.resolve(p.ID, true); err != nil || p.Applied != 500_000 || !p.ReturnsAt.IsZero() {
			t.Errorf("accepted as %+v, %v", p, err)
		}
		w.later(2 * time.Hour)
		if r := w.refundsOf(session.ID); len(r) != 1 || r[0].Status != flow.RefundFailed {
			t.Errorf("what was accepted goes back: %+v", r)
		}
		w.is(session.ID, flow.SessionPaid)
	})
}

func TestAPaymentIsResolvedByItsOwnProjectAndOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		p := w.comes(session.ID, 650_000)
		foreign := call("", "", nil)
		foreign.Project = "wsp_prj_2"
		if _, err := w.service.Resolve(t.Context(), p.ID, checkout.NewResolution{Accept: true}, foreign); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another's payment: %v", err)
		}
		var bodies []string
		for range 2 {
			a, err := w.service.Resolve(t.Context(), p.ID, checkout.NewResolution{Accept: true, Key: "wsp_key_1"}, call("once", "hash", nil))
			w.must(err)
			bodies = append(bodies, string(a.Body))
		}
		if bodies[0] != bodies[1] {
			t.Errorf("said again: %q, %q", bodies[0], bodies[1])
		}
		if p = w.payment(p.ID); p.Applied != 650_000 || p.Fee != flow.Fee(650_000) {
			t.Errorf("it became %+v", p)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 650_000, flow.MerchantPending: flow.Fee(650_000) - 650_000, flow.Fees: -flow.Fee(650_000)})
	})
}

func TestWhatTheBankTakesBackBeforeItWasSentIsSetAsideAgain(t *testing.T) {
	t.Parallel()
	for taken, told := range map[flow.Kobo][]string{500_000: {"returning", "reversed"}, 200_000: {"returning", "not_sent", "reversed"}} {
		each(t, func(w *world) {
			t := w.t
			w.weather(rail.Conditions{})
			session := w.payingUnder(func(*flow.Policy) {})
			w.later(2 * time.Hour)
			p := w.comes(session.ID, 500_000)
			back := flow.Notice{Kind: flow.Reversal, RailTransactionID: "R1", Reverses: p.RailTransactionID, Amount: taken, PaidAt: w.clock()}
			w.end() // so that nobody tells the bank of the refund
			w.open(true)
			if _, err := w.resolve(p.ID, false); err != nil {
				t.Fatal(err)
			}
			w.must(w.tell(back))
			left := 500_000 - taken
			w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: left, flow.Unapplied: -left})
			if r := w.refundsOf(session.ID); len(r) != 1 || r[0].Status != flow.RefundFailed {
				t.Errorf("the refund is %+v", r)
			}
			w.run()
			w.rest()
			if n := w.calls()["disburse"]; n != 0 {
				t.Errorf("the bank was told %d times to send what it had taken back", n)
			}
			if read := w.lastRead(len(told)); read != strings.Join(told, " ") {
				t.Errorf("of %d kobo the payer read %q", taken, read)
			}
			if left > 0 {
				w.tells(session.ID, "The chat hears that the bank refused to send back what was to go back (₦3,000).")
			}
		})
	}
}
