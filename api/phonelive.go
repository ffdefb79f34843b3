package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"till/flow"
)

// The bounds of a phone's live screen. A stream is ended before the server's own
// bound on writing ends it; the page opens the next one by itself.
const (
	maxScreens   = 64 // at once
	screenLife   = 25 * time.Second
	screenWait   = 5 * time.Second
	screenPause  = 100 * time.Millisecond // between two screens: a burst is one
	screenPasses = 5 * time.Second        // for one screen to be written
)

// bubbleRecord is one message on the phone page.
type bubbleRecord struct {
	messageRecord

	Quoted string `json:"quoted,omitempty"`
}

type screenRecord struct {
	Typing   bool           `json:"typing"`
	Messages []bubbleRecord `json:"messages"`
}

// livePhone is GET /phone/api/phones/{phone}/live: what the phone shows, as
// server-sent events (html.spec.whatwg.org, "Server-sent events"), whenever it
// has changed. The page reads them with fetch: an EventSource could not send the
// header that keeps other sites' pages out.
func (s *Server) livePhone(c *call) error {
	phones, number, err := s.onePhone(c)
	if err != nil {
		return err
	}
	first, err := phones.Screen(c.ctx, number, 0, 0)
	if err != nil {
		return err
	}
	if s.screens.Add(1) > maxScreens {
		s.screens.Add(-1)
		return flow.Refuse(flow.CodeRateLimited, "Too many phones are looked at. Close some of their pages.")
	}
	http1 := c.http.Context()
	write(http1, http.StatusOK, nil)
	http1.Response.Header.SetContentType("text/event-stream")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), screenLife)
	conn := http1.Conn()
	http1.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.screens.Add(-1)
		defer cancel()
		ctx, end := s.waiting(ctx)
		defer end()
		grace := func() { _ = conn.SetWriteDeadline(time.Now().Add(screenPasses)) } //nolint:forbidigo // the deadlines of connections are real ones
		defer grace()                                                               // for the end of the stream, which is written next
		err := s.showScreens(ctx, w, grace, first, func(seen int64) (Screen, error) {
			select {
			case <-time.After(screenPause):
				return phones.Screen(ctx, number, seen, screenWait)
			case <-ctx.Done():
				return Screen{}, ctx.Err()
			}
		})
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "phone's screen ended", slog.String("error", err.Error()))
		}
	})
	return nil
}

// showScreens writes a screen, and each one that next brings after it, until one
// of them fails.
func (s *Server) showScreens(ctx context.Context, w *bufio.Writer, grace func(), screen Screen, next func(seen int64) (Screen, error)) error {
	defer func() {
		if crash := recover(); crash != nil { // nothing else is around it that would keep the program up
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "panic in a phone's screen", slog.String("stack", fmt.Sprintf("%v\n%s", crash, debug.Stack())))
		}
	}()
	for {
		grace()
		text, err := json.Marshal(recordScreen(screen))
		if err != nil {
			return err
		}
		if _, err := w.WriteString("event: screen\ndata: " + string(text) + "\n\n"); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if screen, err = next(screen.Version); err != nil {
			return err
		}
	}
}

func recordScreen(s Screen) screenRecord {
	out := screenRecord{Typing: s.Typing, Messages: make([]bubbleRecord, 0, len(s.Messages))}
	for _, m := range s.Messages {
		out.Messages = append(out.Messages, bubbleRecord{recordMessage(m), m.Quoted})
	}
	return out
}

// markRead is POST /phone/api/phones/{phone}/read: the payer has the chat before
// their eyes.
func (s *Server) markRead(c *call) error {
	phones, number, err := s.onePhone(c)
	if err != nil {
		return err
	}
	if err := c.form(decodeRules{optional: true}).refused; err != nil {
		return err
	}
	if err := phones.MarkRead(c.ctx, number); err != nil {
		return err
	}
	return c.send(http.StatusOK, map[string]any{"phone": "+" + string(number), "read": true})
}
