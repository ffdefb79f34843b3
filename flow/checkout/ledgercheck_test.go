package checkout_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// ledger checks everything that is kept against everything that the bank booked.
func (w *world) ledger(inFlight time.Duration) checkout.LedgerReport {
	w.t.Helper()
	return w.ledgerAt(inFlight, w.clock(), time.Time{})
}

// ledgerAt does so by two clocks.
func (w *world) ledgerAt(inFlight time.Duration, ours, ofRail time.Time) checkout.LedgerReport {
	w.t.Helper()
	report, err := checkout.CheckLedger(w.t.Context(), w.db, checkout.LedgerCheck{Now: ours, RailNow: ofRail, InFlight: inFlight, Statement: func(ctx context.Context) ([]flow.Notice, error) {
		return checkout.WholeStatement(ctx, w.bank.Statement, w.clock())
	}})
	w.must(err)
	return report
}

// proven fails unless every invariant holds, with nothing in flight.
func (w *world) proven() {
	w.t.Helper()
	report := w.ledger(0)
	for _, i := range report.Invariants {
		if i.Wrong > 0 || i.InFlight > 0 || i.Skipped != "" {
			w.t.Errorf("%s: %d wrong, %d in flight: %v", i.Name, i.Wrong, i.InFlight, i.Offenders)
		}
	}
}

// sound fails unless what a test leaves agrees with itself: with what the bank
// did not say yet, or said only to the test, it cannot be compared.
func (w *world) sound() {
	ctx := context.WithoutCancel(w.t.Context())
	db, err := store.Open(ctx, w.store) // the program may have ended, or crashed
	if err != nil {
		w.t.Errorf("open the store to check the ledger: %v", err)
		return
	}
	defer func() { _ = db.Close() }()
	report, err := checkout.CheckLedger(ctx, db, checkout.LedgerCheck{Now: w.clock()})
	if err != nil {
		w.t.Errorf("check the ledger: %v", err)
	}
	var rows []checkout.Invariant
	err = db.View(ctx, func(r store.Reader) (err error) {
		rows, err = checkout.RowsOf(ctx, r, store.Checkout, nil)
		return err
	})
	if err != nil {
		w.t.Errorf("check the rows: %v", err)
	}
	for _, i := range slices.Concat(report.Invariants, rows) {
		if i.Wrong > 0 {
			w.t.Errorf("%s is broken: %+v", i.Name, i.Offenders)
		}
	}
	w.documented(ctx, db)
}

// heardOf waits until a session's payments are there and the payer was told of them:
// a digit answers the menu that was shown last, and news may come with one.
func (w *world) heardOf(s flow.Session, payments int) {
	w.t.Helper()
	w.until("the money is here", func() bool { return len(w.payments(s.ID)) == payments })
	w.rest()
}

// everything lets money go every way: paid, a part, too much, twice, taken back,
// for nobody, sent back and bounced.
func (w *world) everything() (paid, part flow.Session) {
	w.t.Helper()
	paid, first := w.paidFor(500_000)
	part, _ = w.paying()
	w.pay(part.ID, 200_000, false)
	w.heardOf(part, 1)
	excess, _ := w.paidFor(700_000)
	w.pay(excess.ID, 500_000, false)
	w.heardOf(excess, 2)
	back, _ := w.paidFor(500_000)
	_, err := w.bank.Reverse(w.t.Context(), w.payments(back.ID)[0].RailTransactionID)
	w.must(err)
	_, err = w.bank.Transfer(w.t.Context(), rail.Transfer{AccountNumber: "9990000001", Amount: 12_345, SenderName: "BOLA ADE", ValueTime: w.clock()})
	w.must(err)
	w.goesBack(first, 100_000)
	w.weather(rail.Conditions{Refunds: rail.FateBounce})
	bounced := w.goesBack(first, 50_000)
	w.pass(2 * time.Second)
	w.becomes(bounced.ID, flow.RefundAttention)
	w.weather(rail.Conditions{Refunds: rail.FatePending})
	open := w.ordered(first, 30_000)
	w.becomes(open.ID, flow.RefundProcessing)
	w.until("all of it is booked", func() bool {
		report := w.ledger(0)
		return report.Balances[flow.RailClearing] == report.Rail
	})
	w.rest()
	return paid, part
}

