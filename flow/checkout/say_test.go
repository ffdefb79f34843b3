package checkout_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

var errRefused = fmt.Errorf("%w: the server said 479", checkout.ErrUndeliverable)

// retry lets the longest wait between two tries of a message pass, some times.
func (w *world) retry(times int) {
	w.t.Helper()
	w.passes(times, 15*time.Second)
}

// became counts the lines of a session's log that say what became of messages.
func (w *world) became(id flow.SessionID) string {
	w.t.Helper()
	n := w.lines(id)
	return fmt.Sprintf("%d sent, %d failed", n["sent"], n["failed"])
}

func TestNothingIsSentAfterARefusedBubbleOfTheSameTurnAndLaterTurnsGoOn(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		var tries atomic.Int64
		w.sending(func(o checkout.Outgoing) error {
			if o.Text == "transfer_how" && tries.Load() < 3 {
				tries.Add(1)
				return errRefused
			}
			return nil
		})
		w.hear("ada", method(flow.BankTransfer)) // how, the account number alone, what to do next
		w.hear("ada", flow.Intent{Kind: flow.MeansMenu})
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary"}) {
			t.Errorf("past a message that may still go out the payer read %q", got)
		}
		w.retry(2)
		account := w.attempts(session.ID)[0].Instructions.AccountNumber
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "transfer_how", account, "wait_menu"}) {
			t.Errorf("the payer read %q", got)
		}
		if n := tries.Load(); n != 3 {
			t.Errorf("a refused message was tried %d times", n)
		}
		if got := w.became(session.ID); got != "4 sent, 3 failed" {
			t.Errorf("the log says %s", got)
		}
		story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
		w.must(err)
		var why []string
		for _, m := range story {
			if _, reason, found := strings.Cut(m.Why, ": "); found && m.What == "message failed" {
				why = append(why, reason)
			}
		}
		if len(why) != 3 || !strings.Contains(why[0], "the server said 479") || why[1] != why[2] || !strings.Contains(why[1], "an earlier message") {
			t.Errorf("the timeline says %q", why)
		}
		if n := w.logged("a message to a payer is given up"); n != 1 {
			t.Errorf("%d turns were given up", n)
		}
		if got := w.unsent.String(); got != "map[refused:3]" {
			t.Errorf("counted as not sent are %s", got)
		}
	})
}

func TestARefusalThatPassesLosesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		var tries atomic.Int64
		w.sending(func(checkout.Outgoing) error {
			switch tries.Add(1) {
			case 1, 3:
				return errRefused
			case 2: // counts as no refusal
				return errors.New("not connected")
			}
			return nil
		})
		w.hear("ada", method(flow.BankTransfer))
		w.retry(3)
		account := w.attempts(session.ID)[0].Instructions.AccountNumber
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "transfer_how", account, "wait_menu"}) {
			w.t.Errorf("the payer read %q", got)
		}
		if got := w.became(session.ID); got != "4 sent, 0 failed" {
			w.t.Errorf("the log says %s", got)
		}
	})
}

func TestAMessageWhoseOutcomeIsUnknownIsRepeatedUnderTheSameID(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		var ids []string
		w.sending(func(o checkout.Outgoing) error {
			if ids = append(ids, o.ID); len(ids) < 4 {
				return errors.New("not confirmed")
			}
			return nil
		})
		w.hear("ada", code(session))
		w.retry(4)
		if len(ids) != 4 || len(slices.Compact(ids)) != 1 {
			w.t.Errorf("it was sent as %q", ids)
		}
		if got := w.became(session.ID); got != "1 sent, 0 failed" {
			w.t.Errorf("the log says %s", got)
		}
	})
}

