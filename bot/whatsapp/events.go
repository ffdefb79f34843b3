package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/flow/checkout"
	"till/flow/crashpoint"
)

// maxIDs bounds the messages that one receipt can be about.
const maxIDs = 256

// handle takes one event of a line. What it returns decides whether WhatsApp
// is told that a message has arrived; the library takes a panic for a yes, so
// it must not get to see one.
func (c *Client) handle(ctx context.Context, wa *whatsmeow.Client, evt any) (kept bool) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.stopping || ctx.Err() != nil {
		return false
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.log.ErrorContext(ctx, "whatsapp event panicked", slog.String("event", fmt.Sprintf("%T", evt)),
			slog.String("panic", scrub(fmt.Sprint(p))), slog.String("stack", string(debug.Stack())))
		if kept = false; isMessage(evt) {
			c.set(func(l *link) { l.again = true })
		}
	}()
	c.notice(evt)
	switch evt := evt.(type) {
	case *events.Message:
		defer c.comesIn()()
		return c.message(ctx, wa, evt)
	case *events.Receipt:
		c.receipt(ctx, evt)
	case *events.CallOffer:
		c.call(ctx, wa, evt)
	case *events.UndecryptableMessage:
		if evt.UnavailableType == events.UnavailableTypeViewOnce {
			c.shownOnce(ctx, wa, evt)
			break
		}
		c.log.WarnContext(ctx, "whatsapp message cannot be read yet", slog.String("message", evt.Info.ID))
		if c.cfg.Unreadable != nil && !evt.Info.IsGroup && isPerson(evt.Info.Sender) && isPerson(evt.Info.Chat) {
			c.cfg.Unreadable()
		}
	case *events.IdentityChange:
		c.log.WarnContext(ctx, "whatsapp sender has a new phone", slog.String("person", shortened(evt.JID.User)))
	case *events.NotifyAccountReachoutTimelock:
		c.log.ErrorContext(ctx, "whatsapp stops first messages to strangers", slog.Bool("active", evt.IsActive),
			slog.Time("until", evt.TimeEnforcementEnds.Time))
		c.lockChats(evt.IsActive, evt.TimeEnforcementEnds.Time)
	default:
		if c.current(wa) {
			c.line(ctx, wa, evt)
		}
	}
	return true
}

func isMessage(evt any) bool {
	_, is := evt.(*events.Message)
	return is
}

// current says whether events of a client still count: after a log-out there is
// another one.
func (c *Client) current(wa *whatsmeow.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.wa == wa
}

// line takes an event about the line itself.
func (c *Client) line(ctx context.Context, wa *whatsmeow.Client, evt any) {
	switch evt := evt.(type) {
	case *events.QR:
		c.set(func(l *link) {
			l.state, l.tries, l.codes, l.total, l.shown = StatePairing, 0, evt.Codes, len(evt.Codes), false
		})
	case *events.PairSuccess:
		// The line ends now. If its end gets lost there would be no other.
		c.set(func(l *link) {
			l.state, l.codes, l.number, l.within = StateConnecting, nil, evt.ID.User, c.pace.relogin
			if l.lockedOn != l.number { // the lock was another number's
				l.lockedTo = time.Time{}
			}
		})
		c.log.InfoContext(ctx, "whatsapp number paired", slog.String("number", shortened(evt.ID.User)))
	case *events.PairError:
		c.set(func(l *link) { l.state, l.dialled, l.codes, l.fresh = StateConnecting, false, nil, true })
		c.log.ErrorContext(ctx, "whatsapp pairing failed", slog.String("error", scrub(evt.Error.Error())))
	case *events.PairPasskeyRequest:
		c.set(func(l *link) { l.state, l.codes, l.within = StatePasskey, nil, c.pace.login })
		c.log.ErrorContext(ctx, "whatsapp wants a passkey to pair; link this number with a code instead")
	case *events.ManualLoginReconnect:
		c.set(func(l *link) { l.state, l.dialled, l.tries = StateConnecting, false, 0 })
	case *events.Connected:
		by := c.cfg.Now().Add(c.pace.syncMost)
		c.set(func(l *link) { l.state, l.tries, l.syncBy = StateConnected, 0, by })
		c.log.InfoContext(ctx, "whatsapp connected")
		if err := wa.SendPresence(ctx, types.PresenceAvailable); err != nil {
			c.log.WarnContext(ctx, "whatsapp presence not sent", slog.String("error", scrub(err.Error())))
		}
	case *events.Disconnected:
		c.log.InfoContext(ctx, "whatsapp line ended")
		c.lost(false)
	case *events.OfflineSyncCompleted:
		c.set(func(l *link) { l.synced = true })
	case *events.KeepAliveRestored:
		c.set(func(l *link) { l.silent = false })
	case *events.KeepAliveTimeout:
		c.set(func(l *link) { l.silent = true })
		if evt.ErrorCount >= maxDeafPings {
			c.log.WarnContext(ctx, "whatsapp line is dead")
			c.cut()
		}
	default:
		c.lasting(ctx, evt)
	}
}

// maxDeafPings is how many keep-alives in a row may stay without an answer.
const maxDeafPings = 3

// lost has Run open a new line, unless it has given up. The end of a line can
// be told late, when there is a new one already that it does not concern.
func (c *Client) lost(refused bool) {
	openBy := c.cfg.Now().Add(c.pace.syncMost)
	c.set(func(l *link) {
		if l.state.givenUp() || l.state == StateBanned || !refused && (l.wire == nil || !l.wire.over()) {
			return
		}
		if l.state == StateConnected && l.synced { // one that never comes that far is not waited for each time anew
			l.openBy = openBy
		}
		l.state, l.dialled, l.codes = StateConnecting, false, nil
	})
}

