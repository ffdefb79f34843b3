//go:build linux

package load

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/sealing"
	"till/cmd/till/tilltest"
	"till/config"
	"till/flow/redistest"
	"till/flow/store"
)

const botNumber = "2349010000001"

// merchants is how many there are: one endpoint is sent only so much at once.
const merchants = 8

// world is till serve, till bank and a Redis, as processes, and the WhatsApp
// network inside this one.
type world struct {
	tb        testing.TB
	dir       string
	addr      string
	metricsAt string
	env       []string
	bank      process
	bankAt    string
	till      process
	redis     *redistest.Server // nil where none is installed
	network   *wanet.Network
	relay     *relay
	client    *http.Client
	keys      []string
	linked    *wanet.Account

	began    float64  // MiB that Till held when it had just started
	accounts sync.Map // account number → session
	paid     atomic.Int64
}

// settings are what a world is started with.
type settings struct {
	limit int  // calls a second that each key has
	chat  bool // link a number
}

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// newWorld starts everything, signs merchants up and gives each an endpoint.
func newWorld(tb testing.TB, s settings) *world {
	tb.Helper()
	w := prepare(tb, s)
	w.start()
	w.between()
	w.began = w.till.rss()
	if s.chat {
		w.link()
	}
	for i := range merchants {
		w.signUp(i)
	}
	return w
}

// prepare starts all but Till.
func prepare(tb testing.TB, s settings) *world {
	tb.Helper()
	w := &world{
		tb: tb, dir: tb.TempDir(), addr: tilltest.FreePort(tb), bankAt: tilltest.FreePort(tb), metricsAt: tilltest.FreePort(tb),
		client: &http.Client{Timeout: tilltest.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: mostAsked, DisableCompression: true}},
	}
	w.relay = newRelay(tb, w.addr, func(account string) (string, bool) {
		session, ok := w.accounts.Load(account)
		name, _ := session.(string)
		return name, ok
	})
	w.bank = watched(tb, w.dir, nil, "bank", "--addr", w.bankAt, "--file", filepath.Join(w.dir, "bank.db"))
	w.bank.Line(`^(sandbox bank): `)
	var err error
	if w.network, err = wanet.Open(tb.Context(), wanet.Config{Now: time.Now}); err != nil {
		tb.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	must(tb, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.network.Serve(ctx, ln) }()
	tb.Cleanup(func() { stop(); <-served; _ = w.network.Close() })
	key := w.network.RootKey()
	w.env = []string{
		"TILL_WHATSAPP_DIAL=" + ln.Addr().String(), "TILL_WHATSAPP_ROOT_KEY=" + hex.EncodeToString(key[:]), "TILL_BANK_URL=http://" + w.bankAt,
		"TILL_PUBLIC_URL=http://" + w.relay.at, "TILL_DATA_DIR=" + filepath.Join(w.dir, "data"), "TILL_HTTP_ADDR=" + w.addr,
		fmt.Sprintf("TILL_RATE_LIMIT_TEST=%d", s.limit), "TILL_LOG_LEVEL=error", "TILL_METRICS_ADDR=" + w.metricsAt,
	}
	if redistest.Installed() {
		w.redis = redistest.Start(tb)
		w.env = append(w.env, "TILL_REDIS_URL="+w.redis.URL)
	} else {
		progress("redis-server is not installed: the one inside Till is used")
	}
	return w
}

