package meter

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"till/bot"
	"till/flow"
)

// redactedCard is the kind of a redaction of a card number.
const redactedCard = "card"

// The directions of messages.
const (
	in  = "in"
	out = "out"
)

// lower is a state of ours as a label.
func lower[T ~string](s T) string { return strings.ToLower(string(s)) }

// Session implements checkout.Meter.
func (e ofEnv) Session(from, to flow.SessionStatus) {
	e.m.sessions.WithLabelValues(e.env, lower(to)).Inc()
	if from != "" {
		e.m.transitions.WithLabelValues(lower(from), lower(to)).Inc()
	}
}

// Payment implements checkout.Meter.
func (e ofEnv) Payment(outcome flow.MatchStatus, amount flow.Kobo) {
	e.m.charges.WithLabelValues(e.env, lower(outcome)).Inc()
	e.amounts.Add(float64(amount))
}

// Notice implements checkout.Meter.
func (e ofEnv) Notice(outcome string) { e.m.notices.WithLabelValues(outcome).Inc() }

// Heard implements checkout.Meter.
func (e ofEnv) Heard(i flow.Intent) {
	e.m.messages.WithLabelValues(in, messageKind(i.Kind)).Inc()
	understood := i.Kind != flow.MeansNothing && i.Kind != flow.MeansMaybe
	e.m.intents.WithLabelValues(string(i.Kind), strconv.FormatBool(understood)).Inc()
	if i.Kind == flow.MeansSecret {
		kind := other
		if bot.WasCard(i.Text) {
			kind = redactedCard
		}
		e.m.redactions.WithLabelValues(kind).Inc()
	}
}

// messageKind is what kind of message has a meaning; most are text.
func messageKind(k flow.IntentKind) string {
	switch k { //nolint:exhaustive // all others are text
	case flow.MeansMedia, flow.MeansUnread:
		return "media"
	case flow.MeansCall:
		return "call"
	case flow.MeansNote:
		return "note"
	case flow.MeansTakeover:
		return "own"
	default:
		return "text"
	}
}

// Said implements checkout.Meter. A key is the name of a sentence of ours.
func (e ofEnv) Said(key string) { e.m.messages.WithLabelValues(out, key).Inc() }

// Unsent implements checkout.Meter.
func (e ofEnv) Unsent(reason string, messages int) {
	e.m.unsent.WithLabelValues(e.env, reason).Add(float64(messages))
}

// Unreadable counts a message that could not be decrypted: see whatsapp.Config.
func (m *Meter) Unreadable() { m.unreadable.Inc() }

// Replied implements checkout.Meter.
func (e ofEnv) Replied(took time.Duration) { e.m.replies.Observe(took.Seconds()) }

// Delivery implements checkout.Meter.
func (e ofEnv) Delivery(reason string) {
	e.m.attempts.WithLabelValues(e.env, cmp.Or(reason, "ok")).Inc()
}
