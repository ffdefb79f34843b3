package checkout_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// A held part is refunded while the rest of it comes: either it counts, or it goes
// back. A session is never paid with money that is on its way back.
func TestAPartThatIsRefundedAsTheRestComesCountsOrGoesBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		paid, short := 0, 0
		for round := range 12 {
			session := w.session(flow.Headless)
			_, _, err := w.service.Instruct(t.Context(), project, session.ID, checkout.Ask{Method: flow.BankTransfer})
			w.must(err)
			a := w.attempts(session.ID)[0]
			w.must(w.tell(said(flow.Credit, fmt.Sprint("P", round), a, 200_000, w.clock())))
			w.rest()
			part := w.payments(session.ID)[0]
			rest := said(flow.Credit, fmt.Sprint("Q", round), a, 300_000, w.clock())
			w.rail.set(func(r *shakyRail) { r.parsed = []flow.Notice{rest} })
			var refund flow.Refund
			var refused, unkept error
			start, looked := make(chan struct{}), make(chan struct{})
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					<-looked // it fails at once
					return call()
				}
			})
			var all sync.WaitGroup
			all.Go(func() { <-start; refund, refused = w.refund(part, 200_000) })
			all.Go(func() { <-start; unkept = w.service.Notice(t.Context(), nil, nil) })
			close(start)
			all.Wait()
			w.must(errors.Join(refused, unkept))
			s, part := w.read(session.ID), w.payment(part.ID)
			switch s.Status {
			case flow.SessionPaid: // the rest was first: what goes back is the merchant's
				paid++
				if refund.Aside != 0 || refund.Held || s.AmountPaid != 500_000 || part.Applied != 200_000 || w.events(session.ID)[flow.ChargeSuccess] != 1 {
					t.Errorf("round %d: paid with %d, the part %+v, its refund %+v", round, s.AmountPaid, part, refund)
				}
			case flow.SessionPending: // the refund was first: the rest is all there is
				short++
				if refund.Aside != 200_000 || !refund.Held || s.AmountPaid != 300_000 || part.Applied != 0 || part.Resolution != flow.ResolvedRefunded || w.events(session.ID)[flow.ChargeSuccess] != 0 {
					t.Errorf("round %d: it has %d, the part %+v, its refund %+v", round, s.AmountPaid, part, refund)
				}
			case flow.SessionProcessing, flow.SessionExpired, flow.SessionCancelled:
				t.Errorf("round %d: the session is %s", round, s.Status)
			}
			close(looked)
			// The pretend bank knows nothing of such money: what should go back stays, and
			// then the session has all of it.
			w.becomes(refund.ID, flow.RefundFailed)
			if s, part = w.read(session.ID), w.payment(part.ID); s.Status != flow.SessionPaid || s.AmountPaid != 500_000 || len(s.Exceptions) != 0 || part.Applied != 200_000 || w.events(session.ID)[flow.ChargeSuccess] != 1 {
				t.Errorf("round %d: it has all, and is %s with %d: %+v, told %v", round, s.Status, s.AmountPaid, part, w.events(session.ID))
			}
			w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		}
		t.Logf("the rest was first %d times, the refund %d times", paid, short)
	})
}

// What two processes keep of a session they keep in one order, its log before its events, whoever
// begins: a refund is asked for at one of them while the other keeps what the bank said. Each
// would else wait for the other, until PostgreSQL sees it a second later.
func TestALineOfTheLogIsKeptBeforeItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Postgres(t, store.Checkout))
	w.start(false)
	session := w.session(flow.Headless)
	_, _, err := w.service.Instruct(t.Context(), project, session.ID, checkout.Ask{Method: flow.BankTransfer})
	w.must(err)
	w.paid(session)
	w.rest()
	other := storetest.Open(t, w.store)
	eye, err := sql.Open("pgx", w.store.URL)
	w.must(err)
	t.Cleanup(func() { _ = eye.Close() })
	var first sync.Once
	begun, end, left, asked := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	goOn := sync.OnceFunc(func() { close(end) })
	defer goOn() // a test that fails leaves nobody waiting
	errLeft := errors.New("nothing of it is kept")
	go func() {
		left <- other.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Append(t.Context(), store.Line{Stream: string(session.ID), At: w.clock(), Kind: "bank.notice", Session: session.ID}); err != nil {
				return err // it holds nothing
			}
			first.Do(func() { close(begun) }) // what fails is tried by itself
			<-end
			return errLeft
		})
	}()
	select {
	case <-begun:
	case err := <-left:
		t.Fatalf("no line is held: %v", err)
	}
	go func() {
		_, err := w.refund(w.payments(session.ID)[0], 500_000)
		asked <- err
	}()
	var waits, wrote int
	w.until("the refund waits for the log", func() bool {
		select {
		case err := <-asked:
			t.Fatalf("it waited for nothing: %v", err)
		default:
		}
		w.must(eye.QueryRowContext(t.Context(), `SELECT COUNT(DISTINCT a.pid), COUNT(l.pid) FROM pg_stat_activity a
 LEFT JOIN pg_locks l ON l.pid = a.pid AND l.relation = to_regclass($1) AND l.mode = 'RowExclusiveLock'
 WHERE a.wait_event_type = 'Lock' AND a.datname = current_database() AND a.query LIKE 'INSERT INTO log%'`, w.store.Name+".events").Scan(&waits, &wrote))
		return waits > 0
	})
	goOn()
	if err := <-left; !errors.Is(err, errLeft) {
		t.Error(err)
	}
	w.must(<-asked)
	if wrote > 0 {
		t.Error("it waits for the log with its event kept")
	}
}