func TestALedgerThatIsRightIsFoundRight(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.everything()
		w.proven()
		report := w.ledger(0)
		if want := flow.Kobo(500_000 + 200_000 + 700_000 + 500_000 + 12_345 - 100_000 + 500_000 - 500_000); report.Rail != want {
			w.t.Errorf("the rail's statement comes to %d, not %d", report.Rail, want)
		}
		for _, i := range report.Invariants {
			if i.Checked == 0 && !strings.Contains(i.Name, "resolutions") && !strings.Contains(i.Name, "settle") {
				w.t.Errorf("%s checked nothing", i.Name)
			}
		}
	})
}

// unlocked lets a test write what the schema forbids.
func (w *world) unlocked() {
	w.t.Helper()
	w.spoilt = true
	if w.store.URL == "" {
		w.change("DROP TRIGGER ledger_never_changes")
		w.change("DROP TRIGGER ledger_never_forgets")
	} else {
		w.change("ALTER TABLE ledger DISABLE TRIGGER ledger_stays")
	}
	w.change("DROP INDEX event_once")
}

// Whatever is wrong with the ledger is found, by the invariant that it breaks and
// by no other that is not broken too.
func TestWhateverIsWrongWithTheLedgerIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		paid, part := w.everything()
		w.unlocked()
		p := w.payments(paid.ID)[0]
		of := func(text string) string {
			return strings.NewReplacer("{payment}", string(p.ID), "{session}", string(paid.ID), "{part}", string(part.ID), "{rail}", p.RailTransactionID).Replace(text)
		}
		const rows, cols = "INSERT INTO ledger (kind, subject, payment, project, ", ", created_at, rail_id, value_at) "
		for _, c := range []struct {
			what, plant, mend string
			broken            []string
		}{
			{
				"money from nowhere", rows + "rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled" + cols +
					"VALUES ('payment', 'wsp_pay_none', 'wsp_pay_none', 'wsp_prj_1', 700, 0, 0, -700, 0, 0, 0, 1, 'none', 1)",
				"DELETE FROM ledger WHERE subject = 'wsp_pay_none'",
				[]string{"I2 rail", "I3 rail", "I3 strays"},
			},
			{
				"a payment's transaction is gone", "UPDATE ledger SET kind = 'settle' WHERE subject = '{payment}' AND kind = 'payment'",
				"UPDATE ledger SET kind = 'payment' WHERE subject = '{payment}'",
				[]string{"I3 paid", "I3 payments", "I3 strays"},
			},
			{
				"a payment is booked with another amount", "UPDATE ledger SET rail_clearing = rail_clearing + 1, fees = fees - 1 WHERE kind = 'payment' AND subject = '{payment}'",
				"UPDATE ledger SET rail_clearing = rail_clearing - 1, fees = fees + 1 WHERE kind = 'payment' AND subject = '{payment}'",
				[]string{"I2 rail", "I3 payments", "I3 rail"},
			},
			{
				"a fee that nobody set", "UPDATE ledger SET fees = fees - 1, merchant_pending = merchant_pending + 1 WHERE kind = 'payment' AND subject = '{payment}'",
				"UPDATE ledger SET fees = fees + 1, merchant_pending = merchant_pending - 1 WHERE kind = 'payment' AND subject = '{payment}'",
				[]string{"I3 payments", "I3 pending"},
			},
			{
				"a payment is booked under another name", "UPDATE ledger SET rail_id = 'other' WHERE kind = 'payment' AND subject = '{payment}'",
				"UPDATE ledger SET rail_id = '{rail}' WHERE kind = 'payment' AND subject = '{payment}'",
				[]string{"I3 payments", "I3 rail"},
			},
			{
				"nobody's money is booked for a project", "UPDATE ledger SET project = 'wsp_prj_1' WHERE kind = 'payment' AND subject IN (SELECT id FROM payments WHERE match_status = 'UNMATCHED')", "UPDATE ledger SET project = '' WHERE kind = 'payment' AND subject IN (SELECT id FROM payments WHERE match_status = 'UNMATCHED')",
				[]string{"I3 payments"},
			},
			{
				"money is booked and not for its payment", "UPDATE ledger SET payment = '' WHERE kind = 'payment' AND subject IN (SELECT id FROM payments WHERE match_status = 'UNMATCHED')", "UPDATE ledger SET payment = subject WHERE kind = 'payment' AND subject IN (SELECT id FROM payments WHERE match_status = 'UNMATCHED')",
				[]string{"I3 payments"},
			},
			{
				"money that is set aside for nothing", "UPDATE ledger SET unapplied = unapplied - 9, merchant_pending = merchant_pending + 9 WHERE kind = 'payment' AND subject = '{payment}'",
				"UPDATE ledger SET unapplied = unapplied + 9, merchant_pending = merchant_pending - 9 WHERE kind = 'payment' AND subject = '{payment}'",
				[]string{"I3 paid", "I3 pending", "I3 reasons"},
			},
			{
				"a payment that comes too often is half the merchant's",
				"UPDATE ledger SET unapplied = unapplied + 8, merchant_pending = merchant_pending - 8 WHERE kind = 'payment' AND subject IN (SELECT id FROM payments WHERE match_status = 'UNMATCHED')",
				"UPDATE ledger SET unapplied = unapplied - 8, merchant_pending = merchant_pending + 8 WHERE kind = 'payment' AND subject IN (SELECT id FROM payments WHERE match_status = 'UNMATCHED')",
				[]string{"I3 aside", "I3 pending"},
			},
			{
				"a session that says it was paid more", "UPDATE sessions SET amount_paid = amount_paid + 1 WHERE id = '{part}'",
				"UPDATE sessions SET amount_paid = amount_paid - 1 WHERE id = '{part}'",
				[]string{"I3 paid"},
			},
			{
				"a paid session that asked for more", "UPDATE sessions SET amount = amount + 100 WHERE id = '{session}'",
				"UPDATE sessions SET amount = amount - 100 WHERE id = '{session}'",
				[]string{"I3 whole"},
			},
			{
				"an acceptance that nobody decided", rows + "rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled" + cols +
					"VALUES ('accept', '{payment}', '{payment}', 'wsp_prj_1', 0, 0, 0, 5, -5, 0, 0, 1, '', 0)", "DELETE FROM ledger WHERE kind = 'accept'",
				[]string{"I3 paid", "I3 payments", "I3 reasons", "I3 resolutions"},
			},
			{"a decision that was not booked", "UPDATE payments SET resolution = 'ACCEPTED' WHERE id = '{payment}'", "UPDATE payments SET resolution = '' WHERE id = '{payment}'", []string{"I3 resolutions"}},
			{
				"more is set aside of a payment than it has left, beside others that wait",
				rows + "rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled" + cols +
					"SELECT 'accept', 'planted' || id, id, project, 0, 0, 0, CASE WHEN match_status = 'UNMATCHED' THEN -1 ELSE 1 END, CASE WHEN match_status = 'UNMATCHED' THEN 1 ELSE -1 END, 0, 0, 1, '', 0 FROM payments WHERE match_status IN ('UNMATCHED', 'DUPLICATE')",
				"DELETE FROM ledger WHERE subject LIKE 'planted%'",
				[]string{"I3 left", "I3 payments"},
			},
			{
				"what went back is set aside too", "UPDATE refunds SET put_back = 1 WHERE status = 'PROCESSED' AND payment = '{payment}'", "UPDATE refunds SET put_back = 0 WHERE status = 'PROCESSED'",
				[]string{"I3 refunds"},
			},
			{
				"more goes back than came",
				"INSERT INTO refunds (id, project, payment, session, amount, aside, status, origin, reason, reference, tries, held, returned, rail_transaction_id, failure, created_at, sent_at, done_at) " +
					"VALUES ('wsp_rfd_planted', 'wsp_prj_1', '{payment}', '{session}', 500000, 0, 'PENDING', 'MERCHANT', '', 'wsp_rfd_planted', 0, 0, 0, '', '', 1, 0, 0)",
				"DELETE FROM refunds WHERE id = 'wsp_rfd_planted'",
				[]string{"I3 payable", "I3 refunds", "I3 sent back"},
			},
			{"a reversal that was not booked", "UPDATE reversals SET amount = amount + 1", "UPDATE reversals SET amount = amount - 1", []string{"I3 reversals"}},
			{
				"a refund that was not sent counts as sent", "UPDATE refunds SET status = 'PROCESSED', done_at = 1 WHERE status = 'PROCESSING'",
				"UPDATE refunds SET status = 'PROCESSING', done_at = 0 WHERE done_at = 1",
				[]string{"I3 payable", "I3 refunds"},
			},
			{
				"a refund is gone and its money waits", "UPDATE refunds SET amount = amount - 1 WHERE status = 'PROCESSING'", "UPDATE refunds SET amount = amount + 1 WHERE status = 'PROCESSING'",
				[]string{"I3 payable", "I3 refunds"},
			},
			{"a merchant was not told", "UPDATE events SET kind = 'ping' WHERE kind = 'charge.success' AND session = '{session}'", "UPDATE events SET kind = 'charge.success' WHERE kind = 'ping'", []string{"I4 success"}},
			{
				"a merchant was told twice", "UPDATE events SET kind = 'charge.success' WHERE kind = 'refund.pending' AND session = '{session}'",
				"UPDATE events SET kind = 'refund.pending' WHERE kind = 'charge.success' AND session = '{session}' AND sequence > (SELECT MIN(e.sequence) FROM events e WHERE e.session = '{session}' AND e.kind = 'charge.success')",
				[]string{"I4 success"},
			},
			{
				"a merchant was told of what is not paid", "UPDATE events SET kind = 'charge.success' WHERE kind = 'charge.underpaid' AND session = '{part}'",
				"UPDATE events SET kind = 'charge.underpaid' WHERE kind = 'charge.success' AND session = '{part}'",
				[]string{"I4 success"},
			},
			{"a settlement that does not exist", rows + "rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled" + cols +
				"VALUES ('settle', 'wsp_stl_none', '', 'wsp_prj_1', 0, 0, 100, 0, 0, 0, -100, 1, '', 0)", "DELETE FROM ledger WHERE subject = 'wsp_stl_none'", []string{"I3 settled", "I3 strays"}},
			{
				"a settlement that is not booked", "INSERT INTO settlements VALUES ('wsp_stl_x', 'wsp_prj_1', '2026-11-21', 'PENDING', 100, 0, 1, '999', 'b', '1', 'n', 0, 0, '', '', 5, 0, 0)",
				"DELETE FROM settlements",
				[]string{"I3 settled", "I3 settlements"},
			},
			{
				"a settlement is booked for another project",
				"INSERT INTO settlements VALUES ('wsp_stl_x', 'wsp_prj_1', '2026-11-21', 'PENDING', 100, 0, 1, '999', 'b', '1', 'n', 0, 0, '', '', 5, 0, 0); " +
					rows + "rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled" + cols +
					"VALUES ('settle', 'wsp_stl_x', '', 'wsp_prj_2', 0, 0, 100, 0, 0, 0, -100, 1, '', 0)",
				"DELETE FROM settlements; DELETE FROM ledger WHERE subject = 'wsp_stl_x'",
				[]string{"I3 settled", "I3 settlements", "I3 strays"},
			},
		} {
			w.change(of(c.plant))
			report := w.ledger(0)
			if got := report.Names(); !slices.Equal(got, c.broken) {
				w.t.Errorf("%s: broken is %v, want %v", c.what, got, c.broken)
			}
			for _, i := range report.Invariants {
				if i.Wrong > 0 && (len(i.Offenders) == 0 || i.Offenders[0].ID == "" || i.Offenders[0].Next == "") {
					w.t.Errorf("%s: %s does not say who or what to do: %+v", c.what, i.Name, i.Offenders)
				}
				if i.Name == "I3 payments" && i.Wrong > 0 && !strings.Contains(i.Offenders[0].Says, "; it is of "+w.clock().Format(time.DateOnly)) {
					w.t.Errorf("%s: %s does not say when it came: %+v", c.what, i.Name, i.Offenders)
				}
			}
			w.change(of(c.mend))
			if got := w.ledger(0).Names(); len(got) > 0 {
				w.t.Fatalf("%s: mended, and still %v", c.what, got)
			}
		}
		// A row that does not sum to zero needs the schema's own check out of the way.
		if w.store.URL != "" {
			w.change("ALTER TABLE ledger DROP CONSTRAINT ledger_check")
			w.change(of("UPDATE ledger SET fees = fees - 1 WHERE kind = 'payment' AND subject = '{payment}'"))
			if got := w.ledger(0).Names(); !slices.Equal(got, []string{"I1 projects", "I1 rows", "I3 payments"}) {
				w.t.Errorf("a row that does not sum to zero: %v", got)
			}
		}
	})
}

