package whatsapp

import (
	"context"
	"fmt"

	"go.mau.fi/whatsmeow"
)

// shownAs is what the phone calls us in its list of linked devices. WhatsApp
// takes known browsers and systems only.
const shownAs = "Chrome (Linux)"

// Pairing is the text of the QR code that links a phone now, false when none is
// shown. It changes every 20 to 60 seconds.
func (c *Client) Pairing() (qr string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.state != StatePairing || len(c.link.codes) == 0 {
		return "", false
	}
	return c.link.codes[0], true
}

// PairCode returns eight letters that link the phone with this number when they
// are typed into it, in place of a QR code. Where the number was logged out,
// asking for a code is the wish to pair anew. It waits for the line.
func (c *Client) PairCode(ctx context.Context, phone string) (string, error) {
	if s := c.State(); s == string(StateLoggedOut) {
		c.Resume()
	}
	for {
		c.mu.Lock()
		state, wa, changed, closed := c.link.state, c.link.wa, c.changed, c.closed
		c.mu.Unlock()
		switch {
		case closed:
			return "", ErrClosed
		case state == StatePairing:
			// The code is for this line only, which ends with its QR codes.
			code, err := wa.PairPhone(ctx, phone, true, whatsmeow.PairClientChrome, shownAs)
			if err != nil {
				return "", fmt.Errorf("asking for a pairing code: %w", err)
			}
			return code, nil
		case state == StateConnected:
			return "", ErrPaired
		case state.givenUp():
			return "", fmt.Errorf("%w: %s", ErrOffline, state)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting to pair: %w", ctx.Err())
		}
	}
}
