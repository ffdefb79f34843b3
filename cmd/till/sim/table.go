package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// tell writes the table, and what the run failed at.
func (r *runner) tell() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := time.Since(r.began) //nolint:forbidigo // real time, for who waits
	out := &strings.Builder{}
	fmt.Fprintf(out, "%d seeds, %d failed, in %.0f s: %.1f a second by %d processes\n", r.done, len(r.failed), took.Seconds(), float64(r.done)/took.Seconds(), r.o.Jobs)
	fmt.Fprintf(out, "%d simulated days, %d sessions, %d steps, %d crashes, %d turns of conversations decided again\n", r.done*(days+int(settles/(24*time.Hour))), r.sessions, r.steps, r.crashes, r.goals.Turns)
	if r.wavered > 0 {
		fmt.Fprintf(out, "%d seeds came out otherwise the second time, and as before the third\n", r.wavered)
	}
	missed := r.goals.table(out)
	if scarce := r.goals.scarce(); len(scarce) > 0 {
		fmt.Fprintf(out, "hardly reached: %s\n", strings.Join(scarce, "; "))
	}
	if len(missed) > 0 {
		fmt.Fprintf(out, "never reached: %s\n", strings.Join(missed, "; "))
	}
	if _, err := fmt.Fprint(r.o.Out, out.String()); err != nil {
		return err
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("%w by %d of %d seeds: see above", ErrBroken, len(r.failed), r.done)
	}
	if len(missed) > 0 && r.done >= goalsFrom {
		return fmt.Errorf("%w: %s", ErrGoals, strings.Join(missed, "; "))
	}
	return nil
}

// table writes what was reached how often, and names what was not.
func (g *Goals) table(out *strings.Builder) (missed []string) {
	for _, table := range sorted(g.known) {
		reached, least, rarest := 0, 0, ""
		for _, edge := range sorted(g.known[table]) {
			n := g.Edges[table][edge]
			if n == 0 {
				if why := elsewhere[table+": "+edge]; why == "" {
					missed = append(missed, table+" "+edge)
				}
				continue
			}
			if reached++; rarest == "" || n < least {
				least, rarest = n, edge
			}
		}
		fmt.Fprintf(out, "  edges of %-12s %3d of %3d, the rarest %d times: %s\n", table, reached, len(g.known[table]), least, rarest)
	}
	var twos []string
	for _, name := range sorted(joined) {
		n := g.madeInOne(name)
		twos = append(twos, fmt.Sprintf("%s %d", name, n))
		if n == 0 && joined[name] != replaced {
			missed = append(missed, name)
		}
	}
	fmt.Fprintf(out, "  two moves in one: %s\n", strings.Join(twos, ", "))
	for _, group := range sorted(g.Other) {
		var parts []string
		for _, key := range sortedNumbers(g.Other[group]) {
			parts = append(parts, fmt.Sprintf("%s %d", key, g.Other[group][key]))
		}
		fmt.Fprintf(out, "  %s: %s\n", group, strings.Join(parts, ", "))
	}
	for _, want := range wanted() {
		if g.Other[want.group][want.key] == 0 && elsewhere[want.group+" "+want.key] == "" {
			missed = append(missed, want.group+" "+want.key)
		}
	}
	var parts []string
	for _, code := range sorted(g.Codes) {
		parts = append(parts, fmt.Sprintf("%s %d", code, g.Codes[code]))
	}
	fmt.Fprintf(out, "  refusals: %s\n", strings.Join(parts, ", "))
	for _, code := range codes() {
		if g.Codes[code] == 0 && elsewhere["code "+code] == "" {
			missed = append(missed, "code "+code)
		}
	}
	return missed
}

// sortedNumbers are the keys of a map, numbers as such.
func sortedNumbers(m map[string]int) []string {
	return slices.SortedFunc(func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}, func(a, b string) int {
		if len(a) != len(b) && strings.Trim(a+b, "0123456789") == "" {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
}

// often is how often a run should reach each goal: what it reaches less often it
// may miss the next time.
const often = 3

// scarce are the goals that were reached, and less than often, with how often.
func (g *Goals) scarce() (list []string) {
	add := func(name string, n int) {
		if n > 0 && n < often {
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	for _, table := range sorted(g.known) {
		for _, edge := range sorted(g.known[table]) {
			add(table+" "+edge, g.Edges[table][edge])
		}
	}
	for _, name := range sorted(joined) {
		add(name, g.madeInOne(name))
	}
	for _, want := range wanted() {
		add(want.group+" "+want.key, g.Other[want.group][want.key])
	}
	for _, code := range codes() {
		add("code "+code, g.Codes[code])
	}
	return list
}
