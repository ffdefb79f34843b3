package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow"
)

// told are the commands that a command which refuses prints instead.
func (x *till) told(args ...string) (commands []string) {
	x.t.Helper()
	out, err := tilltest.Output(x.t.Context(), x.dir, x.o.env, args...)
	if err == nil {
		x.t.Fatalf("till %v does it: %s", args, out)
	}
	for _, found := range regexp.MustCompile(`(?m)(?:Use|And):  (.+)$`).FindAllStringSubmatch(out, -1) {
		commands = append(commands, found[1])
	}
	return commands
}

// sh runs a command as an operator does.
func (x *till) sh(command string) {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), "sh", "-euc", command)
	path := filepath.Dir(tilltest.Program(x.t)) + ":" + os.Getenv("PATH")
	if dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(dirs) > 0 {
		path += ":" + strings.Join(dirs, ":")
	}
	cmd.Dir, cmd.Env = x.dir, append(append(os.Environ(), x.o.env...), "PATH="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		x.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// heldMoney waits until the server says that nothing leaves.
func (m *merchant) heldMoney() {
	m.t.Helper()
	m.until("the server says that payouts are held", func() bool {
		_, out, err := m.try(http.MethodGet, "/readyz", nil)
		return err == nil && strings.Contains(fmt.Sprint(out), "till ledger release")
	})
}

// A merchant was paid out after PostgreSQL's dump. Restored as Till says, and as one
// does who leaves out half of it, the database owes the same money still and sends it
// to nobody.
func TestADumpOfPostgreSQLPaysNobodyOutTwice(t *testing.T) {
	t.Parallel() // it mostly waits
	o := newOutside(t)
	o.env = append(o.env, "TILL_DATABASE_URL="+ownDatabase(t, "dumped"))
	x, m := running(t, o)
	who := newPayer(m)
	account := m.chosen(who, "is-paid-out")
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	who.hears(`(?i)receipt`)
	x.sh(x.told("backup", "till.tar.gz")[0])
	runs := func() {
		t.Helper()
		m.call(http.MethodPost, "/v1/test/settlements/run", object{"date": string(flow.DateOf(time.Now()).Plus(10))})
	}
	runs()
	m.until("the payout is sent", func() bool { return m.sentOut() == 1 })

	commands := x.told("restore", "till.dump")
	if len(commands) != 3 {
		t.Fatalf("a restore is told as %q", commands)
	}
	x.p.Kill()
	for _, command := range commands {
		x.sh(command)
	}
	x.start()
	m.heldMoney()
	runs()

	x.p.Kill()
	x.sh(commands[0])
	x.start()
	m.heldMoney() // by itself
	if !strings.Contains(x.p.Said(), "the database was restored from before") {
		t.Error("the log does not say why")
	}
	runs()
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": m.chosen(who, "comes-later")})
	who.hears(`(?i)receipt`) // what was owed before it would have gone out by now
	if n := m.sentOut(); n != 1 {
		t.Errorf("the bank was ordered to send %d payouts", n)
	}
	x.does("ledger", "release", "--yes", "--reason", "the merchant gave it back")
	x.again()
	waitReady(m) // it is not held again for what somebody looked at
}

// ordered waits until the data dir remembers an order whose reference holds a word.
func (x *till) ordered(m *merchant, word string) {
	x.t.Helper()
	m.until("the order is remembered", func() bool {
		text, _ := os.ReadFile(filepath.Join(x.dir, "data", "ordered-test"))
		return strings.Contains(string(text), word)
	})
}

// copyTest copies the files of the test environment's database from one folder to
// another, in place of those that are there.
func (x *till) copyTest(from, to string) {
	x.t.Helper()
	x.sh("rm -f " + to + "/test.db*; cp " + from + "/test.db* " + to)
}

// between has something done with what the bank is ordered to send, in place of telling
// the bank of it; false for nothing.
func (o *outside) between(instead func(w http.ResponseWriter, order string) bool) {
	o.t.Helper()
	last := len(o.env) - 1
	bank, err := url.Parse(strings.TrimPrefix(o.env[last], "TILL_BANK_URL="))
	must(o.t, err)
	forward := httputil.NewSingleHostReverseProxy(bank)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/disbursements") {
			order, err := io.ReadAll(r.Body)
			if err != nil || instead(w, string(order)) {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(order))
		}
		forward.ServeHTTP(w, r)
	}))
	o.t.Cleanup(proxy.Close)
	o.env[last] = "TILL_BANK_URL=" + proxy.URL
}

