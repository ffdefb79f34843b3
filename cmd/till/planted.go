//go:build planted

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"till/cmd/till/sim"
	"till/flow/planted"
)

// plantedCmds adds the commands of a program that bugs can be planted in.
func plantedCmds() []kong.Option {
	return []kong.Option{kong.DynamicCommand("oracle", "Plant bugs, one after the other, and see that the simulation finds each.", "", new(oracleCmd))}
}

// mayRun says whether a command may be run, and says loudly what program this is:
// with planted bugs nothing is done but to simulate.
func mayRun(command string, words io.Writer) error {
	bug, err := planted.Planted()
	if err != nil {
		return usageError{err}
	}
	_, _ = fmt.Fprintf(words, "till: THIS PROGRAM WAS BUILT TO HAVE BUGS PLANTED IN IT (%s=%s): it is no Till, and only simulates.\n", planted.Variable, cmp.Or(bug, "none"))
	if name, _, _ := strings.Cut(command, " "); name != "sim" && name != "oracle" {
		return refusedError{fmt.Errorf("till %s does not run in a program that was built with -tags planted: build it without", name)}
	}
	return nil
}

// oracleCmd shows that the simulation's judge is worth something.
type oracleCmd struct {
	Bug   []string `help:"These bugs alone; without it all of them." placeholder:"NAME"`
	Most  int      `default:"500" help:"Seeds at most for each bug."`
	Clean int      `default:"20" help:"Seeds without any bug, which must find nothing."`
	Jobs  int      `help:"Bugs at once; without it one for each core."`
}

func (oracleCmd) Help() string {
	return `Examples:
  till oracle                   all bugs
  till oracle --bug odd-kobo    one of them
  TILL_PLANTED=odd-kobo till sim --seed 1 --trace

Ends with 1 where a bug is not found, or found by the simulator's own complaint alone.`
}

// Run plants and looks.
func (c *oracleCmd) Run(w *world) error {
	if c.Most < 1 || c.Clean < 0 {
		return usageError{errors.New("each bug has at least one seed")}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself: %w", err)
	}
	return sim.Oracle(w.ctx, sim.OracleOptions{
		Bugs: c.Bug, Most: c.Most, Clean: c.Clean, Jobs: c.Jobs, Program: []string{self, "sim", "--child"}, Out: w.out, Words: w.err,
	})
}
