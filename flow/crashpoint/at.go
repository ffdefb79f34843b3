//go:build crashpoints

package crashpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// chosen is the point and the passing at which the process is killed.
var chosen = choose(os.Getenv(Variable)) // of the whole process, as its environment is

type choice struct {
	point   Point
	passing int64
	passed  atomic.Int64
}

// choose reads what the environment says. The program does not run where that
// names no point: whoever asked would wait in vain.
func choose(text string) *choice {
	name, times, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(times, 10, 64)
	c := &choice{point: Point(name), passing: n}
	if text != "" && (err != nil || n < 1 || !slices.Contains(Points(), c.point)) {
		fmt.Fprintf(os.Stderr, "till: %s is %q, not one of %v with the passing behind a colon: %s:1\n", Variable, text, Points(), LedgerLine)
		os.Exit(2)
	}
	return c
}

// At kills the process where this passing of the point is the chosen one.
func At(p Point) {
	if p != chosen.point || chosen.passed.Add(1) != chosen.passing {
		return
	}
	fmt.Fprintln(os.Stderr, Last(p, chosen.passing))
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err) // in a program that was built for nothing else
	}
	select {} // whoever came here goes no further
}
