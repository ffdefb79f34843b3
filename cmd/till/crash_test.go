package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/bot/whatsapp/wanet"
	"till/cmd/till/tilltest"
	"till/flow/await"
	"till/flow/redistest"
)

// outside is a WhatsApp network and a bank that run as processes of their own,
// so that killing Till kills neither.
type outside struct {
	t       *testing.T
	network *wanet.Remote
	env     []string
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	dir := t.TempDir()
	networkAt, bankAt := tilltest.FreePort(t), tilltest.FreePort(t)
	network := start(t, dir, nil, "network", "--addr", networkAt, "--file", filepath.Join(dir, "network.db"))
	key := network.Line(`^root key: ([0-9a-f]{64})$`)[1]
	bank := start(t, dir, nil, "bank", "--addr", bankAt, "--file", filepath.Join(dir, "bank.db"))
	bank.Line(`^sandbox bank: `)
	return &outside{
		t: t, network: wanet.NewRemote("http://"+networkAt, http.DefaultClient),
		env: []string{"TILL_WHATSAPP_DIAL=" + networkAt, "TILL_WHATSAPP_ROOT_KEY=" + key, "TILL_BANK_URL=http://" + bankAt},
	}
}

var pairing = regexp.MustCompile(`(?m)^pairing: (.+)\n`)

// link scans what the bot shows, as the owner of the number would.
func (o *outside) link(p *tilltest.Process) {
	o.t.Helper()
	o.scan(p, botNumber)
}

// scan is link with the phone of a number.
func (o *outside) scan(p *tilltest.Process, number string) {
	o.t.Helper()
	var text string
	await.Until(o.t, "the bot shows a code", func() bool { // before or after it says what else is running
		found := pairing.FindStringSubmatch(p.Said())
		if found != nil {
			text = found[1]
		}
		return found != nil
	})
	if _, err := o.network.ScanQR(context.Background(), number, botName, text); err != nil {
		o.t.Fatal(err)
	}
}

// till is Till between two kills. Its processes end with the whole test.
type till struct {
	t    *testing.T
	o    *outside
	dir  string
	addr string
	p    *tilltest.Process
}

// running starts Till with its number linked, and gives its first merchant too.
func running(t *testing.T, o *outside) (*till, *merchant) {
	t.Helper()
	x := &till{t: t, o: o, dir: t.TempDir(), addr: tilltest.FreePort(t)}
	x.start()
	o.link(x.p)
	x.p.Line(`of that network|/phone$`)
	m := &merchant{t: t, base: "http://" + x.addr, key: keptKey(t, x.dir)}
	waitReady(m)
	return x, m
}

func (x *till) start() { x.p = start(x.t, x.dir, x.o.env, "dev", "--http-addr", x.addr) }

// again kills Till as a power cut would and starts it again.
func (x *till) again() {
	x.p.Kill()
	x.start()
}

// proven proves the ledger against the bank's own statement, whether Till runs or
// not, and returns how many movements that has.
func (x *till) proven(t *testing.T) (movements int) {
	t.Helper()
	out, err := tilltest.Output(t.Context(), x.dir, x.o.env, "ledger", "check")
	found := heldAgainst.FindStringSubmatch(out)
	if err != nil || found == nil {
		t.Errorf("the ledger is not proven: %v\n%s", err, out)
		return 0
	}
	movements, _ = strconv.Atoi(found[1])
	return movements
}

var heldAgainst = regexp.MustCompile(`(?m)^I3 rail .* (\d+) checked  holds`)

