package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
	"till/rail/sandbox"
)

const (
	ourNumber = "2349010000001"
	project   = flow.ProjectID("wsp_prj_1")
	patience  = 20 * time.Second
	retries   = time.Minute // after which a webhook that failed is posted again
)

// world is everything around a checkout: a database that outlives the program,
// the pretend bank over HTTP, a WhatsApp and webhook receivers that fail on
// command, and a clock that only the test moves.
type world struct {
	syncing atomic.Bool // messages of payers are still coming in
	t       *testing.T
	store   store.Config
	bank    *sandbox.Rail
	rail    *shakyRail
	logs    *await.Log
	heeds   io.Writer // gets each line of the log as well; nil: nobody does
	unsent  unsent

	mu     sync.Mutex
	now    time.Time
	sent   []checkout.Outgoing
	posted []flow.Delivery
	onSend func(o checkout.Outgoing) error
	onPost func(ctx context.Context, d flow.Delivery) flow.Verdict
	places checkout.Places
	rand   io.Reader

	db       *store.DB
	payee    func(context.Context, flow.ProjectID) (flow.BankAccount, bool, error) // nil: nobody is paid out
	calendar flow.Calendar
	second   flow.Kobo        // beyond which two people have to agree
	keep     time.Duration    // how long the words of chats are kept, 0 for good
	answers  time.Duration    // how long what endpoints answered is kept, 0 for good
	real     func() time.Time // the machine's clock; nil: as the environment's

	board   *checkout.Board // only read anew when the test says so
	service *checkout.Service
	noticed atomic.Pointer[checkout.Service] // the same, to the bank: it tells of what it likes while the program starts again
	stop    func() error                     // ends Run and closes the database
	crashed chan struct{}
	heard   int
	spoilt  bool // a test wrote into the ledger or events what the program never writes
	drain   time.Duration
	died    atomic.Bool // it crashed once
}

// each runs a test in a world on each database.
func each(t *testing.T, test func(w *world)) {
	t.Helper()
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		t.Parallel()
		w := newWorld(t, c)
		w.start(true)
		test(w)
	})
}

// one is a world on SQLite, for what no database could change.
func one(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, storetest.SQLite(t, store.Checkout))
	w.start(true)
	return w
}

func newWorld(t *testing.T, c store.Config) *world {
	t.Helper()
	w := &world{
		t: t, store: c, now: time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC), places: &checkout.MemoryPlaces{}, logs: &await.Log{}, drain: 50 * time.Millisecond,
		rand: &seeded{r: rand.NewChaCha8([32]byte{7})},
	}
	bank, err := sandbox.Open(sandbox.Config{Now: w.clock, Rand: &seeded{r: rand.NewChaCha8([32]byte{1})}, BaseURL: "http://bank.test"})
	w.must(err)
	doors := httptest.NewServer(bank.Handler())
	w.bank, err = sandbox.NewRail(sandbox.RailConfig{BaseURL: doors.URL, Secret: "not a real secret, only long enough", HTTP: doors.Client(), Now: w.clock})
	w.must(err)
	w.rail = &shakyRail{Rail: w.bank}
	notices := httptest.NewServer(http.HandlerFunc(w.notice))
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = bank.Run(ctx) })
	t.Cleanup(func() {
		w.end()
		cancel()
		done.Wait()
		notices.Close()
		w.bank.Close()
		doors.Close()
		if err := bank.Close(); err != nil {
			t.Error(err)
		}
	})
	w.must(w.bank.Register(ctx, notices.URL))
	t.Cleanup(func() {
		w.end()
		if !w.spoilt {
			w.sound()
		}
	})
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// setClock says what time it is, and wakes nobody.
func (w *world) setClock(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	w.service.Wake()
}

// later lets time pass, and what is due then be done.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.pass(d)
	w.rest()
}

// passes is later some times.
func (w *world) passes(times int, d time.Duration) {
	w.t.Helper()
	for range times {
		w.later(d)
	}
}

