// Package railtest holds the tests that every rail must pass: what package rail
// promises, tried against a provider over the network.
//
// A rail's own test opens a World and calls Run:
//
//	func TestConformance(t *testing.T) { railtest.Run(t, openWorld) }
//
// The package must not know any single rail. It is imported by tests alone.
package railtest

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// patience bounds every wait for something that comes over a network.
const patience = 10 * time.Second

// World is a rail, its provider (a pretend one) and what is needed to try both.
// Everything in it lives until the test ends.
type World struct {
	Rail rail.Rail
	// Unreachable is the same rail at an address where nobody listens.
	Unreachable rail.Rail
	// Hasty is the same rail with so short a patience that a provider which
	// does not answer costs the tests little.
	Hasty rail.Rail
	// Provider is told what payers do and how the provider behaves.
	Provider rail.TestBank
	// Notices are the provider's messages as they arrived at our door.
	Notices <-chan Message
	// Sign is the header of a message under the provider's scheme.
	Sign func(secret string, at time.Time, body []byte) http.Header
	// Secret is what the provider signs with; Now is the clock of the rail.
	Secret string
	Now    func() time.Time
	// Pass moves that clock, and the provider's.
	Pass func(d time.Duration)
}

// Message is one message of a provider.
type Message struct {
	Header http.Header
	Body   []byte
}

// trial is one part of the conformance tests in the world that it has for itself.
type trial struct {
	t     *testing.T
	world World
}

// Run tries a rail. Each part opens a world of its own.
func Run(t *testing.T, open func(*testing.T) World) {
	t.Helper()
	for _, part := range []struct {
		name string
		try  func(trial)
	}{
		{"same reference, same instructions", repeats},
		{"same reference ten times at once", concurrent},
		{"another reference, another instrument", differs},
		{"lookup of an order nobody made", againUnmade},
		{"outcome unknown, then found", unknown},
		{"outcome unknown stays unknown", unknownStays},
		{"nobody there", unreachable},
		{"closed", closed},
		{"rejected", rejected},
		{"gone caller", gone},
		{"check", checks},
		{"notice says what check says", notices},
		{"declined", declines},
		{"on its way", onTheWay},
		{"sent back", sentBack},
		{"taken back", takenBack},
		{"forged", forged},
		{"sent out", sends},
		{"sent out fifty times at once", sendsOnce},
		{"sending refused", refuses},
		{"sending of an outcome unknown, then found", sentUnknown},
		{"sending not taken on", notTaken},
		{"sending fails", sendFails},
		{"sending is held", holds},
		{"sent out and come back", comesBack},
		{"statement", statements},
		{"money that nobody asked for", collects},
		{"forged, of money out", forgedOut},
	} {
		t.Run(part.name, func(t *testing.T) { part.try(trial{t, open(t)}) })
	}
}

// order is an order that every rail can serve.
func order(w World, m flow.Method, reference string) flow.Order {
	return flow.Order{
		Reference: "wsp_ref_" + reference, Session: flow.SessionID("wsp_sess_" + reference), Method: m, Amount: 500_000,
		AccountName: "ADA STORES/CHECKOUT", CustomerName: "Ada Obi", CustomerEmail: "ada@example.com",
		ExpiresAt: w.Now().Add(30 * time.Minute),
	}
}

func start(t *testing.T, r rail.Rail, o flow.Order) flow.Instructions {
	t.Helper()
	got, err := r.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("Start(%s, %s) = %v", o.Method, o.Reference, err)
	}
	return got
}

func check(t *testing.T, w World, reference string) []flow.Notice {
	t.Helper()
	got, err := w.Rail.Check(t.Context(), reference)
	if err != nil {
		t.Fatalf("Check(%s) = %v", reference, err)
	}
	return got
}

// creates counts the calls that asked the provider to make something.
func creates(t *testing.T, w World, reference string) int {
	t.Helper()
	n, after := 0, int64(0)
	for {
		calls, err := w.Provider.Calls(t.Context(), after, 100)
		if err != nil {
			t.Fatalf("Calls = %v", err)
		}
		for _, c := range calls {
			after = c.Seq
			if c.Reference == reference && c.Operation != "find" && c.Operation != "check" {
				n++
			}
		}
		if len(calls) == 0 {
			return n
		}
	}
}

func weather(t *testing.T, w World, c rail.Conditions) {
	t.Helper()
	got, err := w.Provider.SetConditions(t.Context(), c)
	if err != nil || got != c {
		t.Fatalf("SetConditions(%+v) = %+v, %v", c, got, err)
	}
}

// next waits for the provider's next message.
func next(t *testing.T, w World) Message {
	t.Helper()
	select {
	case m := <-w.Notices:
		return m
	case <-time.After(patience):
		t.Fatal("no notice came")
		return Message{}
	}
}