// A refund that the bank did not take is tried again behind a payout that a copy of
// the database's files does not know: put back, the copy sends that to nobody.
func TestAnOrderThatIsTriedAgainHidesNoNewerOne(t *testing.T) {
	o := newOutside(t)
	var takes atomic.Bool
	o.between(func(w http.ResponseWriter, order string) bool {
		if takes.Load() || !strings.Contains(order, flow.PrefixRefund) {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	x, m := running(t, o)
	m.paid()
	payment := items(m.call(http.MethodGet, "/v1/payments", nil))[0]["id"]
	m.call(http.MethodPost, "/v1/refunds", object{"paymentId": payment, "amount": 100_000})
	x.ordered(m, flow.PrefixRefund)
	x.p.Kill()
	copied := t.TempDir()
	x.copyTest("data", copied)
	x.start()
	waitReady(m)
	runs := func() {
		t.Helper()
		m.call(http.MethodPost, "/v1/test/settlements/run", object{"date": string(flow.DateOf(time.Now()).Plus(10))})
	}
	runs()
	m.until("the payout is sent", func() bool { return m.sentOut() == 1 })
	takes.Store(true)
	m.call(http.MethodPost, "/v1/test/clock", object{"advanceSeconds": 120})
	m.until("the refund is sent", func() bool { return m.sentOut() == 2 })

	x.p.Kill()
	x.copyTest(copied, "data")
	x.start()
	m.heldMoney()
	runs()
	m.paid() // what was owed before it would have gone out by now
	if n := m.sentOut(); n != 2 {
		t.Errorf("the bank was ordered to send %d times", n)
	}
}

// Till dies when a payout is remembered and the bank was not told of it. It knows that
// it had begun: it holds nothing, and sends it once.
func TestAnOrderThatTheBankNeverHeardOfIsSentOnce(t *testing.T) {
	o := newOutside(t)
	var dies atomic.Pointer[tilltest.Process]
	died := make(chan struct{})
	o.between(func(http.ResponseWriter, string) bool {
		p := dies.Swap(nil)
		if p == nil {
			return false
		}
		p.Kill()
		close(died)
		return true
	})
	x, m := running(t, o)
	m.paid()
	dies.Store(x.p)
	_, _, _ = m.try(http.MethodPost, "/v1/test/settlements/run", object{"date": string(flow.DateOf(time.Now()).Plus(10))}) // it may die of it
	<-died
	x.ordered(m, flow.PrefixSettlement)
	x.start()
	waitReady(m)
	m.until("the payout is sent", func() bool {
		return items(m.call(http.MethodGet, "/v1/settlements", nil))[0]["status"] == "SUCCEEDED"
	})
	if n := m.sentOut(); n != 1 {
		t.Errorf("the bank was ordered to send %d payouts", n)
	}
}

// Two processes that share a data dir order at one time: neither takes from the file what
// the other one remembers in it.
func TestOrdersOfSeveralProcessesAreAllRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ordered-test")
	var working sync.WaitGroup
	for process := range 2 {
		orders := &lastOrders{file: file, of: "it", shared: true, log: slog.New(slog.DiscardHandler)}
		working.Go(func() {
			for i := range maxOrders / 2 {
				orders.keep(t.Context(), fmt.Sprintf("order-%d-%d", process, i))
			}
		})
	}
	working.Wait()
	known, err := (&lastOrders{file: file, of: "it"}).read()
	if err != nil || len(known) != maxOrders {
		t.Errorf("%d of %d orders are remembered, %v", len(known), maxOrders, err)
	}
}
