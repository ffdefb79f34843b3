package meter_test

import (
	"database/sql"
	"net/http"
	"os"
	"time"

	_ "modernc.org/sqlite" // changes what the store refuses to change

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
)

// faults are what is done to a Till that works, for each alert: before is a time in
// which all is well, and each is done before every scrape of the fault.
var faults = map[string]struct {
	before func(r *rig)
	fault  func(r *rig)
	each   func(r *rig)
	lasts  time.Duration // beyond what the rule waits
}{
	"TillLedgerDoesNotBalance": {
		before: func(r *rig) { r.must(r.money()) },
		fault:  func(r *rig) { r.spoilLedger() },
	},
	"TillOneAway": {
		before: func(r *rig) { r.goes(time.Minute, func() { r.kept.up("another", r.clock(), 1) }) },
		each:   func(r *rig) { r.kept.up("another", r.clock(), 0) },
	},
	"TillExceptionWaits":     {fault: func(r *rig) { r.must(r.money()) }, lasts: 11 * time.Minute},
	"TillExceptionForgotten": {fault: func(r *rig) { r.must(r.money()); r.passes(24 * time.Hour) }, lasts: time.Minute},
	"TillNoCharges": {
		before: func(r *rig) {
			r.goes(2*time.Minute, nil)
			for range 6 { // as many as came a week ago
				r.goes(time.Minute, func() { r.meter.Of(flow.Live).Payment(flow.Matched, 500_000) })
			}
			r.passes(7*24*time.Hour - 20*time.Minute)
		},
		lasts: 32 * time.Minute,
	},
	"TillBankAway": {
		before: func(r *rig) { r.asksBank() },
		fault:  func(r *rig) { r.bankDown.Store(true) }, each: func(r *rig) { r.asksBank() }, lasts: 2 * time.Minute,
	},
	"TillWebhooksLate": {
		before: func(r *rig) { r.run() },
		fault: func(r *rig) {
			r.set(func() { r.verdict = flow.Verdict{Reason: "refused"} })
			r.owe(func(d checkout.Deliveries) int64 { return d.Failed })
		},
		lasts: 16 * time.Minute,
	},
	"TillWebhooksHeld": {
		before: func(r *rig) { r.run() },
		fault:  func(r *rig) { r.holdsBack() }, lasts: 16 * time.Minute,
	},
	"TillWebhooksGivenUp": {
		before: func(r *rig) { r.run() },
		fault: func(r *rig) {
			r.set(func() { r.verdict, r.again = flow.Verdict{Reason: "gone", Gone: true}, false })
			r.owe(func(d checkout.Deliveries) int64 { return d.Dead })
		},
		lasts: time.Minute,
	},
	"TillWhatsAppDown": {
		fault: func(r *rig) {
			r.set(func() { r.numbers = []flow.Number{{Slot: 1, Digits: "2349010000001", State: flow.NumberConnecting}} })
		},
	},
	"TillWhatsAppLoggedOut": {
		fault: func(r *rig) {
			r.set(func() { r.numbers = []flow.Number{{Slot: 1, Digits: "2349010000001", State: flow.NumberLoggedOut}} })
		},
	},
	"TillWhatsAppReplaced":      {fault: func(r *rig) { r.beside(flow.NumberReplaced, 0) }},
	"TillWhatsAppNotHearing":    {fault: func(r *rig) { r.beside(flow.NumberDeaf, 0) }},
	"TillWhatsAppTimelocked":    {fault: func(r *rig) { r.beside(flow.NumberTimelocked, 0) }},
	"TillWhatsAppPhoneAway":     {fault: func(r *rig) { r.beside(flow.NumberPhoneAway, flow.PhoneAwayWarns) }},
	"TillWhatsAppPhoneAwayLong": {fault: func(r *rig) { r.beside(flow.NumberDraining, flow.PhoneAwayAlarms) }},
	"TillChatNotSent":           {fault: func(r *rig) { r.hears(flow.Intent{Kind: flow.MeansNothing, Text: "hello"}) }, lasts: 16 * time.Minute}, // nobody sends it
	"TillChatGivenUp": {
		before: func(r *rig) { r.run() },
		fault:  func(r *rig) { r.givesUp() }, lasts: time.Minute,
	},
	"TillChatNobodyComes": {
		before: func(r *rig) { r.run() },
		fault:  func(r *rig) { r.callsSomebody() }, lasts: 31 * time.Minute,
	},
	"TillPartAway":      {fault: func(r *rig) { r.away = "store" }},
	"TillRedisAway":     {fault: func(r *rig) { r.away = "redis" }},
	"TillBackupOld":     {before: func(r *rig) { r.old = 25 * time.Hour }, fault: func(r *rig) { r.old = 37 * time.Hour }},
	"TillNeverBackedUp": {fault: func(r *rig) { r.unsaved = true }},
	"TillErrors": {
		before: func(r *rig) { r.goes(5*time.Minute, func() { r.answers(http.StatusOK) }) },
		each:   func(r *rig) { r.answers(http.StatusInternalServerError) }, lasts: 2 * time.Minute,
	},
	"TillCommitsSlow": {
		before: func(r *rig) { r.goes(5*time.Minute, func() { r.commits(time.Millisecond) }) },
		each:   func(r *rig) { r.commits(400 * time.Millisecond) }, lasts: 2 * time.Minute,
	},
	"TillDiskFull": {fault: func(r *rig) { r.free = 9 << 30 }},
	"TillLogNotWrittenBack": {
		before: func(r *rig) { r.must(os.WriteFile(r.log, []byte("short"), 0o600)) },
		fault:  func(r *rig) { r.must(os.Truncate(r.log, 300<<20)) },
	},
	"TillClockWrong": {
		before: func(r *rig) { r.goes(time.Minute, nil); r.steps(time.Hour); r.goes(11*time.Minute, nil) }, // it was set, and that was right
		fault:  func(r *rig) { r.wrong = -3 * time.Second },
	},
	"TillFiguresStale": {fault: func(r *rig) { r.must(r.db.Close()) }, lasts: 3 * time.Minute},
}

