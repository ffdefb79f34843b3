package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"

	"till/rail/sandbox"
)

// Where the bank and the service are for one another. Nothing is dialled: both
// are in one process, and the line between them is a function.
const (
	bankURL    = "http://127.0.0.1:8091"
	bankSecret = "of the simulation, and of nothing that is real" //nolint:gosec // as it says
	noticeURL  = "http://127.0.0.1:8080" + noticePath
	noticePath = "/v1/rails/sandbox/notifications"
)

// moved is a movement in the bank's own words.
type moved struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Reference string    `json:"reference"`
	Amount    int64     `json:"amount"`
	ValueTime time.Time `json:"valueTime"`
	Reverses  string    `json:"reverses"`
	Account   string    `json:"accountNumber"`
}

// bank is the sandbox bank, the line to it, and what it said.
type bank struct {
	w      *world
	bank   *sandbox.Bank
	player *sandbox.Rail // how the world plays with it: a line without faults
	stop   context.CancelFunc

	// guarded by w.mu
	line  string           // how the line is: "" is well
	moves map[string]moved // what it told of, or was found to have booked
	made  map[string]int64 // how much the account, code or page of a reference was ordered for
}

// openBank opens the bank with books in memory.
func (w *world) openBank(ctx context.Context) error {
	b := &bank{w: w, moves: map[string]moved{}, made: map[string]int64{}}
	var err error
	b.bank, err = sandbox.Open(sandbox.Config{Now: w.now, Rand: w.random("bank"), BaseURL: bankURL, Notifier: notices{b}, Look: time.Hour})
	if err != nil {
		return err
	}
	b.player, err = sandbox.NewRail(sandbox.RailConfig{
		BaseURL: bankURL, Secret: bankSecret, Now: w.now,
		HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) { return serve(b.bank.Handler(), r), nil })},
	})
	if err != nil {
		return err
	}
	ctx, b.stop = context.WithCancel(ctx)
	w.bank = b
	go func() { _ = b.bank.Run(ctx) }() // it ends without an error when ctx does
	return nil
}

// carrier is a function that carries requests.
type carrier func(*http.Request) (*http.Response, error)

// RoundTrip carries one.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// serve has a handler answer a request of a client.
func serve(h http.Handler, r *http.Request) *http.Response {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RequestURI, r.RemoteAddr, r.Host = r.URL.RequestURI(), "127.0.0.1:40001", r.URL.Host
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result()
}

// client is the line of one process to the bank.
func (b *bank) client(i *instance) *http.Client {
	return &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) { return b.call(i, r) })}
}

// call is one call of the service, with what goes wrong on the line.
func (b *bank) call(i *instance, r *http.Request) (*http.Response, error) {
	w := b.w
	op := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/bank")
	if i.dead.Load() {
		return nil, syscall.ECONNRESET
	}
	var order struct {
		Session, Reference, Kind, Project, Credit string
		Amount                                    int64
	}
	if strings.HasPrefix(r.URL.Path, "/bank/test/") { // how it is set up, without which no process could start
		return serve(b.bank.Handler(), r), nil
	}
	if r.Body != nil && r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		_ = json.Unmarshal(body, &order) // what is no order names no session
	}
	if order.Kind != "" { // money is to be sent out
		w.name(order.Reference, fmt.Sprintf("%s of %d for %s%s", order.Kind, order.Amount, w.called(order.Project), w.called(order.Credit)))
	}
	w.ordered(r.URL.Path, order.Session)
	w.questioned(r.Method, r.URL.Path)
	w.mu.Lock()
	line := b.line
	w.mu.Unlock()
	if err := w.caught(i, "bank.before"); err != nil {
		return nil, err
	}
	w.takes(w.canonical(op+" "+order.Reference), clockOf(w.age()))
	if i.dead.Load() {
		return nil, syscall.ECONNRESET
	}
	switch line {
	case "down":
		w.saw("bank %s: refused connection", op)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case "slow":
		time.Sleep(4 * time.Second)
	}
	if t := httptrace.ContextClientTrace(r.Context()); t != nil && t.GotConn != nil {
		t.GotConn(httptrace.GotConnInfo{}) // from here on, who is not answered cannot know that nothing was sent
	}
	answer, err := w.otherwise(r, serve(b.bank.Handler(), r))
	if err != nil {
		return nil, err
	}
	w.saw("bank %s: %d%s", op, answer.StatusCode, mark(line))
	if answer.StatusCode == http.StatusCreated && order.Session != "" {
		w.mu.Lock()
		b.made[order.Reference] = order.Amount
		w.mu.Unlock()
	}
	if err := w.caught(i, "bank.after"); err != nil {
		return nil, err
	}
	switch line {
	case "lost": // it is done, and nobody hears of it
		return nil, io.ErrUnexpectedEOF
	case "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "half":
		all, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		answer.Body = io.NopCloser(bytes.NewReader(all[:len(all)/2]))
	}
	return answer, nil
}