// lasting takes an event after which a new line alone would not help.
func (c *Client) lasting(ctx context.Context, evt any) {
	var to State
	again := false // it takes its line back by itself, once
	switch evt := evt.(type) {
	case *events.StreamReplaced: // by another program with the same keys
		to = StateReplaced
		now := c.cfg.Now()
		c.set(func(l *link) {
			l.comeback = now.Sub(l.cameBack) > c.pace.calm
			again = l.comeback
		})
	case *events.LoggedOut:
		to = StateLoggedOut
	case *events.ClientOutdated:
		to = StateOutdated
	case *events.TemporaryBan:
		c.log.ErrorContext(ctx, "whatsapp number is banned for a time", slog.Int("code", int(evt.Code)), slog.Duration("for", evt.Expire))
		within := evt.Expire
		if within <= 0 {
			within = c.pace.ban
		}
		until := c.cfg.Now().Add(within)
		c.set(func(l *link) {
			l.state, l.dialled, l.within, l.until, l.code = StateBanned, false, within, until, int(evt.Code)
		})
		return
	case *events.ConnectFailure:
		c.log.ErrorContext(ctx, "whatsapp refused the line", slog.String("reason", evt.Reason.String()))
		c.lost(true)
		return
	default:
		return
	}
	c.set(func(l *link) { l.state, l.codes, l.again, l.keyless = to, nil, false, false })
	if to == StateLoggedOut && c.cfg.Relink {
		c.log.WarnContext(ctx, "whatsapp number was unlinked, and is linked anew")
		c.Resume()
		return
	}
	if again {
		c.log.WarnContext(ctx, "whatsapp number was replaced, and takes its line back once if it still is ours", slog.Duration("in", c.pace.replaced))
		return
	}
	c.log.ErrorContext(ctx, "whatsapp number needs somebody", slog.String("state", string(to)))
}

// message hands a message over. True means that WhatsApp may forget it.
func (c *Client) message(ctx context.Context, wa *whatsmeow.Client, evt *events.Message) bool {
	ctx, cancel := context.WithTimeout(ctx, c.pace.receive)
	defer cancel()
	m, wanted, err := c.inbound(ctx, wa, evt)
	if !wanted && err == nil {
		return true
	}
	if err == nil && c.cfg.Ear != nil && c.cfg.Ear(m) {
		return true
	}
	if err == nil {
		err = c.cfg.Receive(ctx, m)
	}
	switch {
	case errors.Is(err, bot.ErrMessage): // it would be no better the next time
		c.log.ErrorContext(ctx, "whatsapp message dropped", slog.String("message", evt.Info.ID), slog.String("error", scrub(err.Error())))
		return true
	case err != nil:
		c.log.ErrorContext(ctx, "whatsapp message not kept", slog.String("message", evt.Info.ID),
			slog.String("phone", m.Phone.String()), slog.String("error", scrub(err.Error())))
		c.set(func(l *link) { l.again = true })
		return false
	}
	crashpoint.At(crashpoint.TurnKept)
	if m.Own { // nothing of ours is to be marked as read
		return true
	}
	select { // blue ticks are a courtesy: nobody waits for them
	case c.read <- receipt{wa: wa, id: evt.Info.ID, chat: evt.Info.Chat, sender: evt.Info.Sender}:
	default:
	}
	return true
}

// shownOnce hands over what can be looked at once. A linked device is told that it
// came and never gets it, but whoever sent it waits for an answer like for any
// other. It is told once: what is not kept of it is lost.
func (c *Client) shownOnce(ctx context.Context, wa *whatsmeow.Client, evt *events.UndecryptableMessage) {
	c.message(ctx, wa, &events.Message{Info: evt.Info, Message: &waE2E.Message{PlaceholderMessage: &waE2E.PlaceholderMessage{}}})
}

// states are what receipts say of a message of ours. Receipts of other kinds are
// between devices.
var states = map[types.ReceiptType]string{
	types.ReceiptTypeDelivered: "delivered", types.ReceiptTypeRead: "read", types.ReceiptTypePlayed: "read",
}

// receipt notes what became of messages of ours. It is told once: an error is
// logged and that is all.
func (c *Client) receipt(ctx context.Context, evt *events.Receipt) {
	state, said := states[evt.Type]
	if !said || evt.IsFromMe || evt.IsGroup || !isPerson(evt.Sender) {
		return
	}
	c.mu.Lock()
	number := c.link.number
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.pace.tick)
	defer cancel()
	at := evt.Timestamp
	if at.IsZero() {
		at = c.cfg.Now()
	}
	for _, id := range evt.MessageIDs[:min(len(evt.MessageIDs), maxIDs)] {
		err := c.cfg.Tick(ctx, checkout.Tick{Number: number, Message: id, State: state, At: at})
		if err != nil {
			c.log.WarnContext(ctx, "whatsapp tick not kept", slog.String("message", id), slog.String("error", scrub(err.Error())))
		}
	}
}

// maxReads bounds the messages that wait to be marked as read.
const maxReads = 256

// receipt is a message to mark as read.
type receipt struct {
	wa           *whatsmeow.Client
	id           string
	chat, sender types.JID
}

// markRead shows senders that their messages were read. What is under way ends
// with the line; see deliver for why it is not cancelled.
func (c *Client) markRead(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-c.read:
			err := r.wa.MarkRead(context.WithoutCancel(ctx), []types.MessageID{r.id}, c.cfg.Now(), r.chat, r.sender)
			if err != nil {
				c.log.DebugContext(ctx, "whatsapp message not marked as read", slog.String("error", scrub(err.Error())))
			}
		}
	}
}
