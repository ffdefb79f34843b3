package sim

import (
	"strings"
	"testing"
)

func TestMovesInOneAreTwoOfTheirTable(t *testing.T) {
	known := edges()
	for name := range joined {
		table, move, _ := strings.Cut(name, ": ")
		from, to, _ := strings.Cut(move, " → ")
		if known[table][move] {
			t.Errorf("%s is one move: it needs no leave", name)
		}
		two := false
		for first := range known[table] {
			if between, is := strings.CutPrefix(first, from+" → "); is {
				two = two || known[table][between+" → "+to]
			}
		}
		if !two {
			t.Errorf("%s is not two moves of the table", name)
		}
	}
}
