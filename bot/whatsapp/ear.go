package whatsapp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"till/bot"
	"till/flow/checkout"
)

// signWord begins each sign that our numbers send each other. Nobody but they
// can have a message taken for one.
const signWord = "till ear "

// maxSigns bounds the signs that are waited for.
const maxSigns = 16

// ear waits for signs: messages whose arrival proves that a line hears.
type ear struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by message id
}

// expect waits for a sign from now on. The caller calls done.
func (e *ear) expect(id string) (heard <-chan struct{}, done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[string]chan struct{}{}
	}
	if len(e.waiting) >= maxSigns {
		clear(e.waiting)
	}
	arrived := make(chan struct{}, 1)
	e.waiting[id] = arrived
	return arrived, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, id)
	}
}

func (e *ear) arrived(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.waiting[id]; ok {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// receipt takes our own phone's word that a sign to ourselves arrived there.
func (e *ear) receipt(evt *events.Receipt) {
	if !evt.IsFromMe {
		return
	}
	for _, id := range evt.MessageIDs {
		e.arrived(id)
	}
}

// take says whether a message is a sign. It must come from a number of ours,
// which the caller knows.
func (e *ear) take(m bot.Message) bool {
	if !strings.HasPrefix(m.Text, signWord) {
		return false
	}
	e.arrived(m.ID)
	return true
}

// lid is our own lasting id, "" while it is not known.
func (c *Client) lid() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.wa == nil || c.link.state != StateConnected {
		return ""
	}
	return c.link.wa.Store.GetLID().User
}

// sign sends a sign to another number of ours, or to ourselves, and says
// whether it arrived in time. The error says that it could not be sent, which
// says nothing of who should have heard it.
func (c *Client) sign(ctx context.Context, to *Client, id string, within time.Duration) (heard bool, err error) {
	person := to.lid()
	if person == "" {
		return false, fmt.Errorf("%w: nobody to send a sign to", ErrOffline)
	}
	arrived, done := to.ear.expect(id)
	defer done()
	if err := c.Send(ctx, checkout.Outgoing{Person: person, ID: id, Text: signWord + id}); err != nil {
		return false, err
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-arrived:
		return true, nil
	case <-late.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
