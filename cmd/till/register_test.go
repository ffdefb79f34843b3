package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// serves runs till serve in a fresh directory, with a project in it, and returns its
// merchant.
func serves(t *testing.T, env ...string) (*merchant, *tilltest.Process) {
	t.Helper()
	dir, addr := t.TempDir(), tilltest.FreePort(t)
	must(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	m := &merchant{t: t, base: "http://" + addr, key: shopIn(t, filepath.Join(dir, "data")).SecretKey}
	p := start(t, dir, append(env, "TILL_HTTP_ADDR="+addr), "serve")
	p.Line(`^API `)
	return m, p
}

// paid opens a session, and has it paid and the bank tell of that.
func (m *merchant) paid() {
	m.t.Helper()
	session := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500_000, "customerEmail": "ada@example.com"})["id"].(string)
	paid := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session+"/pay/bank-transfer", nil)
	account := regexp.MustCompile(`accountNumber:(\d{10})`).FindStringSubmatch(fmt.Sprint(paid))
	if account == nil {
		m.t.Fatalf("no account in %v", paid)
	}
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account[1]})
	m.until("the session is paid", func() bool {
		return m.call(http.MethodGet, "/v1/whatsapp/checkout/sessions/"+session, nil)["status"] == "PAID"
	})
}

// With the settings of the README's server, which a proxy stands in front of, a
// session is paid, and the bank tells of it: asking would take a minute.
func TestTheReadmesServerIsPaid(t *testing.T) {
	o := newOutside(t)
	_, section, ok := strings.Cut(readme(t), "## Operating it\n")
	fence := regexp.MustCompile("(?s)```ini\n(.*?)```").FindStringSubmatch(section)
	if !ok || fence == nil {
		t.Fatal("the README does not say how a server is set")
	}
	var env []string
	for line := range strings.Lines(fence[1]) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "TILL_BANK_URL", "TILL_WHATSAPP_NETWORK", "TILL_REDIS_URL": // those of the test
		default:
			if !strings.HasPrefix(line, "#") {
				env = append(env, strings.TrimSpace(line))
			}
		}
	}
	if len(env) != 2 {
		t.Fatalf("the README sets %q beside the outsides", env)
	}
	m, _ := serves(t, append(env, o.env...)...)
	m.paid()
}

// A bank that refuses to register us is said to refuse, once and not at each try, and
// by all who are asked how things stand, for as long as it does.
func TestABankThatRefusesUsIsSaidTo(t *testing.T) {
	t.Parallel() // it mostly waits
	var tries atomic.Int64
	var takes atomic.Bool
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			tries.Add(1)
		}
		if !takes.Load() {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":"invalid_notify_url","message":"no address of ours"}}`)
		}
	}))
	t.Cleanup(bank.Close)
	o, metrics := newOutside(t), tilltest.FreePort(t)
	m, p := serves(t, append(o.env, "TILL_BANK_URL="+bank.URL, "TILL_METRICS_ADDR="+metrics)...)
	stands := func() (ok bool, reason string) {
		_, out, err := m.try(http.MethodGet, "/readyz", nil)
		must(t, err)
		for _, one := range out["data"].(object)["checks"].([]any) {
			if one := one.(object); one["name"] == "bank" {
				return one["ok"].(bool), one["reason"].(string)
			}
		}
		t.Fatalf("the bank is not among %v", out)
		return false, ""
	}
	await.Until(t, "it was tried a few times", func() bool { return tries.Load() >= 4 })
	if ok, reason := stands(); ok || !strings.Contains(reason, "refuses") || !strings.Contains(reason, "nothing can be paid") {
		t.Errorf("readyz says %v, %q", ok, reason)
	}
	const refusal = "the bank refuses to register us"
	if n := strings.Count(p.Said(), refusal); n != 1 || strings.Contains(p.Said(), "does not answer") || !strings.Contains(p.Said(), "no address of ours") {
		t.Errorf("the log says it %d times", n)
	}
	out, _ := p.Beside("doctor")
	if !regexp.MustCompile(`(?m)^fail +bank +The bank at \S+ answers, and refuses to register us.*nothing can be paid`).MatchString(out) {
		t.Errorf("the doctor says\n%s", out)
	}
	part := func(value string) func() bool {
		return func() bool {
			res, err := http.Get("http://" + metrics + "/metrics")
			if err != nil {
				return false
			}
			defer func() { _ = res.Body.Close() }()
			text, _ := io.ReadAll(res.Body)
			return strings.Contains(string(text), "till_part_up{part=\"bank\"} "+value+"\n")
		}
	}
	await.Until(t, "the metrics say it", part("0"))
	takes.Store(true)
	await.Until(t, "the bank knows us", func() bool { ok, _ := stands(); return ok })
	await.Until(t, "the log says that it took us", func() bool { return strings.Contains(p.Said(), "the bank knows us now") })
}

// A program that listens on an address of the network alone has a place on this
// machine beside it, for the bank tells of money nowhere else.
func TestTheBankReachesUsOnThisMachine(t *testing.T) {
	for addr, here := range map[string]bool{
		"127.0.0.1:80": true, "127.8.9.1:80": true, "[::1]:80": true, "0.0.0.0:80": true, "[::]:80": true, "10.0.0.7:80": false, "[2001:db8::7]:80": false,
	} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		must(t, err)
		if reachedHere(at) != here {
			t.Errorf("%s: not %v", addr, here)
		}
	}
	var lc net.ListenConfig
	listen := func() net.Listener {
		ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
		must(t, err)
		return ln
	}
	a, b := listen(), listen()
	both := join(a, b)
	server := &http.Server{Handler: http.NotFoundHandler()}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(both) }()
	for _, at := range []net.Listener{a, b, a} {
		res, err := http.Get("http://" + at.Addr().String())
		must(t, err)
		_ = res.Body.Close()
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	for _, at := range []net.Listener{a, b} {
		if conn, err := net.Dial("tcp", at.Addr().String()); err == nil {
			_ = conn.Close()
			t.Errorf("%s is open still", at.Addr())
		}
	}
}