// missNotice waits in dead Till's place for a notice of the bank, and hangs up.
func (x *till) missNotice() {
	x.t.Helper()
	ln, err := net.Listen("tcp", x.addr)
	must(x.t, err)
	defer func() { _ = ln.Close() }()
	_ = ln.(*net.TCPListener).SetDeadline(time.Now().Add(tilltest.Patience))
	conn, err := ln.Accept()
	if err != nil {
		x.t.Fatalf("the bank never told dead Till of the transfer: %v", err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(tilltest.Patience))
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err != nil || r.Method != http.MethodPost {
		x.t.Fatalf("dead Till is asked %+v: %v", r, err)
	}
}

// Till is killed at each step of a payment, and each time the payment still
// completes with one virtual account, one charge.success and one receipt.
func TestAPaymentSurvivesKillsAtEveryStep(t *testing.T) {
	x, m := running(t, newOutside(t))
	s := newSink(m)
	points := []string{
		"session created", "code on its way", "menu shown", "method on its way", "account shown", "claim on its way",
		"transfer on its way", "transfer made while dead", "receipt shown", "never",
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			m := &merchant{t: t, base: m.base, key: m.key}
			s.t = t
			payOnceKilledAt(t, x, m, s, point)
		})
	}
	if got := s.count("charge.success"); got != len(points) {
		t.Errorf("%d charge.success ids for %d payments", got, len(points))
	}
	x.p.Kill() // and what is left says the same
	if got := x.proven(t); got < len(points) {
		t.Errorf("the ledger was held against %d movements of the bank after %d payments", got, len(points))
	}
}

// payOnceKilledAt goes the whole way, with a kill at one point of it.
func payOnceKilledAt(t *testing.T, x *till, m *merchant, s *sink, point string) {
	t.Helper()
	at := func(here string) {
		if here == point {
			x.again()
		}
	}
	reference := "kill-" + strings.ReplaceAll(point, " ", "-")
	waitReady(m)
	p := newPayer(m)
	session, text := m.openChat(500_000, reference)
	at("session created")
	p.says(text)
	at("code on its way")
	p.hears(`1 Bank transfer`)
	at("menu shown")
	p.says("1")
	at("method on its way")
	account := p.hears(`^\d{10}$`)[0]
	at("account shown")
	if point == "claim on its way" {
		p.says("4")
		at(point)
		p.hears(`(?i)not here yet|no payment yet|not .*yet`)
	}
	transfer := object{"accountNumber": account}
	if point == "transfer made while dead" {
		m.eventually(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account, "delayMs": 1000})
		x.p.Kill()
		x.missNotice()
		x.start()
	} else {
		m.eventually(http.MethodPost, "/v1/test/bank/transfers", transfer)
	}
	at("transfer on its way")
	p.hears(`(?i)receipt(?s:.*)` + reference)
	at("receipt shown")
	if event := s.success(); event["reference"] != reference {
		t.Errorf("the webhook is about %v, not %s", event["reference"], reference)
	}
	if data := m.eventually(http.MethodGet, "/v1/whatsapp/checkout/sessions/"+session, nil); data["status"] != "PAID" {
		t.Errorf("the session is %v", data["status"])
	}
	if n := p.heardTimes(`(?i)^receipt`); n != 1 {
		t.Errorf("the payer got %d receipts:\n%s", n, p.transcript())
	}
	if n := p.heardTimes(`^\d{10}$`); n != 1 {
		t.Errorf("the payer got the account number %d times:\n%s", n, p.transcript())
	}
	made := map[any]bool{}
	for _, c := range items(m.eventually(http.MethodGet, "/v1/test/bank/calls", nil)) {
		if c["sessionId"] == session && c["operation"] == "create_virtual_account" {
			made[c["reference"]] = true
		}
	}
	if len(made) != 1 {
		t.Errorf("%d virtual accounts were asked for: %v", len(made), made)
	}
	x.proven(t)
}

// keptKey reads the secret key that the first start left.
func keptKey(tb testing.TB, dir string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(dir, envFile))
	must(tb, err)
	for line := range strings.SplitSeq(string(text), "\n") {
		if key, ok := strings.CutPrefix(line, "TILL_SECRET_KEY="); ok {
			return key
		}
	}
	tb.Fatalf("%s holds no secret key", envFile)
	return ""
}

