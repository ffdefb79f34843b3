//go:build linux

package load

import (
	"fmt"
	"os"

	"till/flow/benchtest"
)

// short says that everything is to be done with small numbers, to see it work.
func short() bool { return os.Getenv("TILL_BENCH_SHORT") != "" }

// size is a number, or the one for a short run.
func size(whole, small int) int {
	if short() {
		return small
	}
	return whole
}

// table is what is printed at the end; each row is told as it comes.
type table = benchtest.Table

func newTable() *table {
	return &table{Says: func(r benchtest.Row) { progress("  %s: %s  %s  %s %s", r.What, r.Figure, r.Limit, r.Goal, r.Kept) }}
}

func ms(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.1f s", v/1000)
	}
	if v >= 10 {
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f ms", v)
}

func mib(v float64) string { return fmt.Sprintf("%.0f MiB", v) }