// open opens the database and makes a service on it, which does not run yet.
func (w *world) open(alone bool) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	var err error
	w.db, err = store.Open(ctx, w.store)
	w.must(err)
	logs := io.Writer(w.logs)
	if w.heeds != nil {
		logs = io.MultiWriter(w.logs, w.heeds)
	}
	w.board = checkout.NewBoard(w.db, w.clock, w.clock, slog.New(slog.NewTextHandler(w.logs, nil)))
	w.must(w.board.Refresh(ctx))
	w.service, err = checkout.New(checkout.Config{
		Board: w.board, Around: flow.Surroundings{CheckoutURL: func(s flow.Session) string { return "https://wa.me/" + s.Number + "/" + s.EntryCode }},
		DB: w.db, Rail: w.rail, Syncing: w.syncing.Load, Places: w.places, Words: words, Banks: rail.USSDMenu(), Number: func() string { return ourNumber },
		Known: func(_ context.Context, id flow.ProjectID) (bool, error) { return id == project, nil },
		Send:  w.send, Post: w.post, Now: w.clock, Rand: w.rand, Alone: alone,
		Drain: w.drain,
		Next:  func(d flow.Delivery, _ flow.Verdict) (time.Duration, bool) { return retries, d.Attempts < 9 },
		Log:   slog.New(slog.NewTextHandler(logs, nil)), Meter: &w.unsent,
		Payee: w.payee, Calendar: w.calendar, SecondAbove: w.second, KeepChats: w.keep, KeepAnswers: w.answers, Real: w.real,
	})
	w.must(err)
	w.noticed.Store(w.service)
	w.crashed = make(chan struct{})
	db := w.db
	w.stop = db.Close
}

// start opens a service and runs it.
func (w *world) start(alone bool) {
	w.t.Helper()
	w.open(alone)
	w.run()
}

// run runs the service.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	service, db := w.service, w.db
	go func() { ended <- service.Run(ctx) }()
	w.stop = func() error {
		cancel()
		return errors.Join(<-ended, db.Close())
	}
}

// end ends the service in good order.
func (w *world) end() {
	w.t.Helper()
	if w.stop == nil {
		return
	}
	err := w.stop()
	w.stop = nil
	select {
	case <-w.crashed: // whatever a dying program says
	default:
		if err != nil {
			w.t.Errorf("the service ended with %v", err)
		}
	}
}

// crash makes the program lose whatever it would do from now on: nothing that
// it learns later can be kept.
func (w *world) crash() {
	_ = w.db.Close()
	select {
	case <-w.crashed:
	default:
		close(w.crashed)
	}
}

// words writes a message so that tests can read it.
func words(s flow.Say, _ time.Time) string {
	if s.Key == "alone" {
		return s.Args["text"]
	}
	return s.Key
}

func (w *world) send(_ context.Context, o checkout.Outgoing) error {
	w.mu.Lock()
	on := w.onSend
	w.mu.Unlock()
	if on != nil {
		if err := on(o); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, o)
	return nil
}

func (w *world) post(ctx context.Context, d flow.Delivery) flow.Verdict {
	w.mu.Lock()
	w.posted = append(w.posted, d)
	on := w.onPost
	w.mu.Unlock()
	if on != nil {
		return on(ctx, d)
	}
	return flow.Verdict{OK: true, Status: http.StatusOK}
}

func (w *world) sending(f func(o checkout.Outgoing) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onSend = f
}

func (w *world) posting(f func(ctx context.Context, d flow.Delivery) flow.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onPost = f
}

// texts are the messages that a person got, each counted once, in order.
func (w *world) texts(person string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	seen := map[string]bool{}
	for _, o := range w.sent {
		if o.Person == person && !seen[o.ID] {
			seen[o.ID] = true
			out = append(out, o.Text)
		}
	}
	return out
}

// deliveries are the posts that carried a kind of event.
func (w *world) deliveries(kind flow.EventKind) []flow.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []flow.Delivery
	for _, d := range w.posted {
		if strings.Contains(string(d.Body), fmt.Sprintf("%q:%q", "event", kind)) {
			out = append(out, d)
		}
	}
	return out
}

