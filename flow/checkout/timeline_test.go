package checkout_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
	"till/flow/store/storetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sqlite(t *testing.T) store.Config {
	t.Helper()
	return storetest.SQLite(t, store.Checkout)
}

func TestGoldenTimelineOfAWholePayment(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.endpoint("https://shop.test/hook")
	session := w.session(flow.InChat)
	w.pass(time.Second)
	w.hear("ada", code(session))
	w.pass(5 * time.Second)
	w.hear("ben", code(session)) // a second chat, which must not tell everything twice
	w.pass(5 * time.Second)
	w.hear("ada", flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"})
	w.pass(10 * time.Second)
	w.must(w.tell(credit("T1", w.attempts(session.ID)[0].Reference, 100_000, w.clock())))
	w.rest()
	w.pass(2 * time.Second)
	asksTheBankInPeace(w, session.ID, "ada")
	w.pass(2 * time.Second)
	w.must(w.tell(credit("T2", w.attempts(session.ID)[0].Reference, 400_000, w.clock())))
	w.rest()

	story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
	w.must(err)
	var b strings.Builder
	for _, m := range story {
		line := fmt.Sprintf("%s %-8s %s", m.At.Format(time.TimeOnly), m.Who, m.What)
		if m.Why != "" {
			line += "  (" + m.Why + ")"
		}
		fmt.Fprintln(&b, named(line))
	}
	const golden = "testdata/timeline.txt"
	if *update {
		w.must(os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	w.must(err)
	if b.String() != string(want) {
		t.Errorf("the timeline came out as:\n%s", b.String())
	}
	if _, err := checkout.Timeline(t.Context(), w.service.Reader(), "wsp_sess_none"); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("an unknown session said %v", err)
	}
}

// asksTheBankInPeace has a payer say that it is paid. The bank answers when what is
// said meanwhile has left, or the two lines would come in either order.
func asksTheBankInPeace(w *world, id flow.SessionID, person string) {
	w.t.Helper()
	left := func() (n int) {
		lines, err := w.db.SessionLines(w.t.Context(), id)
		w.must(err)
		for _, l := range lines {
			if l.Kind == replay.Sent {
				n++
			}
		}
		return n
	}
	before, answer := left(), make(chan struct{})
	w.rail.checking(func(ctx context.Context, reference string) ([]flow.Notice, error) {
		select {
		case <-answer:
		case <-ctx.Done():
		}
		return w.bank.Check(ctx, reference)
	})
	w.must(w.says(person, flow.Intent{Kind: flow.MeansPaid, Guess: true, Text: "why is it not confirming"}))
	w.until("what is said meanwhile has left", func() bool { w.service.Wake(); return left() > before })
	close(answer)
	w.rest()
}

// named cuts ids down to their kind: their random part is drawn in the order in
// which goroutines come.
func named(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,:()\"", r) })
	for _, word := range words {
		for _, prefix := range []string{flow.PrefixAttempt, flow.PrefixReference, flow.PrefixPayment, flow.PrefixEvent, "3EB0"} {
			if strings.HasPrefix(word, prefix) && len(word) >= 20 {
				line = strings.ReplaceAll(line, word, prefix+"…")
			}
		}
	}
	return line
}

// Who answers for a session reads when its time was over, and by what: the clock, or
// somebody who ended it. It stands there once, however many chats watch.
func TestAStoryTellsWhatEndedTheTimeOfASession(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		byItself, byHand := w.session(flow.InChat), w.session(flow.Headless)
		w.hear("ada", code(byItself))
		w.hear("ben", code(byItself))
		w.must(w.service.EndNow(t.Context(), project, byHand.ID, "wsp_per_1"))
		w.later(byItself.ExpiresAt.Sub(w.clock()) + time.Second)
		w.is(byItself.ID, flow.SessionExpired)
		for id, want := range map[flow.SessionID][2]string{
			byItself.ID: {"clock", "its time was over at " + flow.Stamp(byItself.ExpiresAt)},
			byHand.ID:   {"merchant", "by wsp_per_1"},
		} {
			story, err := checkout.Timeline(t.Context(), w.db.Reader, id)
			w.must(err)
			var found []checkout.Moment
			for _, m := range story {
				if m.What == "expired" {
					found = append(found, m)
				}
			}
			if len(found) != 1 || found[0].Who != want[0] || found[0].Why != want[1] || found[0].At.Before(w.read(id).ExpiresAt) {
				t.Errorf("that its time is over is told so: %+v", found)
			}
			if got := told(w.pages(id, 3)); !slices.Equal(got, told(story)) {
				t.Errorf("in pages it is told so: %q", got)
			}
		}
	})
}

// What is said to a payer who goes back to another merchant's payment stands with that
// one: whoever they came from does not read it.
func TestWhatIsSaidOfAnotherPaymentStandsWithThatOne(t *testing.T) {
	t.Parallel()
	w := one(t)
	first, second := w.session(flow.InChat), w.openedBy(neighbour)
	w.hear("ada", code(first))
	w.hear("ada", code(second))
	decided := func(id flow.SessionID) (n int) {
		lines, err := w.db.SessionLines(t.Context(), id)
		w.must(err)
		for _, l := range lines {
			if l.Kind == replay.Decided {
				n++
			}
		}
		return n
	}
	there, here := decided(second.ID), decided(first.ID)
	w.hear("ada", flow.Intent{Kind: flow.MeansBack})
	if there, here = decided(second.ID)-there, decided(first.ID)-here; there != 0 || here != 1 {
		t.Errorf("%d more with the payment that was left, and %d with the one that is about", there, here)
	}
}
