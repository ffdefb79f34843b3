//go:build unix

package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"till/flow"
	"till/flow/benchtest"
	"till/flow/checkout"
	"till/flow/redistest"
	"till/flow/store"
	"till/flow/store/storetest"
)

// The size of a run: every call at every number of connections, round after
// round, so that what else the machine does hits all of them alike.
const (
	loadRounds = 5
	loadTime   = time.Second
	loadReads  = 1000 // sessions that are read
)

// BenchmarkLoad measures the API beside a bare echo, over real connections from
// another process: make bench-api. It prints one table and fails nothing.
func BenchmarkLoad(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	dir := b.TempDir()
	debug.SetGCPercent(400) // this and the next as the program does; for the echo too
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2))
	where := benchtest.Machine(b)
	kinds := loads(b, dir)
	for _, k := range kinds {
		k.run(b, 16, loadTime/4) // warm
	}
	for range loadRounds {
		for _, conns := range loadConns() {
			for _, k := range kinds {
				k.found[conns] = append(k.found[conns], k.run(b, conns, loadTime))
			}
		}
	}
	t := loadTable(kinds)
	fmt.Printf("\n%s\nServers in one process, Go's HTTP client in another, loopback TCP, keep-alive. Medians of %d interleaved rounds of %v. SQLite, synchronous=FULL.\n\n%s\n",
		where, loadRounds, loadTime, t.Text())
	must(b, t.Leave())
}

func loadConns() []int { return []int{1, 16, 64} }

// load is one kind of call, and what was measured of it.
type load struct {
	name  string
	ask   loadAsk
	found map[int][]measure
}

// loadAsk is what the asking process is told.
type loadAsk struct {
	URL   string
	Key   string   // the Authorization
	IDs   []string // what is read; without them something is posted
	First int64    // number of the first request
	Conns int
	Lasts time.Duration
}

// measure is one round.
type measure struct {
	Rate, P50, P99 float64
	CPU            float64 // microseconds of the servers' process for each call
	Asked          int64
	Fault          string
}

// median is the middle of the rounds, for each figure by itself.
func (l *load) median(conns int) measure {
	middle := func(of func(measure) float64) float64 {
		var all []float64
		for _, m := range l.found[conns] {
			all = append(all, of(m))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return measure{
		Rate: middle(func(m measure) float64 { return m.Rate }), P50: middle(func(m measure) float64 { return m.P50 }), P99: middle(func(m measure) float64 { return m.P99 }),
		CPU: middle(func(m measure) float64 { return m.CPU }),
	}
}

// run measures one round: the asking is done by this program once more.
func (l *load) run(b *testing.B, conns int, lasts time.Duration) measure {
	b.Helper()
	l.ask.Conns, l.ask.Lasts = conns, lasts
	ask, err := json.Marshal(l.ask)
	must(b, err)
	self, err := os.Executable()
	must(b, err)
	file := filepath.Join(b.TempDir(), "measure")
	cmd := exec.CommandContext(b.Context(), self, "-test.run", "^$", "-test.bench", "^BenchmarkLoadAsking$", "-test.benchtime", "1x")
	cmd.Env = append(os.Environ(), "TILL_LOAD="+file)
	cmd.Stdin = bytes.NewReader(ask)
	began := cpu(b)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	spent := cpu(b) - began
	var m measure
	text, err := os.ReadFile(file)
	if err = errors.Join(err, json.Unmarshal(text, &m)); err != nil || m.Fault != "" {
		b.Fatalf("%s: %v %s", l.name, err, m.Fault)
	}
	l.ask.First += m.Asked
	m.CPU = float64(spent.Microseconds()) / float64(m.Asked)
	return m
}

// cpu is the time that this process has spent working.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkLoadAsking is the process that asks.
func BenchmarkLoadAsking(b *testing.B) {
	file := os.Getenv("TILL_LOAD")
	if file == "" {
		b.Skip("this is a part of BenchmarkLoad")
	}
	var ask loadAsk
	must(b, json.NewDecoder(os.Stdin).Decode(&ask))
	text, err := json.Marshal(ask.run(b.Context()))
	if err = errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		b.Fatal(err)
	}
}

// run asks over so many connections, each waiting for its answer before it asks
// again, with the client that a merchant's program in Go would have.
func (a loadAsk) run(ctx context.Context) (m measure) {
	var wg sync.WaitGroup
	var n atomic.Int64
	var fault atomic.Value
	n.Store(a.First)
	took := make([][]time.Duration, a.Conns)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: a.Conns, DisableCompression: true}}
	began := time.Now()
	for i := range took {
		wg.Go(func() {
			for last := began; last.Sub(began) < a.Lasts; {
				if err := a.ask(ctx, client, n.Add(1)); err != nil {
					fault.Store(err.Error())
					return
				}
				now := time.Now()
				took[i] = append(took[i], now.Sub(last))
				last = now
			}
		})
	}
	wg.Wait()
	spent := time.Since(began)
	all := slices.Concat(took...)
	slices.Sort(all)
	if m.Fault, _ = fault.Load().(string); m.Fault != "" || len(all) == 0 {
		return measure{Fault: "not answered as it should be: " + m.Fault}
	}
	at := func(part float64) float64 { return float64(all[int(part*float64(len(all)-1))].Microseconds()) / 1000 }
	return measure{Rate: float64(len(all)) / spent.Seconds(), P50: at(0.5), P99: at(0.99), Asked: n.Load() - a.First}
}