// Many refunds at once take no more of a merchant's money than there is.
func TestManyRefundsAtOnceAreWithinTheBalance(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		var payments []flow.Payment
		for range 4 {
			payments = append(payments, w.earns())
		}
		w.at("2026-11-23T08:00:01Z")
		w.ended(project, 1)
		w.earns() // 482 500 is there
		errs := make([]error, 12)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = w.refund(payments[i%4], 100_000) })
		}
		all.Wait()
		made := 0
		for _, err := range errs {
			switch {
			case err == nil:
				made++
			case flow.CodeOf(err) != flow.CodeRefundOverBalance:
				t.Errorf("one ended with %v", err)
			}
		}
		if made < 4 || made > 5 { // the fees of three payments or of four make up for the last of five
			t.Errorf("%d refunds of 100 000 were made of 482 500", made)
		}
		var refusal *flow.Error
		if _, err := w.refund(payments[0], 200_000); !errors.As(err, &refusal) || refusal.Code != flow.CodeRefundOverBalance || refusal.Details["neededMinor"] != "200000" {
			t.Errorf("%v", err)
		}
		w.rest()
	})
}

// What is set aside goes back whatever the merchant has.
func TestWhatIsSetAsideGoesBackWithoutABalance(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.pay(session.ID, 500_000, false)
		w.until("it came twice", func() bool { return len(w.payments(session.ID)) == 2 })
		w.at("2026-11-23T08:00:01Z")
		w.ended(project, 1)
		if _, err := w.refund(p, 500_000); flow.CodeOf(err) != flow.CodeRefundOverBalance {
			t.Errorf("what was paid out: %v", err)
		}
		for _, again := range w.payments(session.ID) { // the clock has seen to the other
			if again.Match == flow.Duplicate && (again.Resolution != flow.ResolvedRefunded || again.ResolvedBy != flow.ByClock) {
				t.Errorf("it came twice: %+v", again)
			}
		}
		w.until("the bank to say that it is back", func() bool {
			r := w.refundsOf(session.ID)
			return len(r) == 1 && r[0].Status == flow.RefundProcessed
		})
		if r := w.refundsOf(session.ID); r[0].Origin != flow.OriginClock {
			t.Errorf("%+v", r)
		}
	})
}

// Our fee goes back with a payment that the bank takes back whole: what the record
// says is what is booked.
func TestOfAPaymentThatIsTakenBackWholeNothingIsKept(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(600_000) // of which ₦1,000 is too much
		a := w.attempts(session.ID)[0]
		for i, c := range []struct{ back, fee, net flow.Kobo }{{150_000, 17_500, 432_500}, {450_000, 0, 0}} {
			w.must(w.tell(reversal(fmt.Sprint("R", i), p.RailTransactionID, a, c.back, w.clock())))
			w.rest()
			p = w.payment(p.ID)
			booked := w.accounts(session.ID)
			if record := flow.RecordPayment(p); record.FeeMinor != c.fee.Minor() || record.NetMinor != c.net.Minor() || booked[flow.Fees] != -c.fee || booked[flow.MerchantPending] != -c.net {
				t.Errorf("%d back: the record says fee %s and net %s, the ledger %v", c.back, record.FeeMinor, record.NetMinor, booked)
			}
			view, err := w.service.ViewOfCharge(t.Context(), project, session.Charge)
			w.must(err)
			if charge := w.service.RecordCharge(view); charge.FeeMinor != c.fee.Minor() || charge.NetMinor != c.net.Minor() {
				t.Errorf("%d back: the charge says fee %s and net %s", c.back, charge.FeeMinor, charge.NetMinor)
			}
		}
		w.pass(time.Second)
		var made checkout.Made
		if _, err := w.service.Refund(t.Context(), checkout.NewRefund{Payment: p.ID}, call("", "", &made)); flow.CodeOf(err) != flow.CodeRefundExceeds {
			t.Errorf("what is gone is refunded: %v", err)
		}
	})
}

