//go:build linux

package load

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
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

// row is one line of the table.
type row struct{ what, figure, limit, goal, kept string }

// table is what is printed at the end.
type table struct{ rows []row }

// add adds a figure, beside what the machine does at best, without a goal.
func (t *table) add(what, figure, limit string) { t.put(row{what: what, figure: figure, limit: limit}) }

// judge adds a figure with its goal, which was reached or not.
func (t *table) judge(what, figure, limit, goal string, reached bool) {
	verdict := "reached"
	if !reached {
		verdict = "MISSED"
	}
	t.put(row{what, figure, limit, goal, verdict})
}

func (t *table) put(r row) {
	t.rows = append(t.rows, r)
	progress("  %s: %s  %s  %s %s", r.what, r.figure, r.limit, r.goal, r.kept)
}

// text is the table as the README holds it.
func (t *table) text() string {
	lines := slices.Insert(slices.Clone(t.rows), 0, row{"what", "figure", "limit of the machine, same run", "goal", ""})
	var width [5]int
	for _, r := range lines {
		for i, cell := range r.cells() {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var b strings.Builder
	for n, r := range lines {
		for i, cell := range r.cells() {
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, w := range width {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

func (r row) cells() [5]string { return [5]string{r.what, r.figure, r.limit, r.goal, r.kept} }

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
