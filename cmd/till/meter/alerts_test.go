package meter_test

import (
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	_ "modernc.org/sqlite" // changes what the store refuses to change

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
)

// ops is where the files for operators are.
var ops = filepath.Join("..", "..", "..", ".ops")

// rules are all alerts, by name.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.Join(ops, "alerts.yml"), false, model.UTF8Validation)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	out := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			out[r.Alert] = r
		}
	}
	return out
}

// engine evaluates expressions as Prometheus does.
func engine(t *testing.T) *promql.Engine {
	t.Helper()
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

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
			r.owe("wsp_prj_1", func(d checkout.Deliveries) int64 { return d.Failed })
		},
		lasts: 16 * time.Minute,
	},
	"TillWebhooksGivenUp": {
		before: func(r *rig) { r.run() },
		fault: func(r *rig) {
			r.set(func() { r.verdict, r.again = flow.Verdict{Reason: "gone", Gone: true}, false })
			r.owe("wsp_prj_1", func(d checkout.Deliveries) int64 { return d.Dead })
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
	"TillPartAway": {fault: func(r *rig) { r.away = true }},
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

// Every alert stays silent while all is well, and fires for its fault, as long as
// it says that it waits.
func TestEveryAlertFiresForItsFaultAndForNothingElse(t *testing.T) {
	for name, rule := range rules(t) {
		if name == "TillDown" { // by what is not there: its own test
			continue
		}
		f, known := faults[name]
		if !known {
			t.Errorf("nothing provokes %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			r, e := newRig(t), engine(t)
			r.must(os.WriteFile(r.log, nil, 0o600))
			r.ordinary()
			if f.before != nil {
				f.before(r)
			}
			r.goes(time.Minute, nil)
			for other, rule := range rules(t) {
				if r.kept.fires(t, e, rule.Expr, r.clock()) {
					t.Errorf("%s fires while all is well", other)
				}
			}
			if f.fault != nil {
				f.fault(r)
			}
			since, fired := time.Time{}, time.Duration(0)
			total := f.lasts + time.Duration(rule.For) + time.Minute
			for range int(total / (15 * time.Second)) {
				r.goes(15*time.Second, func() {
					if f.each != nil {
						f.each(r)
					}
				})
				if !r.kept.fires(t, e, rule.Expr, r.clock()) {
					since = time.Time{}
					continue
				}
				if since.IsZero() {
					since = r.clock()
				}
				fired = max(fired, r.clock().Sub(since)+1)
			}
			if fired <= time.Duration(rule.For) {
				t.Errorf("it was true for %s and waits for %s", fired, time.Duration(rule.For))
			}
		})
	}
	for name := range faults {
		if _, there := rules(t)[name]; !there {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// What is old in the test environment, whose clock was moved by months, is no fault;
// what is as old in the live one is.
func TestNoAlertReadsWhatWaitsInTest(t *testing.T) {
	r, e := newRig(t), engine(t)
	r.ordinary()
	r.goes(time.Minute, nil)
	for _, name := range []string{"TillExceptionWaits", "TillExceptionForgotten", "TillWebhooksLate"} {
		expr := rules(t)[name].Expr
		if r.kept.fires(t, e, expr, r.clock()) {
			t.Errorf("%s fires for the test environment", name)
		}
		if !strings.Contains(expr, `env="live"`) || !r.kept.fires(t, e, strings.ReplaceAll(expr, `env="live"`, `env="test"`), r.clock()) {
			t.Errorf("%s would be silent in the live environment", name)
		}
	}
}

// With one number that works beside it, each standing of another raises what is
// said of it and nothing else; two raise nothing while all is well or as an operator
// wants it.
func TestEachStandingOfANumberRaisesItsAlert(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		state flow.NumberState
		away  time.Duration
		by    flow.NumberSwitch
		want  string
	}{
		{flow.NumberLive, 10*day - time.Hour, "", ""},
		{flow.NumberPhoneAway, 10 * day, "", "TillWhatsAppPhoneAway"},
		{flow.NumberPhoneAway, 12 * day, "", "TillWhatsAppPhoneAway TillWhatsAppPhoneAwayLong"},
		{flow.NumberTimelocked, 12 * day, "", "TillWhatsAppPhoneAway TillWhatsAppPhoneAwayLong TillWhatsAppTimelocked"},
		{flow.NumberReplaced, 0, "", "TillWhatsAppReplaced"},
		{flow.NumberDeaf, 0, "", "TillWhatsAppNotHearing"},
		{flow.NumberConnecting, 0, "", "TillWhatsAppNotHearing"},
		{flow.NumberOffline, 0, "", "TillWhatsAppNotHearing"},
		{flow.NumberTimelocked, 0, "", "TillWhatsAppTimelocked"},
		{flow.NumberBanned, 13 * day, "", "TillWhatsAppLoggedOut"},
		{flow.NumberLoggedOut, 13 * day, "", "TillWhatsAppLoggedOut"},
		{flow.NumberOutdated, 0, "", "TillWhatsAppLoggedOut"},
		{flow.NumberPasskey, 0, "", "TillWhatsAppLoggedOut"},
		{flow.NumberPairing, 13 * day, "", ""},
		{flow.NumberSyncing, 0, "", ""},
		{flow.NumberLive, 0, flow.NumberDrains, ""},
		{flow.NumberReplaced, 13 * day, flow.NumberKill, ""},
	} {
		r, e := newRig(t), engine(t)
		r.beside(c.state, c.away)
		r.set(func() { r.numbers[1].Switch = c.by })
		r.goes(30*time.Second, nil)
		var fire []string
		for name, rule := range rules(t) {
			if r.kept.fires(t, e, rule.Expr, r.clock()) {
				fire = append(fire, name)
			}
		}
		slices.Sort(fire)
		if got := strings.Join(fire, " "); got != c.want {
			t.Errorf("one that is %s %s, its phone away for %s, raises %q, want %q", c.state, c.by, c.away, got, c.want)
		}
	}
}

// A payer who waits in a chat of the test environment waits by the machine's clock:
// merchants who move theirs by months raise nothing, and whoever really waits is told
// of.
func TestChatsWaitByTheMachinesClock(t *testing.T) {
	r, e := newRig(t), engine(t)
	r.goes(time.Minute, nil)
	began := r.movedClock()
	r.must(r.pretend.Update(t.Context(), func(tx *store.Tx) error {
		chat, err := tx.AddChat(t.Context(), store.ChatRow{ID: "chat_waits", Number: "2349010000001", Person: "199000100020003"}, began)
		if err != nil {
			return err
		}
		if err := tx.SetDecided(t.Context(), chat.ID, 0, flow.Desk{State: flow.DeskWaiting, Since: began.UnixMilli()}, ""); err != nil {
			return err
		}
		return tx.AddSaid(t.Context(), store.Said{ID: "3EB0", Chat: chat.ID, Seq: 1, Key: "human", Text: "x"}, began)
	}))
	fire := func(when string, want ...string) {
		t.Helper()
		for _, name := range []string{"TillChatNotSent", "TillChatNobodyComes"} {
			if got := r.kept.fires(t, e, rules(t)[name].Expr, r.clock()); got != slices.Contains(want, name) {
				t.Errorf("%s %s fires: %t", when, name, got)
			}
		}
	}
	r.goes(5*time.Minute, nil)
	for range 3 {
		r.set(func() { r.moved += 30 * 24 * time.Hour })
		r.goes(time.Minute, nil)
		fire("after the clock was moved")
	}
	r.goes(8*time.Minute, nil)
	fire("after 16 minutes", "TillChatNotSent")
	r.goes(15*time.Minute, nil)
	fire("after 31 minutes", "TillChatNotSent", "TillChatNobodyComes")
	if got := r.shows("till_chat_waiting_oldest_seconds", "env", "test"); got < 30*60 || got > 32*60 {
		t.Errorf("it is said to wait for %g s", got)
	}
}

// A clock that was set is told of for ten minutes.
func TestAStepOfTheClockIsShownForTenMinutes(t *testing.T) {
	r, e, rule := newRig(t), engine(t), rules(t)["TillClockWrong"]
	r.goes(time.Minute, nil)
	r.steps(3 * time.Second)
	for _, c := range []struct {
		goes  time.Duration
		fires bool
	}{{15 * time.Second, true}, {9 * time.Minute, true}, {time.Minute + 30*time.Second, false}} {
		r.goes(c.goes, nil)
		if got := r.kept.fires(t, e, rule.Expr, r.clock()); got != c.fires {
			t.Errorf("after %s more it fires: %t", c.goes, got)
		}
	}
}

func TestAnAlertSaysThatThereIsNoTill(t *testing.T) {
	r, e, rule := newRig(t), engine(t), rules(t)["TillDown"]
	r.goes(time.Minute, nil)
	if r.kept.fires(t, e, rule.Expr, r.clock()) {
		t.Error("it fires while a Till runs")
	}
	if !r.kept.fires(t, e, rule.Expr, r.clock().Add(6*time.Minute)) {
		t.Error("it is silent though nothing was scraped for six minutes")
	}
}

// ordinary is what goes by the rules and is older than a day: less came than is
// due, for a session that waits for the rest and for one that is over; what is too
// much, late or twice is its merchant's to decide about; a webhook was given up. The
// test environment, whose clock was moved by months, has worse.
func (r *rig) ordinary() {
	r.t.Helper()
	r.seed(r.db, flow.Partial, flow.Excess, flow.Late, flow.Duplicate)
	r.exec("UPDATE deliveries SET state = 'dead', done_at = created_at")
	r.seed(r.pretend, flow.Unmatched)
	r.passes(26 * time.Hour)
	r.set(func() { r.moved = 90 * 24 * time.Hour })
}

// seed puts into a store a session that some money came for, one payment for each
// outcome, and a webhook that is owed.
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
		if err := tx.AddEndpoint(ctx, to); err != nil {
			return err
		}
		told := flow.Event{ID: "evt_ordinary", Kind: flow.ChargeLate, Project: project, Session: over.ID, Sequence: 1, CreatedAt: now, Body: []byte("{}")}
		if err := tx.AddEvent(ctx, told); err != nil {
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

// asksBank asks the bank a few times, whatever it says.
func (r *rig) asksBank() {
	timed := r.meter.Rail(bank{r: r})
	for range 5 {
		_, _ = timed.Check(r.t.Context(), "wsp_ref_1")
	}
}

// answers are a few requests that are answered.
func (r *rig) answers(code int) {
	for range 20 {
		r.meter.Answering()("/v1/charges", http.MethodPost, code)
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

// A message that WhatsApp never refused and that could not be sent for a day is
// counted as late.
func TestAMessageThatCannotBeSentForADayIsCounted(t *testing.T) {
	r := newRig(t)
	r.run()
	r.set(func() { r.unsent = errors.New("not connected") })
	r.hears(flow.Intent{Kind: flow.MeansNothing, Text: "hello"})
	await.Until(t, "the message was tried", func() bool { return r.sends.Load() > 0 })
	r.passes(25 * time.Hour)
	await.Until(t, "the message is given up", func() bool {
		r.passes(time.Second)
		r.service.Wake()
		return r.shows("till_chat_unsent_total", "reason", "late") == 1
	})
	if n := r.shows("till_chat_unsent_total", "reason", "refused"); n != 0 {
		t.Errorf("%g are said to be refused", n)
	}
}
