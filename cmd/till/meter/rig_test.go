package meter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"till/cmd/till/meter"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func floatText(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// rig is a checkout on a real store with a meter, whose outsides do as they are
// told and whose clock stands until it is moved.
type rig struct {
	t       *testing.T
	file    string
	db      *store.DB
	pretend *store.DB // of the test environment
	service *checkout.Service
	meter   *meter.Meter
	watch   *meter.Watch
	kept    scrapes

	writing  sync.RWMutex // held by a commit: no time passes meanwhile
	mu       sync.Mutex
	now      time.Time
	numbers  []flow.Number
	free     uint64
	wrong    time.Duration // of the other clock
	late     time.Duration // how long it takes to say its time
	stepped  time.Duration // of now, what the clock was set forward by
	moved    time.Duration // the test environment's clock, by merchants
	away     string        // one of the parts
	old      time.Duration // of the last backup
	unsaved  bool          // there is no backup
	log      string        // a file that SQLite writes
	verdict  flow.Verdict
	again    bool
	bankDown atomic.Bool
	unsent   error        // why WhatsApp takes no message
	sends    atomic.Int64 // tries
	nth      int
}

// bank does as it is told: what it is sent as a notice is one.
type bank struct {
	rail.Closed

	r *rig
}

// Methods implements rail.Rail.
func (bank) Methods() []flow.Method { return flow.Methods() }

// Parse implements rail.Rail.
func (bank) Parse(_ http.Header, body []byte) ([]flow.Notice, error) {
	var n flow.Notice
	if json.Unmarshal(body, &n) != nil {
		return nil, rail.ErrForged
	}
	return []flow.Notice{n}, nil
}

// Check implements rail.Rail.
func (b bank) Check(context.Context, string) ([]flow.Notice, error) {
	if b.r.bankDown.Load() {
		return nil, fmt.Errorf("ask: %w", rail.ErrUnavailable)
	}
	return nil, nil
}

// chance is a source of ids that are never the same.
type chance struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

// Read implements io.Reader.
func (c *chance) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.Read(p)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := &rig{
		t: t, now: start, free: 50 << 30, verdict: flow.Verdict{OK: true, Status: http.StatusOK}, again: true,
		numbers: []flow.Number{ours(1, flow.NumberLive, start)},
		log:     filepath.Join(dir, "of-sqlite"), file: filepath.Join(dir, "test.db"),
	}
	r.meter = meter.New("test", r.clock)
	var err error
	r.db, err = store.Open(t.Context(), store.Config{Schema: store.Checkout, Dir: dir, Name: "test", Keys: storetest.Keys(t), Commits: r.commit})
	r.must(err)
	t.Cleanup(func() { r.must(r.db.Close()) })
	r.pretend, err = store.Open(t.Context(), store.Config{Schema: store.Checkout, Dir: dir, Name: "pretend", Keys: storetest.Keys(t)})
	r.must(err)
	t.Cleanup(func() { r.must(r.pretend.Close()) })
	r.service, err = checkout.New(checkout.Config{
		DB: r.db, Rail: r.meter.Rail(flow.Live, bank{r: r}), Words: func(s flow.Say, _ time.Time) string { return s.Key }, Now: r.clock, Rand: &chance{r: rand.NewChaCha8([32]byte{3})},
		Number: func() string { return "2349010000001" }, Meter: r.meter.Of(flow.Live), Alone: true, Drain: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Send: func(context.Context, checkout.Outgoing) error {
			defer r.sends.Add(1)
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.unsent
		},
		Post: func(context.Context, flow.Delivery) flow.Verdict { r.mu.Lock(); defer r.mu.Unlock(); return r.verdict },
		Next: func(flow.Delivery, flow.Verdict) (time.Duration, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return time.Hour, r.again
		},
	})
	r.must(err)
	r.meter.Live(meter.LiveConfig{
		Deliveries: map[flow.Environment]func() checkout.Deliveries{flow.Live: r.service.Deliveries}, Stores: map[string]*store.DB{"test": r.db}, Now: r.clock,
		Numbers:  func() []flow.Number { r.mu.Lock(); defer r.mu.Unlock(); return r.numbers },
		Requests: func() (int, int) { return 0, 0 },
	})
	r.watch = r.meter.Watch(meter.WatchConfig{
		Places: []meter.Place{{Env: flow.Live, Reader: r.db.Reader, Now: r.clock}, {Env: flow.Test, Reader: r.pretend.Reader, Now: r.movedClock}},
		Now:    r.clock, Ran: func() time.Duration { r.mu.Lock(); defer r.mu.Unlock(); return r.now.Sub(start) - r.stepped },
		Log: slog.New(slog.DiscardHandler), Logs: []string{r.log},
		Parts: func(context.Context) []meter.Part {
			return []meter.Part{{Name: "store", OK: r.away != "store"}, {Name: "redis", OK: r.away != "redis"}}
		},
		Disk: func() (uint64, uint64, error) { return r.free, 100 << 30, nil },
		Backup: func() time.Time {
			if r.unsaved {
				return time.Time{}
			}
			return r.clock().Add(-r.old)
		},
		Clocks: map[string]func(context.Context) (time.Time, bool, error){
			"redis": func(context.Context) (time.Time, bool, error) {
				r.passes(r.late)
				return r.clock().Add(r.wrong), true, nil
			},
			"none": func(context.Context) (time.Time, bool, error) { return time.Time{}, false, errors.New("away") },
		},
	})
	return r
}