// What the bank sent and the ledger does not know may have been ordered by what a restore
// took away: nobody is told to wait until it is found.
func TestWhatARestoreTookAwayIsNotSaidToBeFound(t *testing.T) {
	t.Parallel()
	w := one(t)
	sent := flow.Notice{Kind: flow.PaidOut, RailTransactionID: "rail-1", Reference: "wsp_rfd_01jd0000000000000000000001", Amount: 100_000, PaidAt: w.clock()}
	came := flow.Notice{Kind: flow.Credit, RailTransactionID: "rail-2", Amount: 100_000, PaidAt: w.clock()}
	report, err := checkout.CheckLedger(t.Context(), w.db, checkout.LedgerCheck{
		Now: w.clock(), Statement: func(context.Context) ([]flow.Notice, error) { return []flow.Notice{sent, came}, nil },
	})
	w.must(err)
	i := slices.IndexFunc(report.Invariants, func(i checkout.Invariant) bool { return i.Name == "I3 rail" })
	if list := report.Invariants[i].Offenders; len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	for _, o := range report.Invariants[i].Offenders {
		if doubted := strings.HasPrefix(o.Next, "unless a restore took away what ordered it, it is found"); doubted != (o.ID == "rail-1") {
			t.Errorf("%s: %s", o.ID, o.Next)
		}
	}
}