// takes has a call of the service take a moment: each another one, so that which
// of two is answered first does not hang on what the machine does meanwhile. Two that
// are the same at once take others too: timers of one moment end in no order.
func (w *world) takes(what ...string) {
	key := strings.Join(what, "/")
	w.mu.Lock()
	n := w.taking[key]
	w.taking[key]++
	w.mu.Unlock()
	if n > 0 {
		what = append(what, fmt.Sprint(n))
	}
	time.Sleep(time.Millisecond + time.Duration(w.draw(200_000, what...))*time.Microsecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taking[key]--; w.taking[key] == 0 {
		delete(w.taking, key)
	}
}

func mark(line string) string {
	if line == "" {
		return ""
	}
	return " on a line that is " + line
}

// notices is how the bank tells the service of money: everything passes here.
type notices struct{ b *bank }

// RoundTrip takes a notice from the bank, which believes it delivered, and brings
// it, or does not.
func (n notices) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w := n.b.w
	var m moved
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	w.mu.Lock()
	n.b.moves[m.ID] = m
	w.mu.Unlock()
	reference := w.called(m.Reference)
	name := fmt.Sprintf("notice %s %d %s", m.Kind, m.Amount, reference)
	tell := func(in time.Duration, nth int) {
		w.soon(in, fmt.Sprintf("%s copy %d", name, nth), func() { w.tell(name, body, 0) })
	}
	switch fate := w.draw(100, name); {
	case w.ending || fate < 60*w.swarm.calm:
		tell(0, 1)
	case fate < 72: // doubled, the second one later
		tell(0, 1)
		tell(time.Duration(w.draw(7200, name, "again"))*time.Second, 2)
	case fate < 86: // late, so that others overtake it
		tell(time.Duration(1+w.draw(5400, name, "late"))*time.Second, 1)
	case fate < 90: // a day late
		tell(time.Duration(20+w.draw(10, name, "day"))*time.Hour, 1)
	case fate < 95:
		tell(0, 1)
		tell(0, 2)
		tell(time.Second, 3)
	default:
		w.saw("%s: lost", name)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// maxTold is how often a notice is brought that is not taken in.
const maxTold = 40

// tell brings a notice to the service, again and again until it is taken in.
func (w *world) tell(name string, body []byte, tries int) {
	w.ask(name, request{
		method: http.MethodPost, path: noticePath, body: string(body),
		header: map[string]string{sandbox.SignatureHeader: sandbox.Sign(bankSecret, w.now(), body)},
	}, func(r reply) {
		if r.status == http.StatusOK {
			w.told(body)
			return
		}
		if tries++; tries > maxTold {
			w.breaks("I3", "%s is not taken in: %d %s", name, r.status, r.body)
			return
		}
		w.after(time.Duration(tries)*time.Second, name+" again", func() { w.tell(name, body, tries) })
	})
}
