package api

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
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
		// For the end of the stream, which is written next.
		defer func() { _ = conn.SetWriteDeadline(time.Now().Add(screenPasses)) }() //nolint:forbidigo // the deadlines of connections are real ones
		go func() {                                                                // what waits at the network ends with the server
			select {
			case <-s.closing:
				cancel()
			case <-ctx.Done():
			}
		}()
		for screen := first; ; {
			_ = conn.SetWriteDeadline(time.Now().Add(screenPasses)) //nolint:forbidigo // the deadlines of connections are real ones
			text, err := json.Marshal(recordScreen(screen))
			if err == nil {
				_, err = w.WriteString("event: screen\ndata: " + string(text) + "\n\n")
			}
			if err != nil || w.Flush() != nil {
				return
			}
			select {
			case <-time.After(screenPause):
			case <-ctx.Done():
				return
			}
			if screen, err = phones.Screen(ctx, number, screen.Version, screenWait); err != nil {
				if ctx.Err() == nil {
					s.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "phone's screen ended", slog.String("error", err.Error()))
				}
				return
			}
		}
	})
	return nil
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
	if _, err := c.form(decodeRules{optional: true}); err != nil {
		return err
	}
	if err := phones.MarkRead(c.ctx, number); err != nil {
		return err
	}
	return c.send(http.StatusOK, map[string]any{"phone": "+" + string(number), "read": true})
}