// start starts Till and returns how long it took until it could serve.
func (w *world) start() time.Duration {
	w.tb.Helper()
	began := time.Now()
	w.till = watched(w.tb, w.dir, w.env, "serve")
	until(w.tb, "Till is ready", 5*tilltest.Patience, func() bool {
		select {
		case <-w.till.Ended():
			w.tb.Fatalf("Till ended: %s", w.till.Said())
		default:
		}
		resp, err := w.client.Get("http://" + w.addr + "/readyz") // the client has a bound on its time
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return time.Since(began)
}

// between has the bank tell the relay of payments and not Till, as one more process of the
// same Till: it tells that one first which registered last, and answers.
func (w *world) between() {
	w.tb.Helper()
	ctx := context.Background()
	data := filepath.Join(w.dir, "data")
	keys, err := sealing.Keys(config.Settings{DataDir: data})
	must(w.tb, err)
	c := store.Config{Schema: store.Accounts, Dir: data, Name: "accounts"}
	if c.Keys, err = store.NewKeyring(rand.Reader, keys[0], keys[1:]...); err != nil {
		w.tb.Fatal(err)
	}
	var secret string
	err = store.Look(ctx, c, func(r store.Reader) (err error) {
		secret, err = r.Secret(ctx, sealing.BankSecret)
		return err
	})
	must(w.tb, err)
	// Till may serve before the bank knows it, and would be the last then. The bank answers
	// nobody who did not register, and who does so again keeps its place.
	until(w.tb, "Till has registered", tilltest.Patience, func() bool {
		return w.call(ctx, http.MethodGet, "http://"+w.bankAt+"/bank/v1/disbursements/none", secret, nil, nil) == nil
	})
	must(w.tb, w.call(ctx, http.MethodPut, "http://"+w.bankAt+"/bank/test/client", "", map[string]string{"notifyUrl": "http://" + w.relay.at + noticePath, "secret": secret}, nil))
}

// link links the bot's number.
func (w *world) link() {
	w.tb.Helper()
	code := w.till.Line(`^pairing: (.+)$`)[1]
	owner, err := w.network.AddAccount(botNumber, "Bot")
	if err == nil {
		err = owner.ScanQR(code)
	}
	must(w.tb, err)
	w.linked = owner
	until(w.tb, "the number is linked", tilltest.Patience, func() bool {
		var out struct {
			Data struct{ State string }
		}
		return w.call(context.Background(), http.MethodGet, "http://"+w.addr+"/readyz", "", nil, &out) == nil && out.Data.State == "ready"
	})
}

// signUp makes a merchant, with an endpoint that hears of payments.
func (w *world) signUp(i int) {
	w.tb.Helper()
	ctx := context.Background()
	var made struct {
		Data struct {
			Keys struct{ SecretKey string }
		}
	}
	err := w.call(ctx, http.MethodPost, w.url("/v1/auth/signup"), "", map[string]string{
		"email": fmt.Sprintf("owner%d@load.example", i), "password": "correct horse battery", "businessName": fmt.Sprintf("Load %d", i),
	}, &made)
	must(w.tb, err)
	key := made.Data.Keys.SecretKey
	w.keys = append(w.keys, key)
	err = w.call(ctx, http.MethodPost, w.url("/v1/webhook-endpoints"), key, map[string]any{
		"url": fmt.Sprintf("http://%s/hook/%d", w.relay.at, i), "events": []string{"charge.success"},
	}, nil)
	must(w.tb, err)
}

func (w *world) url(path string) string { return "http://" + w.addr + path }

// refused is an answer that is none of 2xx.
type refused struct {
	status int
	code   string
	wait   string // Retry-After
}

func (r *refused) Error() string { return fmt.Sprintf("%d %s", r.status, r.code) }

// call makes one call with a JSON body, as a merchant's program would.
func (w *world) call(ctx context.Context, method, url, key string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return errors.New("no answer: " + cut(err.Error()))
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return errors.New("no whole answer")
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		var said struct{ Error struct{ Code string } }
		_ = json.Unmarshal(text, &said)
		return &refused{resp.StatusCode, said.Error.Code, resp.Header.Get("Retry-After")}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// cut leaves out of an error what is another one each time.
func cut(text string) string {
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// open opens a session of a merchant.
func (w *world) open(ctx context.Context, i int, mode string) (session, link string, err error) {
	var made struct {
		Data struct{ ID, CheckoutURL string }
	}
	err = w.call(ctx, http.MethodPost, w.url("/v1/whatsapp/checkout/sessions"), w.keys[i%len(w.keys)],
		map[string]any{"amount": 500_000, "customerEmail": "ada@example.com", "mode": mode}, &made)
	return made.Data.ID, made.Data.CheckoutURL, err
}

// transfer has an account number made for a session and pays to it: what is
// under way then is the bank's notice.
func (w *world) transfer(ctx context.Context, i int, session string) error {
	var shown struct {
		Data struct {
			BankTransfer  struct{ AccountNumber string }
			AccountNumber string
			Instructions  struct{ AccountNumber string }
		}
	}
	err := w.call(ctx, http.MethodPost, w.url("/v1/whatsapp/checkout/sessions/"+session+"/pay/bank-transfer"), w.keys[i%len(w.keys)], nil, &shown)
	if err != nil {
		return fmt.Errorf("instructions: %w", err)
	}
	account := shown.Data.AccountNumber + shown.Data.BankTransfer.AccountNumber + shown.Data.Instructions.AccountNumber
	w.accounts.Store(account, session)
	if err := w.call(ctx, http.MethodPost, "http://"+w.bankAt+"/bank/test/transfers", "", map[string]any{"accountNumber": account}, nil); err != nil {
		return fmt.Errorf("transfer: %w", err)
	}
	w.paid.Add(1)
	return nil
}

// proven proves the ledger against the bank's own statement.
func (w *world) proven() (string, bool) {
	text, err := tilltest.Output(context.Background(), w.dir, w.env, "ledger", "check") // of no test, but of the world
	return text, err == nil
}