// ordinary is what goes by the rules and is older than a day: less came than is
// due, for a session that waits for the rest and for one that is over; what is too
// much, late or twice is its merchant's to decide about; a webhook was given up, and
// one is held for an endpoint that its merchant disabled. The
// test environment, whose clock was moved by months, has worse.
func (r *rig) ordinary() {
	r.t.Helper()
	r.seed(r.db, flow.Partial, flow.Excess, flow.Late, flow.Duplicate)
	r.exec("UPDATE deliveries SET state = 'dead', done_at = created_at WHERE state = 'pending'",
		"UPDATE endpoints SET status = 'DISABLED', open_since = 0, wake_at = 0 WHERE id = 'wsp_we_away'")
	r.seed(r.pretend, flow.Unmatched)
	r.passes(26 * time.Hour)
	r.set(func() { r.moved = 90 * 24 * time.Hour })
}

// seed puts into a store a session that some money came for, one payment for each
// outcome, a webhook that is owed, and one that is held for an endpoint that does not
// answer.
func (r *rig) seed(db *store.DB, outcomes ...flow.MatchStatus) {
	r.t.Helper()
	const project, amount = "wsp_prj_ordinary", 200_000
	ctx, now := r.t.Context(), r.clock()
	r.must(db.Update(ctx, func(tx *store.Tx) error {
		open := flow.Session{
			ID: "wsp_sess_open", Project: project, Merchant: "Ada Stores", Mode: flow.Headless, Amount: 500_000, AmountPaid: amount, Status: flow.SessionPending,
			AllowedMethods: flow.Methods(), CustomerEmail: "bola@example.com", Policy: flow.DefaultPolicy(), CreatedAt: now, ExpiresAt: now.Add(7 * 24 * time.Hour),
		}
		over := open
		over.ID, over.AmountPaid, over.Status = "wsp_sess_over", 0, flow.SessionExpired
		for _, s := range []flow.Session{open, over} {
			if _, err := tx.AddSession(ctx, s); err != nil {
				return err
			}
		}
		for _, outcome := range outcomes {
			p := flow.Payment{
				ID: flow.PaymentID("wsp_pay_" + outcome), Project: project, Session: over.ID, Amount: amount, Channel: flow.BankTransfer, PaidAt: now, ReceivedAt: now,
				RailTransactionID: string(outcome), Match: outcome, ReturnsAt: now.Add(flow.ReturnAfter),
			}
			if outcome == flow.Unmatched {
				p.Session = ""
			}
			postings := []flow.Posting{{Account: flow.RailClearing, Amount: amount}, {Account: flow.Unapplied, Amount: -amount}}
			if err := tx.AddPayment(ctx, p, postings); err != nil {
				return err
			}
		}
		to := flow.Endpoint{
			ID: "wsp_we_ordinary", Project: project, URL: "https://ordinary.example/hook", Events: []flow.EventKind{flow.ChargeLate}, Secrets: []string{"whsec_x"},
			Status: flow.EndpointEnabled, CreatedAt: now,
		}
		away := to
		away.ID, away.URL = "wsp_we_away", "https://away.example/hook"
		for _, e := range []flow.Endpoint{to, away} {
			if err := tx.AddEndpoint(ctx, e); err != nil {
				return err
			}
		}
		told := flow.Event{ID: "evt_ordinary", Kind: flow.ChargeLate, Project: project, Session: over.ID, Sequence: 1, CreatedAt: now, Body: []byte("{}")}
		if err := tx.AddEvent(ctx, told); err != nil {
			return err
		}
		if err := tx.OpenEndpoint(ctx, away.ID, now, now, false); err != nil {
			return err
		}
		held := flow.Delivery{ID: flow.FirstID(flow.PrefixDelivery, now.Add(time.Second)), Event: told.ID, Endpoint: away.ID}
		if err := tx.AddHeldDelivery(ctx, held, now); err != nil {
			return err
		}
		return tx.AddDelivery(ctx, flow.Delivery{ID: flow.FirstID(flow.PrefixDelivery, now), Event: told.ID, Endpoint: to.ID}, now, now)
	}))
}

