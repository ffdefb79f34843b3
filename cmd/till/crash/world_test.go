package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/tilltest"
	"till/flow/await"
)

const (
	botNumber = "2349010000001"
	botName   = "Till"
)

// object is a JSON object.
type object = map[string]any

// world is Till, what it is connected to, and what was found wrong with it.
type world struct {
	tb      testing.TB
	dir     string // Till's
	data    string // Till's data dir
	outside string // of bank and network
	addr    string
	bank    string // base address
	env     []string
	network *wanet.Remote
	client  *http.Client
	p       *tilltest.Process
	key     string
	journal *journal
	proofs  sync.WaitGroup // the check of the ledger that runs beside Till

	mu    sync.Mutex
	found map[string][]string // what is wrong, by kind
}

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// newWorld starts a bank, a network and, on them, Till, with a number linked.
func newWorld(tb testing.TB, env ...string) *world {
	tb.Helper()
	return newWorldWith(tb, func(bank string) string { return bank }, env...)
}

// newWorldWith is newWorld with something between Till and the bank.
func newWorldWith(tb testing.TB, reached func(bank string) string, env ...string) *world {
	tb.Helper()
	w := &world{
		tb: tb, dir: tb.TempDir(), outside: tb.TempDir(), addr: tilltest.FreePort(tb), found: map[string][]string{},
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	w.data, w.journal = filepath.Join(w.dir, "data"), newJournal(tb, w.outside)
	networkAt, bankAt := tilltest.FreePort(tb), tilltest.FreePort(tb)
	network := start(tb, w.outside, nil, "network", "--addr", networkAt, "--file", filepath.Join(w.outside, "network.db"))
	root := network.Line(`^root key: ([0-9a-f]{64})$`)[1]
	start(tb, w.outside, nil, "bank", "--addr", bankAt, "--file", w.bankFile()).Line(`^sandbox bank: `)
	w.bank = "http://" + bankAt
	w.network = wanet.NewRemote("http://"+networkAt, w.client)
	w.env = append([]string{"TILL_WHATSAPP_DIAL=" + networkAt, "TILL_WHATSAPP_ROOT_KEY=" + root, "TILL_BANK_URL=" + reached(w.bank)}, env...)
	w.start()
	w.until("the bot shows a code", func() bool { return pairing.MatchString(w.p.Said()) })
	text := pairing.FindStringSubmatch(w.p.Said())[1]
	if _, err := w.network.ScanQR(context.Background(), botNumber, botName, text); err != nil {
		tb.Fatal(err)
	}
	w.until("the first start leaves a key", func() bool { return regexp.MustCompile(`(?m)^secret key  `).MatchString(w.p.Said()) })
	w.key = keptKey(tb, w.dir)
	w.until("every part works", w.whole)
	return w
}

var pairing = regexp.MustCompile(`(?m)^pairing: (.+)\n`)

func (w *world) bankFile() string { return filepath.Join(w.outside, "bank.db") }

// start starts Till, with more settings than it has otherwise.
func (w *world) start(more ...string) {
	w.p = start(w.tb, w.dir, slices.Concat(w.env, more), "dev", "--http-addr", w.addr)
}

// until waits until something has become so.
func (w *world) until(what string, so func() bool) {
	w.tb.Helper()
	if !await.Within(tilltest.Patience, so) {
		w.tb.Fatalf("in vain waited until %s; Till said:\n%s", what, w.p.Said())
	}
}

// wrong takes note of what must not be.
func (w *world) wrong(kind, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[kind] = append(w.found[kind], fmt.Sprintf(format, args...))
}

// count is how much is wrong in a way.
func (w *world) count(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.found[kind])
}

// verdict fails the test for all that was found wrong.
func (w *world) verdict() {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, list := range w.found {
		for _, one := range list[:min(len(list), 10)] {
			w.tb.Errorf("%s: %s", kind, one)
		}
		if more := len(list) - 10; more > 0 {
			w.tb.Errorf("%s: and %d more", kind, more)
		}
	}
	if w.tb.Failed() {
		w.tb.Logf("Till said:\n%s", w.p.Said())
	}
}

// reply is what a call came to.
type reply struct {
	status   int
	body     string
	replayed bool
	retry    string
	took     time.Duration
}

// data is what a reply holds.
func (r reply) data() object {
	var out object
	if json.Unmarshal([]byte(r.body), &out) != nil {
		return nil
	}
	data, _ := out["data"].(object)
	return data
}

// text is a text in what a reply holds.
func (r reply) text(name string) string {
	text, _ := r.data()[name].(string)
	return text
}

// items are the rows of a list.
func (r reply) items() []object {
	raw, _ := r.data()["items"].([]any)
	list := make([]object, 0, len(raw))
	for _, one := range raw {
		if o, ok := one.(object); ok {
			list = append(list, o)
		}
	}
	return list
}

// code is the error's.
func (r reply) code() string {
	var out struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(r.body), &out)
	return out.Error.Code
}

// call makes one call; the error says that there was no reply.
func (w *world) call(method, path, key, body string) (reply, error) {
	return w.callAt("http://"+w.addr, method, path, key, body)
}

func (w *world) callAt(base, method, path, key, body string) (r reply, err error) {
	req, err := http.NewRequest(method, base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return r, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	began := time.Now()
	resp, err := w.client.Do(req)
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return r, err
	}
	return reply{
		status: resp.StatusCode, body: string(text), replayed: resp.Header.Get("Idempotent-Replayed") == "true",
		retry: resp.Header.Get("Retry-After"), took: time.Since(began),
	}, nil
}

// ready says whether GET /readyz is 200.
func (w *world) ready() bool {
	r, err := w.call(http.MethodGet, "/readyz", "", "")
	return err == nil && r.status == http.StatusOK
}

// whole says whether every part works.
func (w *world) whole() bool {
	r, err := w.call(http.MethodGet, "/readyz", "", "")
	return err == nil && r.text("state") == "ready"
}

// errGaveUp says that a call was not answered for good in time.
var errGaveUp = errors.New("no final answer came in time")

// surely makes a call under one key again and again until there is a final
// answer to it, as a merchant's client does, and keeps a 2xx in the journal
// before it returns it.
func (w *world) surely(key, path string, body any) (reply, error) {
	text := ""
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		text = string(raw)
	}
	var last string
	for end := time.Now().Add(2 * tilltest.Patience); time.Now().Before(end); {
		r, err := w.call(http.MethodPost, path, key, text)
		switch {
		case err != nil:
			last = err.Error()
		case r.status >= 500 || r.status == http.StatusTooManyRequests || r.code() == "idempotency_in_progress":
			last = fmt.Sprintf("%d %s", r.status, r.code())
		case r.status >= 300:
			return r, nil
		default:
			return r, w.journal.keep(entry{Kind: "call", Key: key, Path: path, Body: text, Status: r.status, Reply: r.body})
		}
		time.Sleep(20 * time.Millisecond) // a client's pause before it tries again
	}
	return reply{}, fmt.Errorf("%w: POST %s: %s", errGaveUp, path, last)
}