// notice is where the bank's notices arrive.
func (w *world) notice(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = w.noticed.Load().Notice(r.Context(), r.Header, body)
	}
	if err != nil {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
}

// rest waits until nothing that is due is left undone, or until the program has
// crashed.
func (w *world) rest() {
	w.t.Helper()
	w.until("the service to come to rest", func() bool {
		select {
		case <-w.crashed:
			return true
		default:
		}
		w.service.Wake()
		idle, err := w.service.Idle(w.t.Context())
		return err == nil && idle
	})
}

// until waits for something to become true.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	await.Until(w.t, what, is)
}

func (w *world) must(err error) {
	w.t.Helper()
	must(w.t, err)
}

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// call is an API call; into gets what was made.
func call(key, hash string, into *checkout.Made) checkout.Call {
	return checkout.Call{Project: project, Key: key, Hash: hash, Render: func(m checkout.Made) (int, []byte, error) {
		if into != nil {
			*into = m
		}
		body, err := json.Marshal(map[string]any{"id": m.Session.ID, "charge": m.Session.Charge, "attempts": len(m.Attempts), "status": m.Session.Status})
		return http.StatusCreated, body, err
	}}
}

func newSession(mode flow.Mode) checkout.NewSession {
	return checkout.NewSession{
		Merchant: "Ada Stores", Mode: mode, Amount: 500_000, CustomerEmail: "bola@example.com", AllowedMethods: flow.Methods(),
		ExpiresIn: 24 * time.Hour, Policy: flow.DefaultPolicy(),
	}
}

// session opens a session.
func (w *world) session(mode flow.Mode) flow.Session {
	w.t.Helper()
	return w.opened(newSession(mode))
}

// opened opens a session of a kind.
func (w *world) opened(n checkout.NewSession) flow.Session {
	w.t.Helper()
	var made checkout.Made
	_, err := w.service.Open(w.t.Context(), n, call("", "", &made))
	w.must(err)
	return made.Session
}

// openedBy opens a session in the chat for another project.
func (w *world) openedBy(project flow.ProjectID) flow.Session {
	w.t.Helper()
	var made checkout.Made
	c := call("", "", &made)
	c.Project = project
	_, err := w.service.Open(w.t.Context(), newSession(flow.InChat), c)
	w.must(err)
	return made.Session
}

// says lets a person write to us. WhatsApp repeats what was not taken in.
func (w *world) says(person string, in flow.Intent) error {
	w.heard++
	return w.hears(person, fmt.Sprintf("IN%d", w.heard), in)
}

func (w *world) hears(person, message string, in flow.Intent) error {
	return w.hearsAt(ourNumber, person, message, in)
}

// hearsAt is hears of what is written to one of our numbers.
func (w *world) hearsAt(number, person, message string, in flow.Intent) error {
	return w.service.Hear(context.WithoutCancel(w.t.Context()), checkout.Inbound{
		Number: number, Person: person, Phone: "2348031000010", Name: "Bola", Message: message, Intent: in,
	})
}

func code(s flow.Session) flow.Intent { return flow.Intent{Kind: flow.MeansCode, Code: s.EntryCode} }

func method(m flow.Method) flow.Intent { return flow.Intent{Kind: flow.MeansMethod, Method: m} }

// hear is says that must be taken in, and what follows from it done.
func (w *world) hear(person string, in flow.Intent) {
	w.t.Helper()
	w.must(w.says(person, in))
	w.rest()
}

// endpoint adds a webhook endpoint for some kinds of event.
func (w *world) endpoint(url string, kinds ...flow.EventKind) flow.Endpoint {
	w.t.Helper()
	var made checkout.Made
	_, err := w.service.AddEndpoint(w.t.Context(), flow.Endpoint{URL: url, Events: kinds, Secrets: []string{"whsec_x"}}, call("", "", &made))
	w.must(err)
	return made.Endpoint
}
