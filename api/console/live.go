package console

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"till/flow"
)

// The bounds of live parts. A stream is ended before proxies and the server's own
// bound on writing end it; the browser opens the next one by itself.
const (
	maxStreams     = 256 // at once
	maxStreamsEach = 48  // of one account, so that many tabs leave room for others
	streamLife     = 25 * time.Second
	writeGrace     = 5 * time.Second
	lookAgain      = 300 * time.Millisecond
	knowAgain      = time.Second // how long whoever is shut out may look on
)

// streams counts the live parts under way.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// takes counts one more of an account, where there is room: it has no more than are left
// for others, or a few accounts, which cost nothing, would have all of them.
func (s *streams) takes(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[account] >= min(maxStreamsEach, maxStreams-s.all) {
		return false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[account]++
	return true
}

// gives takes one of an account back.
func (s *streams) gives(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[account]--; s.of[account] == 0 {
		delete(s.of, account)
	}
}

// live answers with a stream of server-sent events (html.spec.whatwg.org,
// "Server-sent events"): one named part whenever what render makes has changed.
// render is called after the handler returned: it must touch nothing of the
// request but what it took before.
func (v *visit) live(render func(ctx context.Context) ([]byte, error)) error {
	c, account, text := v.console, cmp.Or(v.who.Account, string(v.who.Role)), v.text
	v.http.Set("Content-Type", "text/event-stream")
	if v.bodiless() {
		return nil
	}
	if !c.streams.takes(account) {
		return flow.Refuse(flow.CodeRateLimited, "Too many live pages are open. Close some, or load this one again later.")
	}
	v.http.Set("X-Accel-Buffering", "no")
	v.http.Status(http.StatusOK)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), streamLife)
	conn := v.http.Context().Conn()
	v.http.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer c.streams.gives(account)
		defer cancel()
		defer func() { _ = conn.SetWriteDeadline(c.cfg.Real().Add(writeGrace)) }() // for the end of the stream, which is written next
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		var last []byte
		known := c.cfg.Real()
		for first := true; ; first = false {
			if now := c.cfg.Real(); now.Sub(known) >= knowAgain {
				if known = now; c.over(ctx, text) { // the browser that asks again is told to log in
					return
				}
			}
			part, err := safely(ctx, render)
			if err != nil {
				if ctx.Err() == nil {
					c.cfg.Log.LogAttrs(ctx, slog.LevelError, "live part failed", slog.String("error", err.Error()))
				}
				return
			}
			if first || !bytes.Equal(part, last) {
				last = part
				_ = conn.SetWriteDeadline(c.cfg.Real().Add(writeGrace)) // the server's own bound is for whole answers
				if _, err := w.WriteString(event("part", string(part))); err != nil || w.Flush() != nil {
					return
				}
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			case <-c.cfg.Closing:
				return
			}
		}
	})
	return nil
}

// ofHere refuses a live part of a page that was of another project or environment: it would
// show under their names who waits for others. What is of no project names its
// environment alone.
func (v *visit) ofHere() error {
	if of := v.query("of"); of != "" && of != v.place() && of != string(v.env) {
		return flow.Refuse(codeNotAllowed, "The page with this part was of another project or environment than you look at by now. Load it anew.")
	}
	return nil
}

// over says whether a login has ended: whoever cannot be asked about it has not.
func (c *Console) over(ctx context.Context, text string) bool {
	_, err := c.cfg.Accounts.Visit(ctx, text)
	return err != nil && stranger(err)
}

// safely makes a part. A crash ends this stream alone: nothing else is around it
// that would keep the program up.
func safely(ctx context.Context, render func(ctx context.Context) ([]byte, error)) (part []byte, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("panic: %v\n%s", crash, debug.Stack())
		}
	}()
	return render(ctx)
}

// event writes one server-sent event; a client that lost the stream comes back
// at once.
func event(name, data string) string {
	return "retry: 300\nevent: " + name + "\ndata: " + strings.ReplaceAll(strings.ReplaceAll(data, "\r", ""), "\n", "\ndata: ") + "\n\n"
}
