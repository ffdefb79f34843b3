package sim

import (
	"maps"
	"slices"
	"strings"

	"till/flow"
)

// Goals are what a run reached, and how often: proof that the simulation goes
// where it is meant to.
type Goals struct {
	Edges map[string]map[string]int `json:"edges"` // of each table: "from → to"
	Codes map[string]int            `json:"codes"` // of refusals
	Other map[string]map[string]int `json:"other"` // outcomes, tries and so on
	Turns int                       `json:"turns"` // of conversations that were decided again

	known map[string]map[string]bool
}

func newGoals() *Goals {
	return &Goals{Edges: map[string]map[string]int{}, Codes: map[string]int{}, Other: map[string]map[string]int{}, known: edges()}
}

// edges are the moves of every table of the rules, as these print them: a new one
// is a goal by itself.
func edges() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	table := ""
	for line := range strings.SplitSeq(flow.Mermaid(), "\n") {
		if name, is := strings.CutPrefix(line, "%% "); is {
			table = name
			out[table] = map[string]bool{}
			continue
		}
		from, rest, is := strings.Cut(strings.TrimSpace(line), " --> ")
		to, _, _ := strings.Cut(rest, ":")
		if is && from != to { // what leads back to where it was is not seen from outside
			out[table][from+" → "+to] = true
		}
	}
	return out
}

// edge counts a move that was seen; false where neither its table knows it nor it
// is one of those that are made in one go.
func (g *Goals) edge(table, from, to string) bool {
	if table == "desk" {
		from, to = deskName(from), deskName(to)
	}
	move := from + " → " + to
	if !g.known[table][move] && joined[table+": "+move] == "" {
		return false
	}
	if g.Edges[table] == nil {
		g.Edges[table] = map[string]int{}
	}
	g.Edges[table][move]++
	return true
}

// madeInOne is how often two moves were made in one go.
func (g *Goals) madeInOne(name string) int {
	table, move, _ := strings.Cut(name, ": ")
	return g.Edges[table][move]
}

// deskName is what the table calls a desk that nobody has.
func deskName(s string) string {
	if s == "" {
		return "bot"
	}
	return s
}

// reached counts something else, from any goroutine.
func (g *Goals) reached(what, which string, w *world) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.Other[what] == nil {
		g.Other[what] = map[string]int{}
	}
	g.Other[what][which]++
}

// Add takes in what another simulation reached.
func (g *Goals) Add(o *Goals) {
	into := func(to, from map[string]map[string]int) {
		for table, set := range from {
			if to[table] == nil {
				to[table] = map[string]int{}
			}
			for key, n := range set {
				to[table][key] += n
			}
		}
	}
	into(g.Edges, o.Edges)
	into(g.Other, o.Other)
	for code, n := range o.Codes {
		g.Codes[code] += n
	}
	g.Turns += o.Turns
}

// sorted are the keys of a map, in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
