// Package benchtest is the table that the project's benchmarks print, the machine that
// it was measured on, and how often a test does what may be done in large numbers: one
// form for all, so that one run can gather what others found. It must not know what is
// measured, and no program imports it.
package benchtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// Row is one line: a figure beside what the machine does at best in the same run,
// and whether its goal was reached.
type Row struct {
	What   string `json:"what"`
	Figure string `json:"figure"`
	Limit  string `json:"limit,omitempty"`
	Goal   string `json:"goal,omitempty"`
	Kept   string `json:"kept,omitempty"` // reached or MISSED, where there is a goal; kept or BROKEN, where there is a promise
}

// broken is what stands beside a promise that was not kept.
const broken = "BROKEN"

// Table is what is printed at the end.
type Table struct {
	Rows []Row
	Says func(Row) // is told each row as it comes, where there is one
}

// Add adds a figure without a goal.
func (t *Table) Add(what, figure, limit string) {
	t.Put(Row{What: what, Figure: figure, Limit: limit})
}

// Judge adds a figure with its goal, which was reached or not.
func (t *Table) Judge(what, figure, limit, goal string, reached bool) {
	t.Put(Row{what, figure, limit, goal, map[bool]string{true: "reached", false: "MISSED"}[reached]})
}

// Promise adds a figure that is no matter of speed: nothing is lost, say, on
// whatever machine. A run in which one is not kept fails.
func (t *Table) Promise(what, figure, promise string, kept bool) {
	t.Put(Row{What: what, Figure: figure, Goal: promise, Kept: map[bool]string{true: "kept", false: broken}[kept]})
}

// Broken is an error that names the promises which were not kept.
func (t *Table) Broken() error {
	var all []error
	for _, r := range t.Rows {
		if r.Kept == broken {
			all = append(all, fmt.Errorf("%s: %s, and promised is %s", r.What, r.Figure, r.Goal))
		}
	}
	return errors.Join(all...)
}

// Put adds a row.
func (t *Table) Put(r Row) {
	t.Rows = append(t.Rows, r)
	if t.Says != nil {
		t.Says(r)
	}
}

// Text is the table in Markdown.
func (t *Table) Text() string {
	lines := slices.Insert(slices.Clone(t.Rows), 0, Row{What: "what", Figure: "figure", Limit: "limit of the machine, same run", Goal: "goal"})
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

func (r Row) cells() [5]string { return [5]string{r.What, r.Figure, r.Limit, r.Goal, r.Kept} }

// rowsFile is the setting that names the file in which a benchmark leaves its rows
// for another to read.
const rowsFile = "TILL_BENCH_ROWS"

// Leave writes the rows to the file that TILL_BENCH_ROWS names, where it does.
func (t *Table) Leave() error {
	name := os.Getenv(rowsFile)
	if name == "" {
		return nil
	}
	file, err := os.Create(name) //nolint:gosec // whoever runs the benchmark names it
	if err != nil {
		return fmt.Errorf("leave the rows of a benchmark: %w", err)
	}
	out := json.NewEncoder(file)
	for _, r := range t.Rows {
		err = errors.Join(err, out.Encode(r))
	}
	return errors.Join(err, file.Close())
}

// Gather adds the rows that another benchmark left in a file, each under a name.
func (t *Table) Gather(name, file string) error {
	from, err := os.Open(file) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("gather the rows of a benchmark: %w", err)
	}
	defer func() { _ = from.Close() }()
	for rows := json.NewDecoder(from); ; {
		var r Row
		if err := rows.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the rows of %s: %w", name, err)
		}
		r.What = name + ": " + r.What
		t.Put(r)
	}
}

// Env is the setting that has a benchmark leave its rows in a file.
func Env(file string) string { return rowsFile + "=" + file }
