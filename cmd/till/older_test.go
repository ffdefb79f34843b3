package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