func TestAMessageThatIsToWaitIsPutOffWithoutFailingAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		until := w.clock().Add(90 * time.Second)
		var early atomic.Int64
		w.sending(func(o checkout.Outgoing) error {
			if wait := until.Sub(w.clock()); wait > 0 && o.Person == "ada" {
				early.Add(1)
				return &checkout.NotYetError{Wait: wait}
			}
			return nil
		})
		w.hear("ada", flow.Intent{Kind: flow.MeansMenu})
		w.hear("ada", method(flow.BankTransfer))
		w.passes(5, 15*time.Second)            // nobody asks before it is time
		if n := early.Load(); n < 2 || n > 4 { // each new message asks once, and may be asked for while it is at work
			t.Errorf("it was asked %d times", n)
		}
		w.hear("ben", code(session)) // nobody else waits
		if got := w.texts("ben"); len(got) != 1 {
			t.Errorf("another payer read %q", got)
		}
		if got := w.texts("ada"); len(got) != 1 {
			t.Errorf("too early the payer read %q", got)
		}
		w.later(15 * time.Second)
		account := w.attempts(session.ID)[0].Instructions.AccountNumber
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "summary", "transfer_how", account, "wait_menu"}) {
			t.Errorf("the payer read %q", got)
		}
		if n := w.logged("WARN"); n != 0 {
			t.Errorf("%d things were warned of", n)
		}
	})
}

// flags are the messages that were sent to a person, each with what the one who
// sends must know of it.
func (w *world) flags(person string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, o := range w.sent {
		if o.Person != person {
			continue
		}
		text := o.Text
		if o.First {
			text += " first"
		}
		if o.Money {
			text += " money"
		}
		out = append(out, text)
	}
	return out
}

func TestWhatIsSentSaysWhetherItIsTheFirstMessageAndWhetherMoneyWaitsForIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		w.hear("ada", method(flow.BankTransfer))
		w.sending(func(checkout.Outgoing) error { return errors.New("not connected") })
		w.hear("ada", flow.Intent{Kind: flow.MeansMenu}) // three bubbles that stand before the receipt
		w.pay(session.ID, 500_000, false)
		w.until("the money is there", func() bool { return w.read(session.ID).Status == flow.SessionPaid })
		w.rest()
		w.sending(nil)
		w.retry(1)
		account := w.attempts(session.ID)[0].Instructions.AccountNumber
		want := []string{
			"summary first", "transfer_how", account, "wait_menu",
			"transfer_how money", account + " money", "wait_menu money", "receipt money",
		}
		if got := w.flags("ada"); !slices.Equal(got, want) {
			t.Errorf("sent were %q", got)
		}
	})
}

// A number that is unlinked for a night leaves no line in the log for each try of each
// of its messages: the log keeps the newest of a bound, and would hold nothing else.
func TestTriesOfAMessageAreToldMoreAndMoreSeldom(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		tries := 0
		w.sending(func(checkout.Outgoing) error { tries++; return errors.New("not connected") })
		w.hear("ada", code(w.session(flow.InChat)))
		w.retry(32)
		if n := w.logged("level=WARN msg=task"); tries != 33 || n != 7 { // the 1st, 2nd, 3rd, 5th, 9th, 17th and 33rd
			w.t.Errorf("of %d tries %d were told", tries, n)
		}
	})
}

// paid has the payer of a session pay it, and waits for the money.
func (w *world) paid(s flow.Session) {
	w.t.Helper()
	w.pay(s.ID, s.Amount, false)
	w.until("the money is there", func() bool { return w.read(s.ID).Status == flow.SessionPaid })
}

// The news that money came is worth more than that it comes in time: a number that
// was away for days tells of it when it is back, and of nothing else of then.
func TestNewsOfMoneyWaitsForANumberThatIsAway(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, _ := w.paying()
		read := len(w.texts("ada"))
		var away atomic.Bool
		away.Store(true)
		w.sending(func(checkout.Outgoing) error {
			if away.Load() {
				return errors.New("not connected")
			}
			return nil
		})
		w.paid(session)
		w.hear("ada", flow.Intent{Kind: flow.MeansWho})
		w.later(26 * time.Hour)
		w.hear("ada", flow.Intent{Kind: flow.MeansThanks})
		w.later(time.Minute)
		away.Store(false)
		w.pass(10 * time.Minute)
		w.rest()
		if got := w.texts("ada")[read:]; !slices.Equal(got, []string{"receipt", "welcome"}) {
			w.t.Errorf("after a day the payer read %q", got)
		}
	})
}

