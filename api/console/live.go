package console

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"till/flow"
)

// The bounds of live parts. A stream is ended before proxies and the server's own
// bound on writing end it; the browser opens the next one by itself.
const (
	maxStreams = 256 // at once
	streamLife = 25 * time.Second
	writeGrace = 5 * time.Second
	lookAgain  = 300 * time.Millisecond
)

// live answers with a stream of server-sent events (html.spec.whatwg.org,
// "Server-sent events"): one named part whenever what render makes has changed.
// render is called after the handler returned: it must touch nothing of the
// request but what it took before.
func (v *visit) live(render func(ctx context.Context) ([]byte, error)) error {
	c := v.console
	if c.streams.Add(1) > maxStreams {
		c.streams.Add(-1)
		return flow.Refuse(flow.CodeRateLimited, "Too many live pages are open. Close some, or load this one again later.")
	}
	v.http.Set("Content-Type", "text/event-stream")
	v.http.Set("X-Accel-Buffering", "no")
	v.http.Status(http.StatusOK)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), streamLife)
	conn := v.http.Context().Conn()
	v.http.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer c.streams.Add(-1)
		defer cancel()
		defer func() { _ = conn.SetWriteDeadline(c.cfg.Real().Add(writeGrace)) }() // for the end of the stream, which is written next
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		var last []byte
		for first := true; ; first = false {
			part, err := render(ctx)
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

// event writes one server-sent event; a client that lost the stream comes back
// at once.
func event(name, data string) string {
	return "retry: 300\nevent: " + name + "\ndata: " + strings.ReplaceAll(strings.ReplaceAll(data, "\r", ""), "\n", "\ndata: ") + "\n\n"
}