// ours is a number of ours that is run, as it says itself that it stands.
func ours(slot int, state flow.NumberState, phoneSeen time.Time) flow.Number {
	return flow.Number{
		Slot: slot, Digits: fmt.Sprintf("23490100000%02d", slot), State: state, PhoneSeen: phoneSeen, Holder: "here", HeldUntil: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// beside has a second number stand somewhere while the first one works.
func (r *rig) beside(state flow.NumberState, phoneAway time.Duration) {
	now := r.clock()
	r.set(func() { r.numbers = []flow.Number{ours(1, flow.NumberLive, now), ours(2, state, now.Add(-phoneAway))} })
}

// hears lets a payer write.
func (r *rig) hears(in flow.Intent) {
	r.t.Helper()
	r.nth++
	r.must(r.service.Hear(r.t.Context(), checkout.Inbound{
		Number: "2349010000001", Person: "199000100020003", Phone: "2348039990001", Message: fmt.Sprintf("M%d", r.nth), Intent: in,
	}))
}

// callsSomebody has a payer open a payment and ask for a person.
func (r *rig) callsSomebody() {
	r.t.Helper()
	var out checkout.Made
	_, err := r.service.Open(r.t.Context(), checkout.NewSession{
		Merchant: "Ada Stores", Mode: flow.InChat, Amount: 500_000, CustomerEmail: "bola@example.com", AllowedMethods: flow.Methods(),
		ExpiresIn: 24 * time.Hour, Policy: flow.DefaultPolicy(),
	}, made("wsp_prj_1", &out))
	r.must(err)
	r.hears(flow.Intent{Kind: flow.MeansCode, Code: out.Session.EntryCode, Text: "Pay"})
	r.hears(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
}

// givesUp has a message be refused until it is given up.
func (r *rig) givesUp() {
	r.t.Helper()
	r.set(func() { r.unsent = checkout.ErrUndeliverable })
	r.hears(flow.Intent{Kind: flow.MeansNothing, Text: "hello"})
	await.Until(r.t, "the message is given up", func() bool {
		r.passes(100 * time.Millisecond) // to the next try, whenever it is kept when that is due
		r.service.Wake()
		return r.shows("till_chat_unsent_total", "reason", "refused") > 0
	})
}

// shows is what is shown under a name now, in all with a label's value.
func (r *rig) shows(name, label, value string) (sum float64) {
	r.t.Helper()
	families, err := r.meter.Gatherer().Gather()
	r.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// commit is timed by the meter; no time passes in it.
func (r *rig) commit() func() {
	r.writing.RLock()
	done := r.meter.Commits()
	return func() { done(); r.writing.RUnlock() }
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) movedClock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.Add(r.moved)
}

// steps sets the machine's clock forward.
func (r *rig) steps(d time.Duration) {
	r.set(func() { r.stepped += d })
	r.passes(d)
}

// set changes what the outsides do.
func (r *rig) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// run runs the checkout until the test ends.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := r.service.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(func() { cancel(); done.Wait() })
}

// passes moves the clock.
func (r *rig) passes(d time.Duration) {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.set(func() { r.now = r.now.Add(d) })
}

// goes lets time pass, with a scrape each quarter of a minute, as in a day in which
// nothing is wrong but what was done.
func (r *rig) goes(d time.Duration, each func()) {
	r.t.Helper()
	const every = 15 * time.Second
	for range int(d / every) {
		r.passes(every)
		if each != nil {
			each()
		}
		_ = r.watch.Read(r.t.Context()) // a reading that fails shows in what is scraped
		r.kept.scrape(r.t, r.meter.Gatherer(), r.clock())
	}
}

// money comes for nobody we know.
func (r *rig) money() error {
	r.nth++
	body, err := json.Marshal(flow.Notice{Kind: flow.Credit, RailTransactionID: fmt.Sprintf("T%d", r.nth), Amount: 500_000, Channel: flow.BankTransfer, PaidAt: r.clock()})
	r.must(err)
	return r.service.Notice(r.t.Context(), nil, body)
}

// session opens a session of a project.
func (r *rig) session(project flow.ProjectID) {
	r.t.Helper()
	var out checkout.Made
	_, err := r.service.Open(r.t.Context(), checkout.NewSession{
		Merchant: "Ada Stores", Mode: flow.Headless, Amount: 500_000, CustomerEmail: "bola@example.com", AllowedMethods: flow.Methods(),
		ExpiresIn: 24 * time.Hour, Policy: flow.DefaultPolicy(),
	}, made(project, &out))
	r.must(err)
}

func made(project flow.ProjectID, out *checkout.Made) checkout.Call {
	return checkout.Call{
		Project: project, Render: func(m checkout.Made) (int, []byte, error) { *out = m; return http.StatusCreated, nil, nil },
	}
}

// shop is the project of who is told.
const shop = "wsp_prj_1"

// owe opens a session that an endpoint is told of, and waits until it was tried.
func (r *rig) owe(tries func(checkout.Deliveries) int64) {
	r.t.Helper()
	var out checkout.Made
	_, err := r.service.AddEndpoint(r.t.Context(), flow.Endpoint{URL: "https://merchant.example/hook", Events: []flow.EventKind{flow.SessionCreated}, Secrets: []string{"whsec_x"}}, made(shop, &out))
	r.must(err)
	r.session(shop)
	await.Until(r.t, "the webhook was tried", func() bool { return tries(r.service.Deliveries()) > 0 })
}
