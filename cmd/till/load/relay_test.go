//go:build linux

package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// relay stands between the bank and Till, and is the merchants' endpoint: it
// knows when a notice came to Till and when the webhook of it came back. The
// bank is told its address as Till's.
type relay struct {
	till    string // address of Till
	at      string
	client  *http.Client
	keeping atomic.Bool  // notices are kept back and not passed on
	down    atomic.Bool  // endpoints answer 503
	codes   sync.Map     // status that Till answered a notice with → *atomic.Int64
	told    sync.Map     // session → time at which its first notice left for Till
	came    sync.Map     // session → *arrival
	events  sync.Map     // webhook-id → *atomic.Int64
	arrived atomic.Int64 // sessions that a charge.success came for

	mu   sync.Mutex
	kept []notice
}

// noticePath is where a bank tells of money.
const noticePath = "/v1/rails/sandbox/notifications"

// notice is what the bank said.
type notice struct {
	header http.Header
	body   []byte
}

// arrival is the first webhook of a session.
type arrival struct {
	at   time.Time
	once sync.Once
	done chan struct{}
}

var sessionID = regexp.MustCompile(`wsp_sess_[0-9a-z]+`)

// newRelay listens at once; Till may start later.
func newRelay(tb testing.TB, till string, sessionOf func(reference string) (string, bool)) *relay {
	tb.Helper()
	ln, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	must(tb, err)
	r := &relay{till: till, at: ln.Addr().String(), client: &http.Client{Timeout: tilltest.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook/", r.hook)
	mux.HandleFunc("POST "+noticePath, func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(q.Body, 64<<10))
		n := notice{header: q.Header.Clone(), body: body}
		if r.keeping.Load() {
			r.mu.Lock()
			r.kept = append(r.kept, n)
			r.mu.Unlock()
			return
		}
		if session, ok := sessionOf(accountIn(body)); ok {
			r.told.LoadOrStore(session, time.Now())
		}
		status, err := r.pass(q.Context(), n)
		if err != nil {
			status = http.StatusBadGateway
		}
		w.WriteHeader(status)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: tilltest.Patience}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	tb.Cleanup(func() { _ = server.Close(); <-ended })
	return r
}

var accountNumber = regexp.MustCompile(`"accountNumber":"(\d{10})"`)

func accountIn(body []byte) string {
	if m := accountNumber.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

// pass gives Till a notice as the bank signed it.
func (r *relay) pass(ctx context.Context, n notice) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.till+noticePath, bytes.NewReader(n.body))
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"Content-Type", "X-Bank-Signature"} {
		req.Header.Set(name, n.header.Get(name))
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return 0, err
	}
	count(&r.codes, strconv.Itoa(resp.StatusCode))
	return resp.StatusCode, nil
}

func count(m *sync.Map, name string) {
	n, _ := m.LoadOrStore(name, new(atomic.Int64))
	n.(*atomic.Int64).Add(1) // nothing else is kept there
}

// hook is a merchant's endpoint.
func (r *relay) hook(w http.ResponseWriter, q *http.Request) {
	now := time.Now()
	body, _ := io.ReadAll(io.LimitReader(q.Body, 64<<10))
	if r.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	count(&r.events, q.Header.Get("Webhook-Id"))
	if strings.Contains(string(body), `"charge.success"`) {
		a := r.of(sessionID.FindString(string(body)))
		a.once.Do(func() { a.at = now; r.arrived.Add(1); close(a.done) })
	}
}

// of is what came of a session.
func (r *relay) of(session string) *arrival {
	a, _ := r.came.LoadOrStore(session, &arrival{done: make(chan struct{})})
	return a.(*arrival) // nothing else is kept there
}

// wait waits for the webhook of a session, and says how long after its notice it
// came.
func (r *relay) wait(session string, lasts time.Duration) (time.Duration, error) {
	a := r.of(session)
	late := time.NewTimer(lasts)
	defer late.Stop()
	select {
	case <-a.done:
	case <-late.C:
		return 0, errors.New("no webhook came")
	}
	told, ok := r.told.Load(session)
	if !ok {
		return 0, errors.New("a webhook came before the notice")
	}
	return a.at.Sub(told.(time.Time)), nil // nothing else is kept there
}

// answers are the statuses of notices, and how often each was given.
func (r *relay) answers() (all map[string]int64, fives int64) {
	all = map[string]int64{}
	r.codes.Range(func(k, v any) bool {
		name, n := k.(string), v.(*atomic.Int64).Load() // nothing else is kept there
		all[name] = n
		if name >= "500" {
			fives += n
		}
		return true
	})
	return all, fives
}

// twice is how many events came more often than once: a merchant leaves those out.
func (r *relay) twice() (n int) {
	r.events.Range(func(_, v any) bool {
		if v.(*atomic.Int64).Load() > 1 { // nothing else is kept there
			n++
		}
		return true
	})
	return n
}