// What the bank has and we have not heard of is in flight for a minute, and
// wrong afterwards.
func TestMoneyOnItsWayIsInFlightForAMinute(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paying()
	w.pay(session.ID, 500_000, true)
	if report := w.ledger(time.Minute); !report.Holds() || report.Rail != 0 {
		t.Errorf("just now: %v", report.Names())
	}
	if report := w.ledger(0); !slices.Equal(report.Names(), []string{"I2 rail", "I3 rail"}) {
		t.Errorf("too late: %v", report.Names())
	}
	for _, at := range []struct {
		ours, ofRail time.Duration // since the movement
		young        bool
	}{{72 * time.Hour, 30 * time.Second, true}, {72 * time.Hour, -30 * time.Second, true}, {30 * time.Second, -72 * time.Hour, true}, {time.Hour, -71 * time.Hour, false}, {72 * time.Hour, time.Minute, false}} {
		if report := w.ledgerAt(time.Minute, w.clock().Add(at.ours), w.clock().Add(at.ofRail)); report.Holds() != at.young {
			t.Errorf("%v later by ours and %v by the rail's: %v", at.ours, at.ofRail, report.Names())
		}
	}
	w.pass(time.Minute)
	w.until("it is found", func() bool { return w.read(session.ID).Status == flow.SessionPaid })
	w.rest()
	w.proven()
}
