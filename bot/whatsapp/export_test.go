package whatsapp

import (
	"context"
	"net"
	"net/http"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
)

// Await waits until the client is in a state.
func (c *Client) Await(ctx context.Context, ok func(s State) bool) error {
	for {
		c.mu.Lock()
		s, changed := c.link.state, c.changed
		c.mu.Unlock()
		if ok(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Hurry shortens what a test would have to wait for.
func (c *Client) Hurry(again, ack time.Duration) {
	c.pace.retryFrom, c.pace.againFrom, c.pace.againTo, c.pace.ack = again, again, again, ack
}

// Unhurried gives a client its usual pace back.
func (c *Client) Unhurried() { c.pace = usual }

// HurrySync shortens how long nothing more may come before what was missed counts as in,
// and how long that takes at most.
func (c *Client) HurrySync(quiet, most time.Duration) { c.pace.sync, c.pace.syncMost = quiet, most }

// HurryBack shortens the wait of a number that was replaced.
func (c *Client) HurryBack(after, calm time.Duration) { c.pace.replaced, c.pace.calm = after, calm }

// Line is the client of a slot that runs, nil for none.
func (f *Fleet) Line(slot int) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[slot]
}

// UnderWay counts the messages that are being sent.
func (c *Client) UnderWay() int { return len(c.sends) }

// Inbound is what becomes of a message.
func (c *Client) Inbound(ctx context.Context, evt *events.Message) (bot.Message, bool, error) {
	c.mu.Lock()
	wa := c.link.wa
	c.mu.Unlock()
	return c.inbound(ctx, wa, evt)
}

// Handle gives the client an event, as the library does.
func (c *Client) Handle(ctx context.Context, evt any) bool {
	c.mu.Lock()
	wa := c.link.wa
	c.mu.Unlock()
	return c.handle(ctx, wa, evt)
}

// The parts that tests look at on their own.
var (
	Scrub    = scrub
	Spaced   = spaced
	LogOf    = logOf
	OpenFile = openFile
)

// WebClient is the HTTP client for the websocket.
func WebClient(dial func(ctx context.Context) (net.Conn, error)) *http.Client {
	return webClient(dial, func(*wire) {})
}

// NoMedia is what fetches media.
var NoMedia http.RoundTripper = noMedia{}

// Settings are what the client was made of.
func (c *Client) Settings() Config { return c.cfg }