// A part that stays after all beside more than the rest of it: what is beyond is
// too much, and goes where the policy says.
func TestAPartThatStaysBesideMoreThanTheRestIsTooMuch(t *testing.T) {
	t.Parallel()
	for policy, aside := range map[string]flow.Kobo{"accept": 100_000, "refund_excess": 0} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				session := w.payingUnder(func(p *flow.Policy) { p.Overpayment = policy })
				part := w.comes(session.ID, 200_000)
				w.weather(rail.Conditions{Refunds: rail.FateFail})
				r := w.ordered(part, 200_000)
				w.rest()
				w.comes(session.ID, 400_000)
				w.pass(time.Second)
				w.becomes(r.ID, flow.RefundFailed)
				s := w.read(session.ID)
				if s.Status != flow.SessionPaid || s.AmountPaid != 500_000 || fmt.Sprint(s.Exceptions) != "[OVERPAID]" || w.events(session.ID)[flow.ChargeSuccess] != 1 {
					t.Errorf("%+v, told %v", s, w.events(session.ID))
				}
				w.weather(rail.Conditions{})
				w.passes(3, time.Hour) // what was refused meanwhile is sent again
				if part = w.payment(part.ID); part.Applied != 100_000 || part.Unapplied != aside || part.Refunded != 100_000-aside || part.ReturnsAt.IsZero() != (aside == 0) {
					t.Errorf("the part: %+v", part)
				}
				if waits, err := w.db.Waits(t.Context(), store.QueueFilter{Queue: store.QueueOverpaid, Now: w.clock(), Limit: 9}); err != nil || (len(waits) == 1) != (aside > 0) {
					t.Errorf("what is too much: %+v (%v)", waits, err)
				}
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000 + aside, flow.Unapplied: -aside, flow.MerchantPending: -482_500, flow.Fees: -17_500})
				w.proven()
			})
		})
	}
}

// In a session that is over they only wait, and are all of it once they are accepted.
func TestPartsThatAreAllOfItInASessionThatIsOverWait(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		part := w.comes(session.ID, 200_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(part, 200_000)
		w.becomes(r.ID, flow.RefundProcessing)
		w.comes(session.ID, 300_000)
		w.pass(2 * time.Hour)
		w.until("it is over", func() bool { return w.read(session.ID).Status == flow.SessionExpired })
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "N1", Amount: r.Amount, PaidAt: w.clock()}))
		w.becomes(r.ID, flow.RefundFailed)
		if s := w.read(session.ID); s.Status != flow.SessionExpired {
			t.Errorf("%+v", s)
		}
		part, err := w.resolve(part.ID, true)
		w.must(err)
		if s := w.read(session.ID); s.Status != flow.SessionPaid || s.AmountPaid != 500_000 || part.Applied != 200_000 {
			t.Errorf("accepted: %+v, %+v", s, part)
		}
		w.rest()
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
	})
}

// While a bank is slow to say what became of a refund, it tells that the money was sent,
// and that it came back, and the merchant has it sent again, under another name. The
// answer is about the old one: the new one is sent all the same.
func TestAnAnswerAboutTheOldNameOfARefundSaysNothingOfTheNewOne(t *testing.T) {
	t.Parallel()
	w := one(t)
	_, p := w.paidFor(500_000)
	asked, answer := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(answer) })
	defer goOn()
	var first sync.Once
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()}, nil
		}
		r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			first.Do(func() { close(asked) })
			<-answer
			return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
		}
	})
	r := w.ordered(p, 200_000)
	w.becomes(r.ID, flow.RefundProcessing)
	w.pass(time.Minute)
	<-asked
	w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: r.Reference, RailTransactionID: "B1", Amount: r.Amount, PaidAt: w.clock()}))
	w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "B2", Reverses: "B1", Amount: r.Amount, PaidAt: w.clock()}))
	_, err := w.service.RetryRefund(t.Context(), r.ID, "wsp_key_1", call("", "", nil))
	w.must(err)
	w.rail.set(func(r *shakyRail) { r.onSendOut, r.onSentOut = nil, nil })
	goOn()
	w.passes(3, 2*time.Second)
	if r = w.becomes(r.ID, flow.RefundProcessed); r.Reference != string(r.ID)+"-2" || r.RailTransactionID == "B1" || w.calls()["disburse"] != 1 {
		t.Errorf("the bank was told %d times: %+v", w.calls()["disburse"], r)
	}
}