// ask makes the n-th call.
func (a loadAsk) ask(ctx context.Context, client *http.Client, n int64) error {
	method, url, body := http.MethodPost, a.URL, loadBody(n)
	if len(a.IDs) > 0 {
		method, url, body = http.MethodGet, a.URL+"/"+a.IDs[n%int64(len(a.IDs))], ""
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", a.Key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", fmt.Sprintf("order-%012d", n))
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%d %s", answer.StatusCode, text)
	}
	return err
}

// loadBody is what a merchant sends; the echo gets the very same.
func loadBody(n int64) string {
	return fmt.Sprintf(`{"amount":500000,"customerEmail":"ada@example.com","mode":"headless","reference":"order-%d","description":"Two shirts","metadata":{"cart":"7"}}`, n)
}

// loads starts the servers.
func loads(b *testing.B, dir string) []*load {
	b.Helper()
	echo := fiber.New(fiber.Config{DisableStartupMessage: true})
	echo.Post("/echo", func(c *fiber.Ctx) error {
		var body struct {
			Amount        int64             `json:"amount"`
			CustomerEmail string            `json:"customerEmail"`
			Mode          string            `json:"mode"`
			Reference     string            `json:"reference"`
			Description   string            `json:"description"`
			Metadata      map[string]string `json:"metadata"`
		}
		if err := c.BodyParser(&body); err != nil {
			return err
		}
		return c.JSON(body)
	})
	bare := listen(b)
	go func() { _ = echo.Listener(bare) }()
	b.Cleanup(func() { _ = echo.Shutdown() })

	kinds := []*load{{name: "echo", ask: loadAsk{URL: "http://" + bare.Addr().String() + "/echo"}}}
	alone := loadServer(b, filepath.Join(dir, "alone"), nil)
	kinds = append(kinds, &load{name: "create", ask: alone}, &load{name: "read", ask: loadSessions(b, alone)})
	if redistest.Installed() {
		kinds = append(kinds, &load{name: "create, limit in Redis", ask: loadServer(b, filepath.Join(dir, "redis"), startRedis(b))})
	}
	for _, k := range kinds {
		k.found = map[int][]measure{}
	}
	return kinds
}

// loadSessions opens the sessions that are read.
func loadSessions(b *testing.B, to loadAsk) loadAsk {
	b.Helper()
	for i := range loadReads {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, to.URL, strings.NewReader(loadBody(int64(-1-i))))
		must(b, err)
		r.Header.Set("Authorization", to.Key)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		must(b, err)
		var made struct{ Data struct{ ID string } }
		err = errors.Join(json.NewDecoder(answer.Body).Decode(&made), answer.Body.Close())
		if err != nil || made.Data.ID == "" {
			b.Fatalf("open a session: %d %v", answer.StatusCode, err)
		}
		to.IDs = append(to.IDs, made.Data.ID)
	}
	return to
}

// loadServer is the whole API on files in a directory; with a Redis, all
// processes would count together in it. No limit is low enough to refuse.
func loadServer(b *testing.B, dir string, shared *server) loadAsk {
	b.Helper()
	must(b, os.Mkdir(dir, 0o700))
	const high = 1_000_000
	limits := LimiterConfig{Test: PerSecond(high), Live: PerSecond(high), Address: PerSecond(high), Now: time.Now}
	if shared != nil {
		limits.Redis = shared
	}
	limiter, err := NewLimiter(limits)
	must(b, err)
	database := func(schema store.Schema, name string) *store.DB {
		db, err := store.Open(b.Context(), store.Config{Schema: schema, Dir: dir, Name: name, Keys: storetest.Keys(b)})
		must(b, err)
		b.Cleanup(func() { _ = db.Close() })
		return db
	}
	accounts := checkout.NewAccounts(database(store.Accounts, "accounts"), time.Now, rand.Reader)
	service, err := checkout.New(checkout.Config{
		DB: database(store.Checkout, "test"), Rail: newPaper(time.Now), Places: nowhere{}, Banks: paperBanks(), Now: time.Now, Rand: rand.Reader, Alone: true,
		Words:  func(say flow.Say, _ time.Time) string { return say.Key },
		Around: flow.Surroundings{ClientSecret: func(id flow.SessionID) string { return "cs_" + string(id) }},
		Send:   func(context.Context, checkout.Outgoing) error { return nil },
		Post:   func(context.Context, flow.Delivery) flow.Verdict { return flow.Verdict{OK: true} },
		Next:   func(flow.Delivery, flow.Verdict) (time.Duration, bool) { return 0, false },
	})
	must(b, err)
	server, err := New(Config{
		Limits: limiter, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Accounts: accounts, Services: map[flow.Environment]*checkout.Service{flow.Test: service},
		CheckURL: func(flow.Environment, string) error { return nil }, NewSecret: func(flow.Signature) (string, error) { return "", nil },
		Now: time.Now, IDs: flow.IDs{Now: time.Now, Rand: rand.Reader},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), // as the program starts
	})
	must(b, err)
	var made checkout.SignedUp
	_, err = accounts.SignUp(b.Context(), "owner@example.com", "correct horse battery", "Ada Stores", "127.0.0.1", checkout.Call{
		Render: func(m checkout.Made) (int, []byte, error) { made = m.SignedUp; return 0, nil, nil },
	})
	must(b, err)
	ln := listen(b)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = service.Run(ctx) })
	wg.Go(func() { _ = server.Serve(ctx, ln) })
	b.Cleanup(func() { stop(); wg.Wait() })
	return loadAsk{URL: "http://" + ln.Addr().String() + sessionsPath, Key: "Bearer " + made.SecretKey}
}

func listen(b *testing.B) net.Listener {
	b.Helper()
	ln, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	return ln
}
