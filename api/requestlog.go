package api

import (
	linked "container/list"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"till/api/console"
	"till/flow"
)

// The bounds of the log of requests, which is in memory alone. Taking the secrets
// out of bodies costs more than many a call: what comes in faster than anybody
// reads is kept without its bodies.
const (
	requestsKept  = 500            // of one project in one environment
	requestsBytes = 32 << 20       // of all
	requestCost   = 512            // of one, beside its texts
	keptBody      = 4 << 10        // of a request's or an answer's body
	keptTarget    = 1 << 10        // of path and query
	bodiesEach    = 50             // kept in a second, of one project in one environment
	bodiesAll     = 500            // of all
	privateRoute  = identitiesPath // its bodies are never kept
)

// requestLog keeps the newest requests of each project and environment, for the
// console. What is secret is taken out before anything is kept. It belongs to one
// process and is gone with it.
type requestLog struct {
	mu     sync.Mutex
	places map[requestPlace]*linked.Element // of *requestRing
	order  *linked.List                     // the place that was written last in front
	bytes  int
	bodies pace
}

// pace counts what happens in one second.
type pace struct {
	second int64
	n      int
}

// takes counts one more and says whether it is within a bound.
func (p *pace) takes(second int64, most int) bool {
	if p.second != second {
		p.second, p.n = second, 0
	}
	p.n++
	return p.n <= most
}

// requestPlace is whose requests and in which environment.
type requestPlace struct {
	project flow.ProjectID
	env     flow.Environment
}

// requestRing are the requests of a place, oldest first.
type requestRing struct {
	place  requestPlace
	kept   []*console.Request
	bodies pace
}

func newRequestLog() *requestLog {
	return &requestLog{places: map[requestPlace]*linked.Element{}, order: linked.New()}
}

// note keeps a request that was answered.
func (l *requestLog) note(ctx *fasthttp.RequestCtx, n *noted, at time.Time, took time.Duration) {
	req, resp := &ctx.Request, &ctx.Response
	r := &console.Request{
		ID: n.request, At: at, Took: took, Method: methodOf(ctx), Route: n.route, Status: resp.StatusCode(), Code: n.code, Key: n.hint,
		Payer: len(req.Header.Peek("X-Client-Secret")) > 0, Once: len(req.Header.Peek("Idempotency-Key")) > 0, Replayed: len(resp.Header.Peek("Idempotent-Replayed")) > 0,
		Private: strings.HasPrefix(n.route, privateRoute), Picture: strings.HasPrefix(string(resp.Header.ContentType()), "image/"),
	}
	target := req.Header.RequestURI()
	r.Target = maskTarget(target[:min(len(target), keptTarget)], n.route)
	place := requestPlace{n.project, n.env}
	if r.Busy = !r.Private && !l.hasTime(place, at); !r.Private && !r.Busy {
		r.Body, r.BodyCut = redact(req.Body())
		if !r.Picture {
			r.Answer, r.AnswerCut = redact(resp.Body())
		}
	}
	l.add(place, r)
}

// hasTime says whether the bodies of one more request of a place may be kept.
func (l *requestLog) hasTime(at requestPlace, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ring(at).bodies.takes(now.Unix(), bodiesEach) && l.bodies.takes(now.Unix(), bodiesAll)
}

// ring is that of a place, which becomes the one that was written last.
func (l *requestLog) ring(at requestPlace) *requestRing {
	e, there := l.places[at]
	if there {
		l.order.MoveToFront(e)
	} else {
		e = l.order.PushFront(&requestRing{place: at})
		l.places[at] = e
	}
	return e.Value.(*requestRing) //nolint:errcheck // nothing else is in the list
}

func weight(r *console.Request) int {
	return requestCost + len(r.Target) + len(r.Body) + len(r.Answer)
}

func (l *requestLog) add(at requestPlace, r *console.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ring := l.ring(at)
	ring.kept = append(ring.kept, r)
	l.bytes += weight(r)
	if len(ring.kept) > requestsKept {
		l.drop(ring)
	}
	for l.bytes > requestsBytes {
		quietest := l.order.Back()
		ring := quietest.Value.(*requestRing) //nolint:errcheck // nothing else is in the list
		if len(ring.kept) > 0 {
			l.drop(ring)
		}
		if len(ring.kept) == 0 {
			delete(l.places, ring.place)
			l.order.Remove(quietest)
		}
	}
}

// drop forgets the oldest of a ring.
func (l *requestLog) drop(ring *requestRing) {
	l.bytes -= weight(ring.kept[0])
	ring.kept[0] = nil
	ring.kept = ring.kept[1:]
}

// of is a copy of what is kept of a place, newest first.
func (l *requestLog) of(at requestPlace) []*console.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, there := l.places[at]
	if !there {
		return nil
	}
	out := slices.Clone(e.Value.(*requestRing).kept) //nolint:errcheck // nothing else is in the list
	slices.Reverse(out)
	return out
}

// Requests implements console.Requests.
func (l *requestLog) Requests(p flow.ProjectID, env flow.Environment, class int, before string, limit int) (out []console.Request, more bool) {
	past := before == ""
	for _, r := range l.of(requestPlace{p, env}) {
		if !past {
			past = r.ID == before
			continue
		}
		if class != 0 && r.Status/100 != class {
			continue
		}
		if len(out) == limit {
			return out, true
		}
		out = append(out, *r)
	}
	return out, false
}

// Request implements console.Requests.
func (l *requestLog) Request(p flow.ProjectID, env flow.Environment, id string) (console.Request, bool) {
	for _, r := range l.of(requestPlace{p, env}) {
		if r.ID == id {
			return *r, true
		}
	}
	return console.Request{}, false
}

// Most implements console.Requests.
func (*requestLog) Most() int { return requestsKept }
