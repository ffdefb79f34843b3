package wanet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// screenMessages is how many messages a screen shows.
const screenMessages = 300

// Screen is what a phone shows: all its chats as one, for a pretend payer only
// writes to numbers of the same bot.
type Screen struct {
	Version  int64     `json:"version"`  // another one whenever something on it changed
	Messages []Message `json:"messages"` // the newest, oldest first
	Typing   bool      `json:"typing"`   // the other side of the chat that was named writes
}

// stir tells whoever waits that what the phone shows has changed. The caller
// holds Network.mu.
func (p *Phone) stir() {
	p.version++
	close(p.changed)
	p.changed = make(chan struct{})
}

// Screen returns what the phone shows, and whether the other side of a chat is
// typing. While that is still the version seen it waits for a change, at most as
// long as said and never over 50 s.
func (p *Phone) Screen(ctx context.Context, chat string, seen int64, wait time.Duration) (out Screen, err error) {
	n := p.a.n
	err = p.until(ctx, wait, func() bool {
		out = Screen{Version: p.version, Messages: []Message{}}
		if other, err := n.find(chat); err == nil {
			out.Typing = n.now().Before(p.typing[other.phone])
		}
		for _, s := range p.msgs[max(0, len(p.msgs)-screenMessages):] {
			out.Messages = append(out.Messages, s.Message)
		}
		return p.version != seen
	})
	return out, err
}

func (n *Network) getScreen(r *http.Request) (any, error) {
	p, err := n.pathPhone(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	seen, err := strconv.ParseInt(q.Get("seen"), 10, 64)
	wait, werr := strconv.ParseInt(q.Get("wait"), 10, 64)
	if err != nil || werr != nil || wait < 0 || wait > 3600 {
		return nil, fmt.Errorf("%w: seen and wait are numbers", ErrInput)
	}
	return p.Screen(r.Context(), q.Get("chat"), seen, time.Duration(wait)*time.Second)
}

// Screen is Phone.Screen; wait is rounded up to seconds.
func (r *Remote) Screen(ctx context.Context, phone, chat string, seen int64, wait time.Duration) (s Screen, err error) {
	q := url.Values{
		"chat": {chat}, "seen": {strconv.FormatInt(seen, 10)}, "wait": {strconv.FormatInt(int64((min(max(wait, 0), maxPoll)+time.Second-1)/time.Second), 10)},
	}
	err = r.call(ctx, http.MethodGet, phonePath(phone, "/screen?"+q.Encode()), nil, &s)
	return s, err
}
