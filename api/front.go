package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"till/api/console"
	"till/flow"
)

// noted is what becomes known of a request on its way, for its one log line.
type noted struct {
	request string // its id
	route   string // the pattern, never the path: that holds ids and phones
	project flow.ProjectID
	env     flow.Environment // of the key it was called with, "" for none
	hint    string           // of that key
	code    flow.Code
	err     error
	probe   bool // asked again and again by a machine
	shed    bool // refused before it was looked at, as too many others were under way
	trace   flow.Trace
	session flow.SessionID // that it is about, "" for none
}

// notServed says whether a request was refused because nobody offers what it asked for.
func (n *noted) notServed() bool { return errors.Is(n.err, flow.ErrNotServed) }

// notedKey is where a request's noted lives in fasthttp's context.
const notedKey = "till.noted"

// front wraps the router: it names the request, judges its framing, survives a
// panic and writes the log line.
func (s *Server) front(route fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		began, answered := s.cfg.Now(), s.cfg.Answering()
		working := s.atWork.Add(1)
		defer s.atWork.Add(-1)
		n := s.note(ctx)
		defer func() {
			if crash := recover(); crash != nil {
				n.err = fmt.Errorf("panic: %v\n%s", crash, debug.Stack())
				ctx.Response.Reset()
				s.refuse(ctx, flow.Refuse(flow.CodeInternal, internalMessage))
			}
			took := s.cfg.Now().Sub(began)
			s.log(ctx, n, took)
			answered(n.route, methodOf(ctx), ctx.Response.StatusCode(), n.env, n.notServed())
			if n.env != "" {
				s.requests.note(ctx, n, began, took)
			}
		}()
		if why := guard(ctx); why != "" {
			s.refuse(ctx, flow.Refuse(codeMalformedRequest, "The request can be read in more than one way: %s.", why))
			ctx.SetConnectionClose()
			return
		}
		ctx.Request.Header.SetMethod(methodOf(ctx))
		if working > maxAtWork && !s.vital(ctx) {
			n.shed = true
			s.refuse(ctx, &flow.Error{Code: flow.CodeStorage, Message: "More is asked of this server at once than it can answer soon. Try again in a second.", RetryAfter: time.Second})
			return
		}
		route(ctx)
	}
}

// vital says whether a request is answered however many others are under way: a
// fact must not be refused, and whoever asks how things stand must be told.
func (*Server) vital(ctx *fasthttp.RequestCtx) bool {
	path := string(ctx.Path())
	return strings.HasPrefix(path, railsPath) || path == "/livez" || path == "/readyz"
}

// note gives a request its id, once.
func (s *Server) note(ctx *fasthttp.RequestCtx) *noted {
	if n, ok := ctx.UserValue(notedKey).(*noted); ok {
		return n
	}
	id, err := s.cfg.IDs.New(flow.PrefixRequest)
	n := &noted{request: id, err: err, trace: traceOf(ctx, id)}
	ctx.SetUserValue(notedKey, n)
	return n
}

// traceOf is the trace that a request belongs to: the one that its caller names,
// or else one of its own.
func traceOf(ctx *fasthttp.RequestCtx, id string) flow.Trace {
	var parents, states []string
	for _, v := range ctx.Request.Header.PeekAll("Traceparent") {
		parents = append(parents, string(v))
	}
	if len(parents) > 0 {
		for _, v := range ctx.Request.Header.PeekAll("Tracestate") {
			states = append(states, string(v))
		}
	}
	if t, ok := flow.ParseTrace(parents, states); ok {
		return t.Then(id)
	}
	return flow.NewTrace(id)
}

