//go:build linux

package load

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/benchtest"
)

// part is one part of the run.
type part struct {
	name string
	run  func(b *testing.B, t *table)
}

// parts are all of them, in order. TILL_BENCH_PARTS names some.
func parts() []part {
	return []part{
		{"api", other("api", "./api", "BenchmarkLoad", "")},
		{"chat", other("chat", "./cmd/till", "BenchmarkChat", "")},
		{"hooks", other("hooks", "./flow/checkout", "BenchmarkHooks", "TILL_HOOKS_ROUNDS=1 TILL_HOOKS_N=300")},
		{"checkouts", checkouts},
		{"chats", chats},
		{"burst", burst},
		{"overload", overload},
		{"growth", growth},
	}
}

// other is a part that a benchmark of another package measures, which leaves its
// rows in a file. Less are the settings with which a short run does it.
func other(name, pkg, bench, less string) func(b *testing.B, t *table) {
	return func(b *testing.B, t *table) {
		b.Helper()
		rows := filepath.Join(b.TempDir(), "rows")
		cmd := exec.CommandContext(b.Context(), "go", "test", "-timeout", "40m", "-run", "^$", "-bench", "^"+bench+"$", "-benchtime", "1x", pkg)
		cmd.Dir = "../../.."
		cmd.Env = append(os.Environ(), benchtest.Env(rows), "TILL_BIN="+tilltest.Program(b))
		if short() {
			cmd.Env = append(cmd.Env, strings.Fields(less)...)
		}
		out, failed := cmd.CombinedOutput()
		if err := errors.Join(failed, t.Gather(name, rows)); err != nil {
			b.Fatalf("%s: %v\n%s", bench, err, out)
		}
	}
}

// BenchmarkService measures the whole service: make bench. It prints one table at
// the end, and fails where something cannot be measured or a promise is not kept:
// that a goal was missed says something of the machine as well.
func BenchmarkService(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	t, where, began := newTable(), benchtest.Machine(b), time.Now()
	wanted := strings.FieldsFunc(os.Getenv("TILL_BENCH_PARTS"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range wanted {
		if !slices.ContainsFunc(parts(), func(p part) bool { return p.name == name }) {
			b.Fatalf("TILL_BENCH_PARTS names %q, which is no part", name)
		}
	}
	for _, p := range parts() {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		progress("%s, %s since the start", p.name, time.Since(began).Round(time.Second))
		b.Run(p.name, func(b *testing.B) { p.run(b, t) })
	}
	fmt.Printf("\n%s\nOne machine for the program, the bank, Redis and who asks; loopback TCP. SQLite, synchronous=FULL. In all %s%s.\n\n%s\n",
		where, time.Since(began).Round(time.Second), map[bool]string{true: ", SHORT: figures of small numbers"}[short()], t.Text())
	if err := t.Broken(); err != nil {
		b.Error(err)
	}
}
