package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"till/flow"
	"till/flow/await"
	"till/rail"
	"till/rail/railtest"
	"till/rail/sandbox"
)

const secret = "a-secret-for-tests-only"

// helperFile makes this test binary a bank of its own, to be killed.
const helperFile = "SANDBOX_TEST_BANK_FILE"

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if path := os.Getenv(helperFile); path != "" {
		os.Exit(beBank(path))
	}
	goleak.VerifyTestMain(m)
}

// beBank serves a bank until it is killed, and prints its address.
func beBank(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := sandbox.Open(sandbox.Config{File: path, Now: time.Now})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(ln.Addr())
	if err := b.Serve(ctx, ln); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// clock is the real time, moved by hand, and by a step whenever it is read.
type clock struct{ ahead, step atomic.Int64 }

func (c *clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.ahead.Add(c.step.Load())))
}
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// door is where Till hears the bank.
type door struct {
	url  string
	got  chan railtest.Message
	mu   sync.Mutex
	says []int // the next answers; 200 when there are none left
}

func (d *door) answer(status ...int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.says = append(d.says, status...)
}

func openDoor(tb testing.TB) *door {
	tb.Helper()
	d := &door{got: make(chan railtest.Message, 200)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		status := http.StatusOK
		if len(d.says) > 0 {
			status, d.says = d.says[0], d.says[1:]
		}
		d.mu.Unlock()
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		d.got <- railtest.Message{Header: r.Header.Clone(), Body: body}
	}))
	tb.Cleanup(server.Close)
	d.url = server.URL + "/notices"
	return d
}

// town is a bank that serves on loopback, the rail to it and Till's door.
type town struct {
	bank  *sandbox.Bank
	rail  *sandbox.Rail
	url   string
	door  *door
	clock *clock
}

func openTown(t *testing.T) town {
	t.Helper()
	w := town{door: openDoor(t), clock: &clock{}}
	var err error
	if w.bank, err = sandbox.Open(sandbox.Config{Now: w.clock.Now}); err != nil {
		t.Fatalf("Open = %v", err)
	}
	w.url = serve(t, w.bank)
	w.rail = newRail(t, w.url, w.clock.Now, 0)
	if err := w.rail.Register(t.Context(), w.door.url); err != nil {
		t.Fatalf("Register = %v", err)
	}
	return w
}

// serve serves a bank until the test ends and closes it.
func serve(tb testing.TB, b *sandbox.Bank) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, ln) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Serve = %v", err)
		}
		if err := b.Close(); err != nil {
			tb.Errorf("Close = %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}

func newRail(tb testing.TB, url string, now func() time.Time, timeout time.Duration) *sandbox.Rail {
	tb.Helper()
	r, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: url, Secret: secret, Now: now, Timeout: timeout})
	if err != nil {
		tb.Fatalf("NewRail = %v", err)
	}
	tb.Cleanup(r.Close)
	return r
}

// nowhere is an address where nobody listens.
func nowhere(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = ln.Close() }()
	return "http://" + ln.Addr().String()
}

func TestConformance(t *testing.T) {
	railtest.Run(t, func(t *testing.T) railtest.World {
		t.Helper()
		w := openTown(t)
		return railtest.World{
			Rail: w.rail, Provider: w.rail, Unreachable: newRail(t, nowhere(t), w.clock.Now, 0),
			Hasty: newRail(t, w.url, w.clock.Now, 300*time.Millisecond), Notices: w.door.got, Secret: secret, Now: w.clock.Now, Pass: w.clock.advance,
			Sign: func(secret string, at time.Time, body []byte) http.Header {
				h := http.Header{}
				h.Set(sandbox.SignatureHeader, sandbox.Sign(secret, at, body))
				return h
			},
		}
	})
}

// order is an order under a reference.
func (w town) order(m flow.Method, reference string) flow.Order {
	return flow.Order{
		Reference: reference, Session: "wsp_sess_x", Method: m, Amount: 500_000, AccountName: "ADA STORES/CHECKOUT",
		ExpiresAt: w.clock.Now().Add(30 * time.Minute),
	}
}

// leaves makes a call that the bank does not answer, and goes away once the bank has
// done what it was asked.
func (w town) leaves(t *testing.T, call func(ctx context.Context) error) error {
	t.Helper()
	calls := func() int {
		list, err := w.rail.Calls(t.Context(), 0, 100)
		must(t, err)
		return len(list)
	}
	before := calls()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	await.Until(t, "the bank has done it", func() bool { return calls() > before })
	leave()
	return <-ended
}

func (w town) start(t *testing.T, m flow.Method, reference string) flow.Instructions {
	t.Helper()
	got, err := w.rail.Start(t.Context(), w.order(m, reference))
	if err != nil {
		t.Fatalf("Start = %v", err)
	}
	return got
}

func (w town) transfer(t *testing.T, x rail.Transfer) rail.TransferResult {
	t.Helper()
	got, err := w.rail.Transfer(t.Context(), x)
	if err != nil {
		t.Fatalf("Transfer(%+v) = %v", x, err)
	}
	return got
}

// hear waits for the next notice and reads it.
func (w town) hear(t *testing.T) flow.Notice {
	t.Helper()
	select {
	case m := <-w.door.got:
		got, err := w.rail.Parse(m.Header, m.Body)
		if err != nil || len(got) != 1 {
			t.Fatalf("Parse(%s) = %+v, %v", m.Body, got, err)
		}
		if !strings.Contains(string(m.Body), `"currency":"NGN"`) {
			t.Fatalf("in which currency that is, %s does not say", m.Body)
		}
		return got[0]
	case <-time.After(20 * time.Second):
		t.Fatal("no notice came")
		return flow.Notice{}
	}
}

// settled waits until the bank owes nothing, so that silence means no notice.
func (w town) settled(t *testing.T) {
	t.Helper()
	await.Until(t, "no notice is owed", func() bool {
		n, err := w.bank.Owed("owed")
		must(t, err)
		return n == 0
	})
}

func (w town) silent(t *testing.T) {
	t.Helper()
	select {
	case m := <-w.door.got:
		t.Fatalf("a notice came: %s", m.Body)
	default:
	}
}

// send is a raw request of the bank.
func send(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s = %v", method, url, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s = %v", method, url, err)
	}
	return res.StatusCode, string(text)
}
