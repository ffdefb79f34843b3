package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

// process is a bank in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

func startProcess(t *testing.T, file string) process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), helperFile+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the bank's address: %v", err)
	}
	return process{cmd, "http://" + strings.TrimSpace(line)}
}

// kill ends the process without a word (SIGKILL).
func (p process) kill(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGKILL))
	_ = p.cmd.Wait()
}

// A bank that is killed and started again has every account, every movement,
// its conditions, its call log, and still owes what it owed.
func TestKilledAndReopened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank ?#%.db")
	w := town{door: openDoor(t), clock: &clock{}}
	first := startProcess(t, file)
	w.rail = newRail(t, first.url, w.clock.Now, 0)
	// Till is not there: what it is told fails, and is owed.
	must(t, w.rail.Register(t.Context(), nowhere(t)))
	before := map[string]flow.Instructions{}
	for i, m := range []flow.Method{flow.BankTransfer, flow.USSD, flow.Card} {
		reference := "ref-" + strconv.Itoa(i)
		before[reference] = w.start(t, m, reference)
	}
	made := w.transfer(t, rail.Transfer{AccountNumber: before["ref-0"].AccountNumber})
	weather := rail.Conditions{Up: true, LatencyMs: 1}
	if _, err := w.rail.SetConditions(t.Context(), weather); err != nil {
		t.Fatal(err)
	}
	calls, err := w.rail.Calls(t.Context(), 0, 100)
	if err != nil || len(calls) != 3 {
		t.Fatalf("calls %+v, %v", calls, err)
	}
	first.kill(t)
	if _, err := w.rail.Check(t.Context(), "ref-0"); !errors.Is(err, rail.ErrUnavailable) && !errors.Is(err, rail.ErrUnknown) {
		t.Errorf("Check of a dead bank = %v", err)
	}

	second := startProcess(t, file)
	w.rail = newRail(t, second.url, w.clock.Now, 0)
	if got, err := w.rail.Conditions(t.Context()); err != nil || got != weather {
		t.Errorf("conditions %+v, %v", got, err)
	}
	if got, err := w.rail.Calls(t.Context(), 0, 100); err != nil || !reflect.DeepEqual(got, calls) {
		t.Errorf("calls %+v, %v", got, err)
	}
	for i, m := range []flow.Method{flow.BankTransfer, flow.USSD, flow.Card} {
		reference := "ref-" + strconv.Itoa(i)
		want := before[reference]
		want.CheckoutURL = strings.Replace(want.CheckoutURL, first.url, second.url, 1) // the bank moved
		o := w.order(m, reference)
		o.Again = true
		got, err := w.rail.Start(t.Context(), o)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v\n%+v", m, got, err, want)
		}
	}
	must(t, w.rail.Register(t.Context(), w.door.url))
	if n := w.hear(t); n.RailTransactionID != made.RailTransactionID {
		t.Errorf("notice %+v", n)
	}
}

// Killed at any moment under load: what was answered is kept, and every
// movement is told.
func TestKilledUnderLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank.db")
	w := town{door: openDoor(t), clock: &clock{}}
	made := map[string]bool{}
	var mu sync.Mutex
	for round := range 3 {
		bank := startProcess(t, file)
		w.rail = newRail(t, bank.url, w.clock.Now, 0)
		// A door that does not take anything: all stays owed.
		must(t, w.rail.Register(t.Context(), nowhere(t)))
		ten := make(chan struct{}, 1000)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 30 {
					got, err := w.rail.Transfer(t.Context(), rail.Transfer{AccountNumber: "0123456789", Amount: 7})
					if err != nil {
						return // killed
					}
					mu.Lock()
					made[got.RailTransactionID] = true
					mu.Unlock()
					ten <- struct{}{}
				}
			})
		}
		for range 10 + round {
			<-ten
		}
		bank.kill(t)
		group.Wait()
	}
	bank := startProcess(t, file)
	w.rail = newRail(t, bank.url, w.clock.Now, 0)
	must(t, w.rail.Register(t.Context(), w.door.url))
	for told := 0; told < len(made); {
		n := w.hear(t)
		if made[n.RailTransactionID] {
			made[n.RailTransactionID] = false
			told++
		}
	}
}

// A door that answers 503 until it is up again, as Till does while it cannot
// save: nothing is lost and nothing is told before.
func TestTillIsAway(t *testing.T) {
	w := openTown(t)
	w.bank.SetSchedule(time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond)
	w.door.answer(http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusServiceUnavailable)
	want := map[string]int{}
	for range 3 {
		want[w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7}).RailTransactionID] = 0
	}
	for range 6 { // three refused, three taken
		want[w.hear(t).RailTransactionID]++
	}
	w.settled(t)
	w.silent(t)
	for id, n := range want {
		if n < 1 {
			t.Errorf("%s was never told", id)
		}
	}
}

// An in-memory bank forgets; two of them share nothing.
func TestInMemory(t *testing.T) {
	a, b := openTown(t), openTown(t)
	a.start(t, flow.Card, "ref")
	if calls, err := b.rail.Calls(t.Context(), 0, 10); err != nil || len(calls) != 0 {
		t.Errorf("calls of the other bank: %+v, %v", calls, err)
	}
}

// The books are readable by their owner alone.
func TestFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	b, err := sandbox.Open(sandbox.Config{File: path, Now: time.Now})
	must(t, err)
	defer func() { _ = b.Close() }()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
