package bot_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
)

var noon = time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC) // 12:00 in Lagos

// hearing is a checkout that remembers what it was told.
type hearing struct {
	inbound []checkout.Inbound
	ticks   []checkout.Tick
	err     error
}

func (h *hearing) hear(_ context.Context, in checkout.Inbound) error {
	h.inbound = append(h.inbound, in)
	return h.err
}

func (h *hearing) tick(_ context.Context, t checkout.Tick) error {
	h.ticks = append(h.ticks, t)
	return h.err
}

func newBot(h *hearing) *bot.Bot {
	return bot.New(h.hear, h.tick, banks, func() time.Time { return noon })
}

func message() bot.Message {
	return bot.Message{Number: "2348000000001", Person: "100200300400500", Phone: "2348012345678", Name: "Ada", ID: "3EB0AA", Text: "1"}
}

func TestReceive(t *testing.T) {
	h, m := &hearing{}, message()
	m.Wrote = noon.Add(-time.Hour)
	must(t, newBot(h).Receive(t.Context(), m))
	want := checkout.Inbound{
		Number: "2348000000001", Person: "100200300400500", Phone: "2348012345678", Name: "Ada", Message: "3EB0AA", Wrote: m.Wrote,
		Intent: flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1", By: bot.Reading},
	}
	if len(h.inbound) != 1 || h.inbound[0] != want {
		t.Errorf("heard %+v\nwant  %+v", h.inbound, want)
	}
}

// What a payer wrote is kept as they wrote it, without what only hides.
func TestWhatJoinsSignsIsKeptOfAMessage(t *testing.T) {
	h, m := &hearing{}, message()
	m.Text = "\u200d👩\u200d👧 می\u200cخواهم\u200b\u202e"
	must(t, newBot(h).Receive(t.Context(), m))
	if got := h.inbound[0].Intent.Text; got != "👩\u200d👧 می\u200cخواهم" {
		t.Errorf("kept %q", got)
	}
}

func TestReceiveMedia(t *testing.T) {
	for text, want := range map[string]flow.IntentKind{
		"":                    flow.MeansMedia,
		"see my receipt":      flow.MeansMedia,
		"paid":                flow.MeansPaid,
		"4111 1111 1111 1111": flow.MeansSecret,
		"Pay 7K3M-9QTX":       flow.MeansCode,
	} {
		h, m := &hearing{}, message()
		m.Text, m.Kind = text, bot.KindPicture
		must(t, newBot(h).Receive(t.Context(), m))
		if got := h.inbound[0]; got.Intent.Kind != want {
			t.Errorf("a picture with %q means %s, want %s", text, got.Intent.Kind, want)
		}
	}
}

func TestReceiveRefusesWhatItCannotUse(t *testing.T) {
	for name, spoil := range map[string]func(*bot.Message){
		"no number":     func(m *bot.Message) { m.Number = "" },
		"no person":     func(m *bot.Message) { m.Person = "" },
		"no id":         func(m *bot.Message) { m.ID = "" },
		"a long id":     func(m *bot.Message) { m.ID = strings.Repeat("A", 129) },
		"a spoilt id":   func(m *bot.Message) { m.ID = "\xff" },
		"a long phone":  func(m *bot.Message) { m.Phone = flow.Phone(strings.Repeat("1", 129)) },
		"a long person": func(m *bot.Message) { m.Person = strings.Repeat("1", 129) },
	} {
		h, m := &hearing{}, message()
		spoil(&m)
		if err := newBot(h).Receive(t.Context(), m); !errors.Is(err, bot.ErrMessage) || len(h.inbound) != 0 {
			t.Errorf("%s: %v, heard %d", name, err, len(h.inbound))
		}
	}
}

func TestReceiveHandsErrorsBack(t *testing.T) {
	h := &hearing{err: errors.New("the disk is full")}
	b := newBot(h)
	if err := b.Receive(t.Context(), message()); !errors.Is(err, h.err) || errors.Is(err, bot.ErrMessage) {
		t.Errorf("got %v", err)
	}
	if err := b.Tick(t.Context(), checkout.Tick{Message: "3EB0", State: "read"}); !errors.Is(err, h.err) {
		t.Errorf("got %v", err)
	}
}

func TestNoSecretIsKeptOfAName(t *testing.T) {
	h, m := &hearing{}, message()
	m.Text, m.Name = "a private word", "Ada 4111111111111111\n\u202e"+strings.Repeat("x", 300)
	must(t, newBot(h).Receive(t.Context(), m))
	if got := h.inbound[0].Name; got != "a card number, not kept" {
		t.Errorf("the name is kept as %q", got)
	}
	m.Name = "Ada\n\tObi \u202e" + strings.Repeat("é", 300)
	must(t, newBot(h).Receive(t.Context(), m))
	if got := h.inbound[1].Name; !strings.HasPrefix(got, "Ada Obi é") || len([]rune(got)) != 100 {
		t.Errorf("the name is kept as %q", got)
	}
}

func TestTick(t *testing.T) {
	h := &hearing{}
	b := newBot(h)
	must(t, b.Tick(t.Context(), checkout.Tick{Number: "2348000000001", Message: "3EB0", State: "delivered"}))
	if len(h.ticks) != 1 || !h.ticks[0].At.Equal(noon) {
		t.Errorf("ticks %+v", h.ticks)
	}
	for _, id := range []string{"", strings.Repeat("A", 129)} {
		if err := b.Tick(t.Context(), checkout.Tick{Message: id}); !errors.Is(err, bot.ErrMessage) {
			t.Errorf("a tick of %q: %v", id, err)
		}
	}
}

// Entry codes are digits in part, and several of them in a row can look like
// one long number.
func TestCodesInARowAreNoCardNumber(t *testing.T) {
	var heard []flow.IntentKind
	b := bot.New(func(_ context.Context, in checkout.Inbound) error { heard = append(heard, in.Intent.Kind); return nil },
		func(context.Context, checkout.Tick) error { return nil }, nil, func() time.Time { return time.Unix(1_790_000_000, 0) })
	for i, text := range []string{"Pay 2222-2222", "Pay 3333-3333", "Pay 4444-4444", "Pay 4084-0840", "Pay 8408-4081", "Pay 7K3M-9QTX"} {
		m := bot.Message{Number: "2349010000001", Person: "77", ID: strconv.Itoa(i), Text: text}
		must(t, b.Receive(t.Context(), m))
		if heard[i] != flow.MeansCode {
			t.Errorf("%q was heard as %s", text, heard[i])
		}
	}
}
