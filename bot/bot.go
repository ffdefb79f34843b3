// Package bot speaks with payers: it turns what they write into an intent, and
// what the rules want said into words of their language.
//
// It translates and does nothing else. It must not know what a session is
// worth, where anything is kept, when a message is due, or which network
// carries it: the rules are in package flow, the keeping in flow/checkout, the
// wire in the package of the network. Card numbers and other secrets stop
// here; nothing behind this package ever sees one.
package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"till/flow"
	"till/flow/checkout"
)

// The bounds of what a network may hand over. They hold whatever the network
// itself promises.
const (
	maxID   = 128 // bytes of an id or a number
	maxName = 100 // runes of a name
)

// ErrMessage says that a message lacks what every message must have. It is not
// worth another try.
var ErrMessage = errors.New("bot: not a usable message")

// Sender carries one message to a payer. A repeat with the same id must reach
// the payer at most once.
type Sender interface {
	Send(ctx context.Context, o checkout.Outgoing) error
}

// Message is what a payer sent, as the network handed it over.
type Message struct {
	Number string // ours, E.164 digits
	Person string // the sender's lasting id (the user part of their LID)
	Phone  flow.Phone
	Name   string // as the sender wrote it
	ID     string // the network's id of the message
	Text   string // the caption where there is media
	Media  bool   // a picture or a document came with it
	At     time.Time
}

// Bot hears what payers write. It is safe for use from several goroutines.
type Bot struct {
	hear  func(ctx context.Context, in checkout.Inbound) error
	tick  func(ctx context.Context, t checkout.Tick) error
	banks []flow.Bank
	now   func() time.Time
	log   *slog.Logger
}

// New returns a Bot that hands what it understood to hear and what became of
// our own messages to tick. Banks are those of the USSD menu, in its order.
func New(
	hear func(ctx context.Context, in checkout.Inbound) error,
	tick func(ctx context.Context, t checkout.Tick) error,
	banks []flow.Bank, now func() time.Time, log *slog.Logger,
) *Bot {
	return &Bot{hear: hear, tick: tick, banks: banks, now: now, log: log}
}

// Receive takes one message from the network. When it returns nil the message
// is kept and may be acknowledged; otherwise it must come again, unless the
// error is ErrMessage.
func (b *Bot) Receive(ctx context.Context, m Message) error {
	for _, s := range []string{m.Number, m.Person, m.ID} {
		if s == "" || len(s) > maxID || !utf8.ValidString(s) {
			return fmt.Errorf("%w: a number, a person and an id of at most %d bytes are needed", ErrMessage, maxID)
		}
	}
	if len(m.Phone) > maxID {
		return fmt.Errorf("%w: a phone of %d bytes", ErrMessage, len(m.Phone))
	}
	in := Understand(m.Text, b.banks)
	if m.Media && in.Kind == flow.MeansNothing {
		in.Kind = flow.MeansMedia
	}
	if m.At.IsZero() {
		m.At = b.now()
	}
	err := b.hear(ctx, checkout.Inbound{
		Number: m.Number, Person: m.Person, Phone: m.Phone, Name: line(masked(m.Name), maxName),
		Message: m.ID, Intent: in, At: m.At,
	})
	if err != nil {
		return fmt.Errorf("hearing the message %s: %w", m.ID, err)
	}
	b.log.DebugContext(ctx, "message heard", slog.String("message", m.ID), slog.String("intent", string(in.Kind)))
	return nil
}

// Tick takes what the network says became of a message of ours.
func (b *Bot) Tick(ctx context.Context, t checkout.Tick) error {
	if t.Message == "" || len(t.Message) > maxID || len(t.Number) > maxID {
		return fmt.Errorf("%w: a tick of no message", ErrMessage)
	}
	if t.At.IsZero() {
		t.At = b.now()
	}
	if err := b.tick(ctx, t); err != nil {
		return fmt.Errorf("noting that %s was %s: %w", t.Message, t.State, err)
	}
	return nil
}

// masked is a text that a payer wrote, or what stands for it when it holds a
// secret.
func masked(text string) string {
	if shown, found := secret(fold(text)); found {
		return shown
	}
	return text
}

// line is a text as one line of at most limit runes, without what cannot be
// seen and could change how its surroundings look.
func line(text string, limit int) string {
	return clip(strings.Join(strings.Fields(visible(text)), " "), limit)
}
