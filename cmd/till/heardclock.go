package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// heardClock is the clock of a server that we call, as the Date of its answers has
// it: one outside of this machine that costs no call of its own.
type heardClock struct {
	next http.RoundTripper
	now  func() time.Time // ours

	mu   sync.Mutex
	said time.Time // by the server
	at   time.Time // when, by us
}

// The bounds of what is believed of an answer's Date.
const (
	dateAfter = time.Second            // an answer that took longer says little of when it was made
	dateLasts = 10 * time.Minute       // what was said before is not reckoned with any more
	dateHalf  = 500 * time.Millisecond // a Date has whole seconds
)

// RoundTrip implements http.RoundTripper.
func (c *heardClock) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := c.now()
	res, err := c.next.RoundTrip(r)
	took := c.now().Sub(asked)
	if err != nil || took > dateAfter {
		return res, err
	}
	if said, bad := http.ParseTime(res.Header.Get("Date")); bad == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said, c.at = said.Add(dateHalf), asked.Add(took/2)
	}
	return res, nil
}

// Now is what that clock shows now; false where nothing was heard lately.
func (c *heardClock) Now(context.Context) (time.Time, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ago := c.now().Sub(c.at)
	return c.said.Add(ago), ago < dateLasts, nil
}
