package main

import (
	"context"
	"database/sql"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
	"till/flow/redistest"
	"till/flow/store"
	"till/flow/store/storetest"
)

// ownDatabase is a PostgreSQL database that no other test has.
func ownDatabase(t *testing.T, name string) string {
	t.Helper()
	url := storetest.EmptyPostgres(t, store.Checkout).URL
	db, err := sql.Open("pgx", url)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(url, "/postgres?", "/"+name+"?", 1)
}

// Two processes on one database, one Redis and one data dir: the second waits,
// takes the number over when the first is paused, and the first, woken, sends
// nothing. When the second dies the first goes on.
func TestASecondTillTakesTheNumberOver(t *testing.T) {
	t.Parallel() // it mostly waits
	redis, o, dir := redistest.Start(t), newOutside(t), t.TempDir()
	o.env = append(o.env, "TILL_DATABASE_URL="+ownDatabase(t, "takeover"), "TILL_REDIS_URL="+redis.URL)
	firstAt, secondAt := tilltest.FreePort(t), tilltest.FreePort(t)
	first := start(t, dir, o.env, "dev", "--http-addr", firstAt)
	o.link(first)
	first.Line(`of that network|/phone$`)
	m := &merchant{t: t, base: "http://" + firstAt, key: keptKey(t, dir)}
	waitReady(m)
	second := start(t, dir, o.env, "dev", "--http-addr", secondAt)
	second.Line(`of that network|/phone$`)
	m2 := &merchant{t: t, base: "http://" + secondAt, key: m.key}
	waitReady(m2) // the number is live, wherever it runs
	m.until("the second waits for the number", func() bool { return strings.Contains(second.Said(), "another process runs it") })

	p := newPayer(m2)
	_, text := m2.openChat(500_000, "takeover-1")
	p.says(text)
	p.hears(`1 Bank transfer`)
	first.Signal(syscall.SIGSTOP)
	p.says("menu")
	p.hears(`1 Bank transfer`) // once the first's lease has run out
	first.Signal(syscall.SIGCONT)
	m.until("the first has seen that the number is not its own", func() bool {
		return strings.Contains(first.Said(), "lease of this number is lost") || strings.Contains(first.Said(), "another process runs it")
	})
	p.says("1")
	account := p.hears(`^\d{10}$`)[0]
	m2.eventually(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	p.hears(`(?i)received|paid|thank`)
	if n := p.heardTimes(`^\d{10}$`); n != 1 {
		t.Errorf("the payer was told the account %d times", n)
	}
	if n := p.heardTimes(`1 Bank transfer`); n != 2 {
		t.Errorf("the payer saw the menu %d times:\n%s", n, p.transcript())
	}

	second.Kill()
	p = &payer{m: m, phone: p.phone}
	waitReady(m)
	_, text = m.openChat(600_000, "takeover-2")
	p.says(text)
	p.hears(`6,000`)
	p.says("1")
	account = p.hears(`^\d{10}$`)[0]
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	p.hears(`(?i)receipt(?s:.*)takeover-2`) // the bank told the second of it, which registered last: asking would take a minute
}

// Beside a Till that runs, where others may share its data dir, one more number is
// linked, and one again that its owner unlinked: it runs each within seconds.
func TestNumbersAreLinkedBesideATillThatRuns(t *testing.T) {
	t.Parallel() // it mostly waits
	redis, o, dir := redistest.Start(t), newOutside(t), t.TempDir()
	o.env = append(o.env, "TILL_DATABASE_URL="+ownDatabase(t, "linked"), "TILL_REDIS_URL="+redis.URL)
	addr := tilltest.FreePort(t)
	dev := start(t, dir, o.env, "dev", "--http-addr", addr)
	await.Until(t, "the doctor says where the first one's code is", func() bool {
		out, _ := dev.Beside("doctor", "--http-addr", addr) // it ends with 2 while there is none
		return strings.Contains(out, "fix: Scan the code that Till shows under Operations")
	})
	o.link(dev)
	dev.Line(`of that network|/phone$`)
	m := &merchant{t: t, base: "http://" + addr, key: keptKey(t, dir)}
	waitReady(m)
	stands := func(number, state string) {
		t.Helper()
		await.Until(t, number+" is "+state, func() bool {
			out, err := dev.Beside("numbers")
			return err == nil && regexp.MustCompile(`(?m)^\d +\+`+number+` +`+state+` `).MatchString(out)
		})
	}
	stands(botNumber, "live")

	const second = "2349010000002"
	more := start(t, dir, o.env, "pair")
	o.scan(more, second)
	more.EndsWell()
	stands(second, "live")

	devices, err := o.network.Devices(t.Context())
	must(t, err)
	for _, d := range devices {
		if d.Phone == botNumber {
			must(t, o.network.Device(t.Context(), d.Phone, d.Device, "logout", 0))
		}
	}
	stands(botNumber, "logged-out")
	again := start(t, dir, o.env, "pair", "--slot", "1")
	o.link(again)
	again.EndsWell()
	stands(botNumber, "live")
}

// A database that says nothing any more holds up nobody who ends the program: it is given
// up in time, as a crash would, and whoever waits for it is told that it does not answer.
func TestADatabaseThatHangsHoldsNoEndUp(t *testing.T) {
	t.Parallel() // it mostly waits
	c, line := storetest.Through(t, store.Config{URL: ownDatabase(t, "hangs")})
	m, p, _ := devServerWith(t, []string{"TILL_DATABASE_URL=" + c.URL})
	m.openChat(500_000, "before")
	line.Hush()
	answered := make(chan int, 3)
	asks := func() {
		status, _, _ := m.try(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500_000, "customerEmail": "ada@example.com"})
		answered <- status
	}
	for range 2 { // the second waits for what the first asks
		go asks()
	}
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("who waited for long is answered %d", status)
	}
	began := time.Now()
	p.Signal(syscall.SIGTERM) // the other one is under way
	p.EndsWell()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("told to stop, it ends after %v", took)
	}
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("who waited at its end is answered %d", status)
	}
}