func repeats(on trial) {
	t, w := on.t, on.world
	for i, m := range w.Rail.Methods() {
		o := order(w, m, "repeat"+strconv.Itoa(i))
		first := start(t, w.Rail, o)
		if second := start(t, w.Rail, o); !reflect.DeepEqual(first, second) {
			t.Errorf("%s: asked twice:\n%+v\n%+v", m, first, second)
		}
		o.Again = true
		if third := start(t, w.Rail, o); !reflect.DeepEqual(first, third) {
			t.Errorf("%s: asked again:\n%+v\n%+v", m, first, third)
		}
		if first.RailReference == "" || !first.ExpiresAt.Equal(o.ExpiresAt.Truncate(time.Millisecond)) {
			t.Errorf("%s: %+v for %+v", m, first, o)
		}
	}
}

func concurrent(on trial) {
	t, w := on.t, on.world
	for i, m := range w.Rail.Methods() {
		o := order(w, m, "concurrent"+strconv.Itoa(i))
		var got [10]flow.Instructions
		var errs [len(got)]error
		var group sync.WaitGroup
		for j := range got {
			group.Go(func() { got[j], errs[j] = w.Rail.Start(t.Context(), o) })
		}
		group.Wait()
		for j := range got {
			if errs[j] != nil || !reflect.DeepEqual(got[j], got[0]) {
				t.Errorf("%s: one of ten:\n%+v, %v\n%+v", m, got[j], errs[j], got[0])
			}
		}
	}
}

func differs(on trial) {
	t, w := on.t, on.world
	for i, m := range w.Rail.Methods() {
		a := start(t, w.Rail, order(w, m, "one"+strconv.Itoa(i)))
		b := start(t, w.Rail, order(w, m, "two"+strconv.Itoa(i)))
		if a.RailReference == b.RailReference {
			t.Errorf("%s: two references share %s", m, a.RailReference)
		}
	}
}

func againUnmade(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.BankTransfer, "unmade")
	o.Again = true
	got := start(t, w.Rail, o)
	o.Again = false
	if same := start(t, w.Rail, o); !reflect.DeepEqual(got, same) {
		t.Errorf("made twice:\n%+v\n%+v", got, same)
	}
}

// unknown: the provider does what it is asked and never answers. Asked again by
// reference it shows what it made, and made nothing else.
func unknown(on trial) {
	t, w := on.t, on.world
	for i, m := range w.Rail.Methods() {
		o := order(w, m, "unknown"+strconv.Itoa(i))
		weather(t, w, rail.Conditions{Up: true, TimeoutAfterCommit: true})
		if got, err := w.Hasty.Start(t.Context(), o); !errors.Is(err, rail.ErrUnknown) || errors.Is(err, rail.ErrUnavailable) {
			t.Fatalf("%s: Start = %+v, %v; want ErrUnknown", m, got, err)
		}
		weather(t, w, rail.Conditions{Up: true})
		o.Again = true
		got := start(t, w.Rail, o)
		if n := creates(t, w, o.Reference); n != 1 {
			t.Errorf("%s: %d calls that make something; want 1", m, n)
		}
		if m != flow.BankTransfer {
			continue
		}
		if _, err := w.Provider.Transfer(t.Context(), rail.Transfer{AccountNumber: got.AccountNumber}); err != nil {
			t.Fatalf("Transfer = %v", err)
		}
		if seen := check(t, w, o.Reference); len(seen) != 1 || seen[0].Amount != o.Amount {
			t.Errorf("Check = %+v; want the transfer", seen)
		}
	}
}

// unknownStays: a look-up that is not answered says nothing about the order it
// looks for, not even when it was surely not sent.
func unknownStays(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.BankTransfer, "stays")
	o.Again = true
	if _, err := w.Unreachable.Start(t.Context(), o); !errors.Is(err, rail.ErrUnknown) || errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Start again with nobody there = %v; want ErrUnknown", err)
	}
	weather(t, w, rail.Conditions{Up: false})
	if _, err := w.Rail.Start(t.Context(), o); !errors.Is(err, rail.ErrUnknown) || errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Start again with a closed bank = %v; want ErrUnknown", err)
	}
}

func unreachable(on trial) {
	t, w := on.t, on.world
	if _, err := w.Unreachable.Start(t.Context(), order(w, flow.BankTransfer, "nobody")); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Start = %v; want ErrUnavailable", err)
	}
	if _, err := w.Unreachable.Check(t.Context(), "wsp_ref_nobody"); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Check = %v; want ErrUnavailable", err)
	}
}

