package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"

	"till/bot"
	"till/flow/checkout"
)

// The bounds of a message that is sent.
const (
	maxID   = 64
	maxText = 65_536
	maxLID  = 20
	// maxSends is how many messages can be under way; they go out one by one.
	maxSends = 64
)

var _ bot.Sender = (*Client)(nil)

// Send sends a text to a person and returns when WhatsApp has taken it. The
// error says what to do: nothing was sent and later is soon enough (ErrOffline),
// send it again under the same id now (ErrUnconfirmed), or do not send it again
// (ErrRefused, ErrInput; both are checkout.ErrUndeliverable where it is the
// message that WhatsApp will not have). Messages of one number go out one after
// the other.
func (c *Client) Send(ctx context.Context, o checkout.Outgoing) error {
	if o.ID == "" || len(o.ID) > maxID || o.Text == "" || len(o.Text) > maxText {
		return fmt.Errorf("%w: %w: an id has at most %d bytes, a text %d", checkout.ErrUndeliverable, ErrInput, maxID, maxText)
	}
	if !isLID(o.Person) {
		return fmt.Errorf("%w: %w: a person is the digits of a LID", checkout.ErrUndeliverable, ErrInput)
	}
	c.mu.Lock()
	wa, number, state := c.link.wa, c.link.number, c.link.state
	locked := o.First && c.link.locked(c.cfg.Now())
	c.mu.Unlock()
	if state != StateConnected {
		return fmt.Errorf("%w: %s", ErrOffline, state)
	}
	if locked {
		return fmt.Errorf("%w: %w", ErrOffline, errTimelock)
	}
	if o.Number != "" && o.Number != number {
		return fmt.Errorf("%w: this is another number", ErrInput)
	}
	ctx, cancel := context.WithTimeout(ctx, c.pace.send)
	defer cancel()
	select {
	case c.sends <- struct{}{}:
	case <-ctx.Done(): // it never left
		return fmt.Errorf("%w: %d messages are under way: %w", ErrOffline, maxSends, ctx.Err())
	}
	sent := make(chan error, 1)
	go func() {
		defer func() { <-c.sends }()
		sent <- c.deliver(context.WithoutCancel(ctx), wa, o)
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: sending %s: %w", ErrUnconfirmed, o.ID, ctx.Err())
	}
}

func isLID(person string) bool {
	return person != "" && len(person) <= maxLID && strings.Trim(person, "0123456789") == ""
}

// Typing shows a person that an answer is being written, until it comes. It
// waits for nothing, and whatever goes wrong with it does not matter.
func (c *Client) Typing(ctx context.Context, number, person string) {
	c.mu.Lock()
	wa, ours, state := c.link.wa, c.link.number, c.link.state
	c.mu.Unlock()
	if state != StateConnected || number != ours || !isLID(person) {
		return
	}
	select {
	case c.sends <- struct{}{}:
	default:
		return
	}
	ctx = context.WithoutCancel(ctx) // as in deliver
	go func() {
		defer func() { <-c.sends }()
		defer func() { _ = recover() }() // as in deliver
		err := wa.SendChatPresence(ctx, types.NewJID(person, types.HiddenUserServer), types.ChatPresenceComposing, types.ChatPresenceMediaText)
		if err != nil {
			c.log.DebugContext(ctx, "whatsapp typing not shown", slog.String("error", scrub(err.Error())))
		}
	}()
}

// deliver sends a message. Its context is never cancelled: the library closes
// the channel that the server's answer goes to when a caller gives up, and an
// answer that arrives in that moment would end the process. It ends all the
// same: by the library's own limits, and with the line.
func (c *Client) deliver(ctx context.Context, wa *whatsmeow.Client, o checkout.Outgoing) (err error) {
	defer func() { // the library's bookkeeping of answers, at a line's end
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: sending %s panicked: %s", ErrUnconfirmed, o.ID, scrub(fmt.Sprint(p)))
		}
	}()
	// The library sends one message at a time too: what waits here would wait
	// there, but past the question.
	c.turn.Lock()
	defer c.turn.Unlock()
	if err = c.may(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrOffline, err)
	}
	_, err = wa.SendMessage(ctx, types.NewJID(o.Person, types.HiddenUserServer),
		written(o.Text, o.Fades), whatsmeow.SendRequestExtra{ID: o.ID, Timeout: c.pace.ack})
	if o.First && isTimelock(err) {
		c.lockChats(true, time.Time{})
		return fmt.Errorf("%w: %w: sending %s: %w", ErrOffline, errTimelock, o.ID, err)
	}
	if err != nil {
		return fmt.Errorf("%w: sending %s: %w", verdict(err), o.ID, err)
	}
	return nil
}

// settleSends waits, within bounds, until no message is under way.
func (c *Client) settleSends() {
	late := time.NewTimer(c.pace.drain)
	defer late.Stop()
	taken := 0
	for ; taken < maxSends; taken++ {
		select {
		case c.sends <- struct{}{}:
			continue
		case <-late.C:
		}
		break
	}
	for range taken {
		<-c.sends
	}
}

// verdict sorts the ways in which sending goes wrong. What is not known to have
// stayed here may have left.
func verdict(err error) error {
	switch {
	case errors.Is(err, whatsmeow.ErrNotConnected), errors.Is(err, whatsmeow.ErrNotLoggedIn):
		return ErrOffline
	case refusedWith(err, "429", "500", "503"): // haste and trouble of the server's own pass, and say nothing of the message
		return ErrUnconfirmed
	case errors.Is(err, whatsmeow.ErrServerReturnedError):
		return fmt.Errorf("%w: %w", checkout.ErrUndeliverable, ErrRefused)
	default:
		return ErrUnconfirmed
	}
}

// refusedWith says whether the server refused a message with one of these codes.
// The library has the code in its text alone.
func refusedWith(err error, codes ...string) bool {
	return errors.Is(err, whatsmeow.ErrServerReturnedError) &&
		slices.ContainsFunc(codes, func(code string) bool { return strings.HasSuffix(err.Error(), " "+code) })
}
