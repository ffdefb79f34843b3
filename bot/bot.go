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
	"slices"
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

// Kind is what kind of thing happened in a chat. Nothing but text is ever read:
// pictures and voices are neither fetched nor kept.
type Kind string

// The kinds of message.
const (
	KindText     Kind = ""
	KindPicture  Kind = "a picture"
	KindDocument Kind = "a document"
	KindVoice    Kind = "a voice note"
	KindVideo    Kind = "a video"
	KindSticker  Kind = "a sticker"
	KindPlace    Kind = "a place"
	KindContact  Kind = "a contact"
	KindPoll     Kind = "a poll"
	KindOther    Kind = "something that is not text"
	KindReaction Kind = "a reaction" // Text is the sign of it, "" where it was taken away
	KindRevoke   Kind = "took back a message"
	KindTimer    Kind = "changed how long messages stay" // to Fades
	KindCall     Kind = "called"                         // and was rejected
)

// Message is what a payer sent, as the network handed it over.
type Message struct {
	Number  string // ours, E.164 digits
	Person  string // the lasting id (the user part of the LID) of the person whose chat it is
	Phone   flow.Phone
	Name    string // as the sender wrote it
	ID      string // the network's id of the message, or of the call
	Kind    Kind
	Text    string        // the caption where there is media
	Wrote   time.Time     // when the network took it in, zero where that is not known
	Own     bool          // somebody typed it on the phone of our own number
	Quoted  string        // the id of the message of ours that it answers to
	Edits   string        // the id of the message that it takes the place of
	Revokes string        // the id of the message that it takes back
	Fades   time.Duration // how long the chat keeps its messages, 0 for ever, negative where this one does not say
}

// Bot hears what payers write. It is safe for use from several goroutines.
type Bot struct {
	hear  func(ctx context.Context, in checkout.Inbound) error
	tick  func(ctx context.Context, t checkout.Tick) error
	banks []flow.Bank
	now   func() time.Time
	last  *recent
}

// New returns a Bot that hands what it understood to hear and what became of
// our own messages to tick. Banks are those of the USSD menu, in its order.
func New(
	hear func(ctx context.Context, in checkout.Inbound) error,
	tick func(ctx context.Context, t checkout.Tick) error,
	banks []flow.Bank, now func() time.Time,
) *Bot {
	return &Bot{hear: hear, tick: tick, banks: banks, now: now, last: newRecent()}
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
	err := b.hear(ctx, checkout.Inbound{
		Number: m.Number, Person: m.Person, Phone: m.Phone, Name: line(masked(m.Name), maxName), Message: m.ID,
		Quoted: id(m.Quoted), Edits: id(m.Edits), Revokes: id(m.Revokes), Came: came(m.Kind), Wrote: m.Wrote, Fades: m.Fades, Intent: b.understand(m),
	})
	if err != nil {
		return fmt.Errorf("hearing the message %s: %w", m.ID, err)
	}
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

// understand is what a message of any kind means.
func (b *Bot) understand(m Message) flow.Intent {
	in := Understand(m.Text, b.banks)
	if said := m.Own || m.Kind == KindText || m.Text != ""; said && in.Kind != flow.MeansCode {
		// A card number that comes in pieces is known by the last of them. An
		// entry code is no piece: whoever mistypes theirs must be able to try again.
		shown, near := b.last.completes(m, in.Kind == flow.MeansSecret, b.now())
		switch {
		case in.Kind == flow.MeansSecret:
		case shown != "":
			in = flow.Intent{Kind: flow.MeansSecret, Text: shown, By: Reading}
		case near: // its code may stand in words that nobody thought of
			in.Text = kept(m.Text, place{}, maxRunNear)
		}
	}
	note := func(k flow.IntentKind, text string) flow.Intent { return flow.Intent{Kind: k, Text: text, By: Reading} }
	switch {
	case m.Own:
		return note(flow.MeansTakeover, in.Text)
	case m.Kind == KindCall:
		return note(flow.MeansCall, string(m.Kind))
	case m.Kind == KindReaction, m.Kind == KindRevoke, m.Kind == KindTimer:
		return note(flow.MeansNote, described(m.Kind, clip(in.Text, maxSign)))
	case m.Kind == KindText || !small(in.Kind):
		return in // what the caption says counts for more than the picture
	case m.Kind == KindPicture, m.Kind == KindDocument:
		return note(flow.MeansMedia, in.Text)
	default:
		return note(flow.MeansUnread, in.Text)
	}
}

// maxSign is how many runes of a reaction are kept.
const maxSign = 16

// small says whether words under a picture say less than the picture.
func small(k flow.IntentKind) bool {
	return slices.Contains([]flow.IntentKind{
		flow.MeansNothing, flow.MeansMenu, flow.MeansThanks, flow.MeansWait, flow.MeansTerms, flow.MeansYes, flow.MeansNo, flow.MeansResume, flow.MeansReceipt,
	}, k)
}

// described is what is kept of what happened to a message.
func described(k Kind, text string) string { return strings.TrimSpace("(" + string(k) + ") " + text) }

// came is what kind of thing a message came with, "" for text alone.
func came(k Kind) string {
	if slices.Contains([]Kind{KindText, KindReaction, KindRevoke, KindTimer, KindCall}, k) {
		return ""
	}
	return strings.TrimPrefix(string(k), "a ")
}

// id is the id of another message, "" where the sender made up an impossible
// one.
func id(s string) string {
	if len(s) > maxID || !utf8.ValidString(s) {
		return ""
	}
	return s
}

// eachLine is a text, each line of it without what line takes away.
func eachLine(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = line(lines[i], len(lines[i]))
	}
	return strings.Join(lines, "\n")
}

// line is a text as one line of at most limit runes, without what cannot be
// seen and could change how its surroundings look.
func line(text string, limit int) string {
	return clip(strings.Join(strings.Fields(visible(text)), " "), limit)
}
