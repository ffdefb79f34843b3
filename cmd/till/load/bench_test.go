//go:build linux

package load

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// part is one part of the run.
type part struct {
	name string
	run  func(b *testing.B, t *table)
}

// parts are all of them, in order. TILL_BENCH_PARTS names some.
func parts() []part {
	return []part{
		{"checkouts", checkouts},
		{"chats", chats},
		{"burst", burst},
		{"overload", overload},
		{"growth", growth},
	}
}

// BenchmarkService measures the whole service: make bench. It prints one table at
// the end, and fails only where something cannot be measured.
func BenchmarkService(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	t, where, began := new(table), machine(b), time.Now()
	wanted := strings.FieldsFunc(os.Getenv("TILL_BENCH_PARTS"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, p := range parts() {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		progress("%s, %s since the start", p.name, time.Since(began).Round(time.Second))
		b.Run(p.name, func(b *testing.B) { p.run(b, t) })
	}
	fmt.Printf("\n%s\nOne machine for the program, the bank, Redis and who asks; loopback TCP. SQLite, synchronous=FULL. In all %s%s.\n\n%s\n",
		where, time.Since(began).Round(time.Second), map[bool]string{true: ", SHORT: figures of small numbers"}[short()], t.text())
}