// What the network does not take it may take when the payer has written: until
// then news of money waits, and holds nothing up when it is refused all the same.
func TestRefusedNewsOfMoneyWaitsForAWordOfItsPayer(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		each(t, func(w *world) {
			session, _ := w.paying()
			read := len(w.texts("ada"))
			var wrote atomic.Bool
			var tries atomic.Int64
			w.sending(func(o checkout.Outgoing) error {
				if o.Text != "receipt" || taken && wrote.Load() {
					return nil
				}
				tries.Add(1)
				return errRefused
			})
			w.paid(session)
			w.retry(20)
			if n := tries.Load(); n != 3 {
				w.t.Errorf("it was tried %d times in a few minutes", n)
			}
			w.later(6 * time.Hour)
			if n := tries.Load(); n != 4 {
				w.t.Errorf("after six hours it was tried %d times", n)
			}
			if got := w.texts("ada")[read:]; len(got) != 0 {
				w.t.Errorf("the payer read %q", got)
			}
			wrote.Store(true)
			w.hear("ada", flow.Intent{Kind: flow.MeansThanks})
			w.retry(1)
			want := map[bool][]string{true: {"receipt", "welcome"}, false: {"welcome"}}[taken]
			if got := w.texts("ada")[read:]; !slices.Equal(got, want) {
				w.t.Errorf("taken then: %v; the payer read %q", taken, got)
			}
			if got, want := w.unsent.String(), map[bool]string{true: "map[parked:1]", false: "map[parked:1 refused:1]"}[taken]; got != want {
				w.t.Errorf("taken then: %v; counted as not sent are %s, want %s", taken, got, want)
			}
		})
	}
}

// Whoever writes while a message is being refused has not changed that yet; and
// what is not answered, as while a person is waited for, is a word too.
func TestAWordOfThePayerHasRefusedNewsTriedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, _ := w.paying()
		w.hear("ada", flow.Intent{Kind: flow.MeansHuman})
		read := len(w.texts("ada"))
		var taken atomic.Bool
		w.sending(func(o checkout.Outgoing) error {
			if o.Text != "receipt" || taken.Load() {
				return nil
			}
			return errRefused
		})
		w.paid(session)
		w.hear("ada", flow.Intent{Kind: flow.MeansNothing}) // between two refusals
		w.retry(5)
		w.later(6 * time.Hour)
		w.must(w.service.Claim(w.t.Context(), w.chatOf("ada"), "ngozi", 0)) // so that nobody answers
		taken.Store(true)
		w.hear("ada", flow.Intent{Kind: flow.MeansMoney})
		w.rest()
		if got := w.texts("ada")[read:]; !slices.Equal(got, []string{"receipt"}) {
			w.t.Errorf("the payer read %q", got)
		}
	})
}

// A turn is sent whole, or what is left of it is not, however long nothing could be
// sent.
func TestATurnIsNotTornHoweverLongNothingWasSent(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		until := w.clock().Add(25 * time.Hour)
		w.sending(func(checkout.Outgoing) error {
			if wait := until.Sub(w.clock()); wait > 0 {
				return &checkout.NotYetError{Wait: wait}
			}
			return nil
		})
		w.hear("ada", method(flow.BankTransfer))
		account := w.attempts(session.ID)[0].Instructions.AccountNumber
		w.pass(25 * time.Hour)
		w.rest()
		if got := w.texts("ada"); len(got) < 4 || !slices.Equal(got[:4], []string{"summary", "transfer_how", account, "wait_menu"}) {
			w.t.Errorf("the payer read %q", got)
		}
	})
}

// Who writes while news of their money is refused is answered soon, whatever becomes
// of it.
func TestAnAnswerWaitsForRefusedNewsAMinute(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, _ := w.paying()
		read := len(w.texts("ada"))
		var tries atomic.Int64
		w.sending(func(o checkout.Outgoing) error {
			if o.Text == "receipt" {
				tries.Add(1)
				return errRefused
			}
			return nil
		})
		w.paid(session)
		w.hear("ada", flow.Intent{Kind: flow.MeansThanks})
		w.retry(8)
		if got := w.texts("ada")[read:]; !slices.Equal(got, []string{"welcome"}) || tries.Load() < 4 {
			w.t.Errorf("after two minutes and %d tries the payer read %q", tries.Load(), got)
		}
	})
}