// waitReady waits until every part works.
func waitReady(m *merchant) {
	m.t.Helper()
	await.Until(m.t, "every part of the server works", func() bool {
		_, out, err := m.try(http.MethodGet, "/readyz", nil)
		data, ok := out["data"].(object)
		return err == nil && ok && data["state"] == "ready"
	})
}

// Everything inside one process is killed and started again: the bot is linked
// still, the phones and their chats are as they were, and a payment goes on.
func TestTillDevFindsEverythingAsItWasAfterAKill(t *testing.T) {
	m, p, dir := devServer(t)
	_, text := m.openChat(250_000, "after-kill")
	who := newPayer(m)
	who.says(text)
	who.hears(`1 Bank transfer`)
	who.says("1")
	account := who.hears(`^\d{10}$`)[0]
	before := who.transcript()
	p.Kill()
	p = start(t, dir, nil, "dev", "--http-addr", strings.TrimPrefix(m.base, "http://"))
	p.Line(`/phone$`)
	if said := p.Said(); strings.Contains(said, m.key) {
		t.Error("the second start shows the secret key again")
	}
	if after := who.transcript(); len(after) < len(before)/2 || !strings.Contains(after, account) {
		t.Errorf("the phone's chat was:\n%s\nand is:\n%s", before, after)
	}
	who.says("5")
	if again := who.hears(`^\d{10}$`)[0]; again != account {
		t.Errorf("the account number was %s and is %s", account, again)
	}
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	who.hears(`(?i)receipt(?s:.*)after-kill`)
}

// Every message of the payer reaches the bot twice and Redis forgets everything
// between two turns; nothing is lost and nothing happens twice.
func TestEverythingTwiceAndRedisForgetful(t *testing.T) {
	redis := redistest.Start(t)
	o := newOutside(t)
	o.env = append(o.env, "TILL_REDIS_URL="+redis.URL)
	_, m := running(t, o)
	must(t, o.network.SetFaults(context.Background(), wanet.Faults{Duplicate: true}))
	s := newSink(m)
	_, text := m.openChat(500_000, "twice")
	p := newPayer(m)
	for i, step := range []struct{ says, hears string }{
		{text, `1 Bank transfer`},
		{"6", `1 Bank transfer`},
		{"1", `^\d{10}$`},
		{"5", `^\d{10}$`},
	} {
		redis.Flush()
		p.says(step.says)
		account := p.hears(step.hears)[0]
		if i == 3 {
			redis.Flush()
			m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account, "copies": 3})
		}
	}
	p.hears(`(?i)receipt(?s:.*)twice`)
	s.success()
	if n := p.heardTimes(`(?i)^receipt`); n != 1 {
		t.Errorf("the payer got %d receipts:\n%s", n, p.transcript())
	}
	if n := p.heardTimes(`^\d{10}$`); n != 2 {
		t.Errorf("the payer got the account number %d times, not twice:\n%s", n, p.transcript())
	}
	if n := s.count("charge.success"); n != 1 {
		t.Errorf("%d charge.success events for one payment", n)
	}
}

// A network whose key is another one is not believed, and the operator is told
// what to look at.
func TestAWrongRootKeyIsNamed(t *testing.T) {
	o := newOutside(t)
	for i, line := range o.env {
		if strings.HasPrefix(line, "TILL_WHATSAPP_ROOT_KEY=") {
			o.env[i] = "TILL_WHATSAPP_ROOT_KEY=" + strings.Repeat("ab", 32)
		}
	}
	x := &till{t: t, o: o, dir: t.TempDir(), addr: tilltest.FreePort(t)}
	x.start()
	x.p.Line(`/phone$|of that network`)
	m := &merchant{t: t, base: "http://" + x.addr, key: keptKey(t, x.dir)}
	m.until("readyz names the key", func() bool {
		_, out, err := m.try(http.MethodGet, "/readyz", nil)
		return err == nil && strings.Contains(fmt.Sprint(out), "--whatsapp-root-key")
	})
}