func (s *Server) log(ctx *fasthttp.RequestCtx, n *noted, took time.Duration) {
	status := ctx.Response.StatusCode()
	attrs := []slog.Attr{
		slog.String("request", n.request), slog.String("method", methodOf(ctx)), slog.String("route", n.route),
		slog.Int("status", status), slog.Int64("dur_ms", took.Milliseconds()),
	}
	if n.session != "" && status != http.StatusNotFound { // an id that somebody made up is not kept
		attrs = append(attrs, slog.String("session", string(n.session)))
	}
	if n.project != "" {
		attrs = append(attrs, slog.String("project", string(n.project)))
	}
	if n.code != "" {
		attrs = append(attrs, slog.String("code", string(n.code)))
	}
	level := slog.LevelInfo
	switch {
	case n.probe && (status == http.StatusOK || n.code == codeNotReady): // what changes has lines of its own
		level = slog.LevelDebug
	case n.notServed(): // as an operator wants it
	case n.shed: // there are thousands of them, and a gauge tells
		level = slog.LevelDebug
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
		if n.err != nil {
			attrs = append(attrs, slog.String("error", n.err.Error()))
		}
	}
	s.cfg.Log.LogAttrs(flow.WithTrace(ctx, n.trace), level, "request", attrs...)
}

// otherMethod stands for every method that fiber has no place for. It is routed like
// the rest, and no route has it, so that its answer names those that there are.
const otherMethod = "other"

// methodOf is the method of a request, and one word for all that are none.
func methodOf(ctx *fasthttp.RequestCtx) string {
	if m := string(ctx.Method()); slices.Contains(fiber.DefaultMethods, m) {
		return m
	}
	return otherMethod
}

// fault is fiber's error handler: it hears of what no handler of ours answered,
// and of requests that fasthttp could not read, which never passed front.
func (s *Server) fault(c *fiber.Ctx, err error) error {
	ctx := c.Context()
	_, passed := ctx.UserValue(notedKey).(*noted)
	if w, ok := ctx.Conn().(*wire); ok && !passed {
		if w.silent() {
			// Nothing was asked: whoever keeps connections for later would take an
			// answer for that of its next request.
			w.mute = true
			return nil
		}
		w.unread.Store(true)
	}
	n := s.note(ctx)
	if passed && isAstray(c, err) {
		return s.page(console.Astray())(c)
	}
	s.refuse(ctx, s.unrouted(c, err))
	if !passed {
		ctx.SetConnectionClose()
		s.log(ctx, n, 0)
		s.cfg.Answering()("", methodOf(ctx), ctx.Response.StatusCode(), "", false)
	}
	return nil
}

// isAstray says whether a person's browser asked for an address that is none, or that
// only takes forms, and none of the API: they are shown a page, and programs read JSON.
func isAstray(c *fiber.Ctx, err error) bool {
	own, ok := errors.AsType[*fiber.Error](err)
	return ok && (own.Code == http.StatusNotFound || own.Code == http.StatusMethodNotAllowed) &&
		c.Method() == http.MethodGet && !strings.HasPrefix(c.Path(), "/v1/") && strings.Contains(c.Get("Accept"), "text/html")
}

// unrouted turns fiber's own errors into ours.
func (s *Server) unrouted(c *fiber.Ctx, err error) error {
	own, ok := errors.AsType[*fiber.Error](err)
	if !ok {
		return err
	}
	switch own.Code {
	case http.StatusNotFound:
		return flow.Refuse(flow.CodeRouteNotFound, "There is nothing at this path. See the documentation for the list of paths.")
	case http.StatusMethodNotAllowed:
		asked := c.Method()
		if asked == otherMethod {
			asked = "this method"
		}
		return flow.Refuse(flow.CodeHTTPMethod, "This path does not answer to %s. It answers to: %s.", asked, c.GetRespHeader("Allow"))
	case http.StatusRequestEntityTooLarge:
		return flow.Refuse(flow.CodeTooLarge, "The body is larger than %d bytes.", bodyLimit)
	case http.StatusRequestHeaderFieldsTooLarge:
		return flow.Refuse(codeMalformedRequest, "The headers are larger than %d bytes.", headerLimit)
	case http.StatusRequestTimeout:
		return flow.Refuse(codeMalformedRequest, "The request did not arrive in time.")
	}
	// fasthttp's own words repeat the bytes it could not read, keys included.
	return flow.Refuse(codeMalformedRequest, "This is not an HTTP request that can be read in one way only.")
}

// silent takes fasthttp's log lines: they repeat what came over the wire.
type silent struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l silent) Printf(string, ...any) { l.log.Debug("http connection ended") }