func closed(on trial) {
	t, w := on.t, on.world
	weather(t, w, rail.Conditions{Up: false})
	o := order(w, flow.BankTransfer, "closed")
	if _, err := w.Rail.Start(t.Context(), o); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Start = %v; want ErrUnavailable", err)
	}
	if _, err := w.Rail.Check(t.Context(), o.Reference); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Check = %v; want ErrUnavailable", err)
	}
	weather(t, w, rail.Conditions{Up: true})
	start(t, w.Rail, o)
}

func rejected(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.USSD, "rejected")
	o.Amount = flow.MaxUSSD + 100
	if _, err := w.Rail.Start(t.Context(), o); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("Start over the limit = %v; want ErrRejected", err)
	}
	o = order(w, "cowries", "rejected")
	if _, err := w.Rail.Start(t.Context(), o); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("Start of an unknown method = %v; want ErrRejected", err)
	}
	o = order(w, flow.BankTransfer, "rejected")
	start(t, w.Rail, o)
	o.Amount++
	if got, err := w.Rail.Start(t.Context(), o); !errors.Is(err, rail.ErrRejected) {
		t.Errorf("Start of another order with the reference = %+v, %v; want ErrRejected", got, err)
	}
}

// gone: a caller who has gone is told so at once, and nothing is claimed.
func gone(on trial) {
	t, w := on.t, on.world
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Rail.Start(ctx, order(w, flow.BankTransfer, "gone")); !errors.Is(err, rail.ErrUnknown) && !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("Start = %v", err)
	}
	if _, err := w.Rail.Check(ctx, "wsp_ref_gone"); !errors.Is(err, context.Canceled) {
		t.Errorf("Check = %v; want context.Canceled within", err)
	}
}

func checks(on trial) {
	t, w := on.t, on.world
	if got := check(t, w, "wsp_ref_never"); len(got) != 0 {
		t.Errorf("Check of an unknown reference = %+v", got)
	}
	o := order(w, flow.BankTransfer, "check")
	ins := start(t, w.Rail, o)
	if got := check(t, w, o.Reference); len(got) != 0 {
		t.Errorf("Check before any money = %+v", got)
	}
	at := w.Now().Add(-time.Minute).Truncate(time.Second)
	for _, amount := range []flow.Kobo{200_000, 300_000} {
		sent := rail.Transfer{AccountNumber: ins.AccountNumber, Amount: amount, SenderName: "NGOZI EZE", SenderBankCode: "057", ValueTime: at, Drop: true}
		if _, err := w.Provider.Transfer(t.Context(), sent); err != nil {
			t.Fatalf("Transfer = %v", err)
		}
	}
	got := check(t, w, o.Reference)
	if len(got) != 2 || got[0].Amount != 200_000 || got[1].Amount != 300_000 || got[0].RailTransactionID == got[1].RailTransactionID {
		t.Fatalf("Check = %+v; want both transfers, oldest first", got)
	}
	n := got[0]
	if n.Kind != flow.Credit || n.Reference != o.Reference || n.Channel != flow.BankTransfer || !n.PaidAt.Equal(at) ||
		n.Payer.Name != "NGOZI EZE" || n.Payer.BankName == "" || n.RailTransactionID == "" {
		t.Errorf("Check = %+v", n)
	}
	if again := check(t, w, o.Reference); !reflect.DeepEqual(again, got) {
		t.Errorf("asked again:\n%+v\n%+v", again, got)
	}
}

func notices(on trial) {
	t, w := on.t, on.world
	o := order(w, flow.BankTransfer, "notice")
	ins := start(t, w.Rail, o)
	if _, err := w.Provider.Transfer(t.Context(), rail.Transfer{AccountNumber: ins.AccountNumber}); err != nil {
		t.Fatalf("Transfer = %v", err)
	}
	m := next(t, w)
	told, err := w.Rail.Parse(m.Header, m.Body)
	if err != nil {
		t.Fatalf("Parse = %v", err)
	}
	if asked := check(t, w, o.Reference); !reflect.DeepEqual(told, asked) {
		t.Errorf("told and asked:\n%+v\n%+v", told, asked)
	}
}

func declines(on trial) {
	t, w := on.t, on.world
	card, ussd := order(w, flow.Card, "card"), order(w, flow.USSD, "ussd")
	start(t, w.Rail, card)
	code := start(t, w.Rail, ussd).PaymentCode
	if err := w.Provider.CompleteCard(t.Context(), card.Reference, "declined"); err != nil {
		t.Fatalf("CompleteCard = %v", err)
	}
	if err := w.Provider.CompleteUSSD(t.Context(), code, "failed"); err != nil {
		t.Fatalf("CompleteUSSD = %v", err)
	}
	for _, o := range []flow.Order{card, ussd} {
		got := check(t, w, o.Reference)
		if len(got) != 1 || got[0].Kind != flow.Declined || got[0].Channel != o.Method || got[0].Reason == "" {
			t.Errorf("%s: Check = %+v; want one refusal with its reason", o.Method, got)
		}
	}
}