// exec changes the live store as its own statements would not.
func (r *rig) exec(queries ...string) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+r.file+"?_pragma=busy_timeout(5000)")
	r.must(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, query := range queries {
		_, err := db.ExecContext(r.t.Context(), query)
		r.must(err)
	}
}

// spoilLedger makes a transaction of the ledger wrong, as a disk might: the store
// itself would not.
func (r *rig) spoilLedger() {
	r.t.Helper()
	r.exec("PRAGMA ignore_check_constraints = ON", "DROP TRIGGER ledger_never_changes", "UPDATE ledger SET fees = fees - 7")
}

// holdsBack has an endpoint fail until it is held back.
func (r *rig) holdsBack() {
	r.t.Helper()
	r.set(func() { r.verdict = flow.Verdict{Reason: "refused"} })
	r.owe(func(d checkout.Deliveries) int64 { return d.Failed })
	await.Until(r.t, "the endpoint is held back", func() bool {
		r.session(shop)
		return r.service.Deliveries().HeldBack > 0
	})
}

// asksBank asks the bank a few times, whatever it says.
func (r *rig) asksBank() {
	timed := r.meter.Rail(flow.Live, bank{r: r})
	for range 5 {
		_, _ = timed.Check(r.t.Context(), "wsp_ref_1")
	}
}

// answers are a few requests that are answered.
func (r *rig) answers(code int) {
	for range 20 {
		r.meter.Answering()("/v1/charges", http.MethodPost, code, flow.Live, false)
	}
}

// commits are a few commits that take their time.
func (r *rig) commits(took time.Duration) {
	for range 20 {
		done := r.meter.Commits()
		r.set(func() { r.now = r.now.Add(took) })
		done()
		r.set(func() { r.now = r.now.Add(-took) })
	}
}
