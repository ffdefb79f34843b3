package meter_test

import (
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

	"till/flow"
	"till/flow/await"
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
	for _, name := range []string{"TillExceptionWaits", "TillExceptionForgotten", "TillWebhooksLate", "TillWebhooksHeld"} {
		expr := rules(t)[name].Expr
		if r.kept.fires(t, e, expr, r.clock()) {
			t.Errorf("%s fires for the test environment", name)
		}
		if !strings.Contains(expr, `env="live"`) || !r.kept.fires(t, e, strings.ReplaceAll(expr, `env="live"`, `env="test"`), r.clock()) {
			t.Errorf("%s would be silent in the live environment", name)
		}
	}
}

// What is too much stays for as long as its merchant wants: that wakes nobody. What
// should have gone back by itself long ago does.
func TestWhatMayStayWakesNobody(t *testing.T) {
	for outcome, want := range map[flow.MatchStatus]bool{flow.Excess: false, flow.Late: true, flow.Duplicate: true} {
		r, e := newRig(t), engine(t)
		r.seed(r.db, outcome)
		r.exec("UPDATE sessions SET status = 'EXPIRED', amount_paid = 0", "UPDATE deliveries SET state = 'dead', done_at = created_at")
		r.passes(11 * 24 * time.Hour)
		r.goes(time.Minute, nil)
		if got := r.kept.fires(t, e, rules(t)["TillExceptionWaits"].Expr, r.clock()); got != want {
			t.Errorf("for %s it fires: %t", outcome, got)
		}
	}
}

// Merchants may break the test environment's bank, and with it calls of their own: that
// wakes nobody. Of the live one, or of calls with no key, it does.
func TestWhatATestKeyBreaksWakesNobody(t *testing.T) {
	for env, want := range map[flow.Environment][]bool{flow.Test: {false, false}, flow.Live: {true, true}, "": {false, true}} {
		r, e := newRig(t), engine(t)
		r.ordinary()
		pretend := r.meter.Rail(env, bank{r: r})
		r.bankDown.Store(true)
		for range 8 {
			r.goes(15*time.Second, func() {
				for range 5 {
					_, _ = pretend.Check(t.Context(), "wsp_ref_1")
					r.meter.Answering()("/v1/charges", http.MethodPost, http.StatusOK, flow.Live, false)
					r.meter.Answering()("/v1/charges", http.MethodPost, http.StatusServiceUnavailable, env, false)
				}
			})
		}
		for i, name := range []string{"TillBankAway", "TillErrors"} {
			if got := r.kept.fires(t, e, rules(t)[name].Expr, r.clock()); got != want[i] {
				t.Errorf("in %q %s fires: %t", env, name, got)
			}
		}
	}
}

// Nor does what is not offered, as without a bank in the live environment, or with a
// method that an operator switched off while the bank is away.
func TestWhatIsNotOfferedWakesNobody(t *testing.T) {
	for notServed, want := range map[bool]bool{true: false, false: true} {
		r, e := newRig(t), engine(t)
		r.goes(6*time.Minute, func() {
			for range 5 {
				r.meter.Answering()("/v1/charges", http.MethodPost, http.StatusServiceUnavailable, flow.Live, notServed)
			}
		})
		if got := r.kept.fires(t, e, rules(t)["TillErrors"].Expr, r.clock()); got != want {
			t.Errorf("not served %t: TillErrors fires: %t", notServed, got)
		}
	}
}

// Nor do two errors in a quiet night, which are more than one request in a hundred there.
func TestTwoErrorsInAQuietNightWakeNobody(t *testing.T) {
	r, e := newRig(t), engine(t)
	answers := func(code int) { r.meter.Answering()("/v1/charges", http.MethodPost, code, flow.Live, false) }
	r.goes(5*time.Minute, func() { answers(http.StatusOK) })
	failed := 0
	for range 20 {
		r.goes(15*time.Second, func() {
			if answers(http.StatusOK); failed < 2 {
				failed++
				answers(http.StatusInternalServerError)
			}
		})
		if r.kept.fires(t, e, rules(t)["TillErrors"].Expr, r.clock()) {
			t.Fatal("TillErrors fires")
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
		{flow.NumberMute, 0, "", "TillWhatsAppNotHearing"},
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

// A place at which no number was ever linked, as till pair leaves it that nobody scanned
// the code of, has no chats: that it does not reach WhatsApp wakes nobody.
func TestAPlaceWithoutANumberWakesNobody(t *testing.T) {
	for _, state := range []flow.NumberState{flow.NumberConnecting, flow.NumberOffline, flow.NumberPairing, flow.NumberMute} {
		r, e := newRig(t), engine(t)
		r.beside(state, 0)
		r.set(func() { r.numbers[1].Digits, r.numbers[1].PhoneSeen = "", time.Time{} })
		r.goes(30*time.Second, nil)
		for name, rule := range rules(t) {
			if r.kept.fires(t, e, rule.Expr, r.clock()) {
				t.Errorf("%s raises %s", state, name)
			}
		}
		if r.shows("till_whatsapp_number_state", "state", string(flow.NumberPairing)) != 1 {
			t.Errorf("of one that is %s it is not shown that nobody linked it", state)
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

// A clock that is asked of a slow server is not thereby wrong, as long as nobody knows
// when in all that time it was read; of one that answers within a second it is known.
func TestASlowAnswerMakesNoClockWrong(t *testing.T) {
	r, e, rule := newRig(t), engine(t), rules(t)["TillClockWrong"]
	for _, c := range []struct {
		late, wrong time.Duration
		fires       bool
	}{{6 * time.Second, 0, false}, {6 * time.Second, time.Minute, false}, {time.Second, 0, false}, {800 * time.Millisecond, 3 * time.Second, true}} {
		r.set(func() { r.late, r.wrong = c.late, c.wrong })
		r.goes(30*time.Second, nil)
		if got := r.kept.fires(t, e, rule.Expr, r.clock()); got != c.fires {
			t.Errorf("where a clock that is %s off is said after %s it fires: %t", c.wrong, c.late, got)
		}
	}
}

// A Till whose first reading already fails knows of nothing that the other alerts could
// tell, and that is told.
func TestAStartThatNeverReadsTheStoreIsTold(t *testing.T) {
	r, e, rule := newRig(t), engine(t), rules(t)["TillFiguresStale"]
	r.must(r.db.Close())
	for _, c := range []struct {
		goes  time.Duration
		fires bool
	}{{90 * time.Second, false}, {time.Minute, true}} {
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
