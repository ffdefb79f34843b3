package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"till/cmd/till/sim"
)

// simCmd simulates weeks of the whole service.
type simCmd struct {
	Seeds  int    `default:"300" help:"How many seeds, after those that found something once."`
	From   uint64 `default:"1" help:"The first seed."`
	Jobs   int    `help:"Processes at once; without it one for each core."`
	Seed   uint64 `placeholder:"S" help:"This seed alone."`
	Trace  bool   `help:"Write down everything that happens in it."`
	Shrink bool   `help:"Leave out of a seed that fails what it does not need to fail."`
	Only   []int  `placeholder:"N" help:"Only these actions of the seed, by their numbers."`
	Child  bool   `hidden:"" help:"Simulate the seeds that standard input names."`
}

func (simCmd) Help() string {
	return `Examples:
  till sim                     # 300 weeks
  till sim --seeds 10000       # many more
  till sim --seed 17 --trace   # one, with everything that happens in it
  till sim --seed 17 --shrink  # what of it is enough to fail

A week of the whole service in virtual time: merchants, payers, bank and webhooks, with crashes and much else going wrong, all of it decided by the seed. Ends with 1 where an invariant is broken, and names the seed, or where it did not get everywhere it is meant to.`
}

// Run simulates.
func (c *simCmd) Run(w *world) error {
	switch {
	case c.Child:
		return sim.Child(os.Stdin, w.out)
	case c.Trace && c.Seed == 0:
		return usageError{errors.New("a trace is of one seed: name it with --seed")}
	case (c.Shrink || len(c.Only) > 0) && c.Seed == 0:
		return usageError{errors.New("actions are left out of one seed: name it with --seed")}
	case c.Shrink && (c.Trace || len(c.Only) > 0):
		return usageError{errors.New("what is left after --shrink is seen with --only and --trace, in a call of its own")}
	case c.Shrink:
		return c.shrink(w)
	case c.Seed != 0:
		return c.one(w)
	case c.Seeds < 1:
		return usageError{errors.New("at least one seed is simulated")}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself: %w", err)
	}
	return sim.Run(w.ctx, sim.Options{
		Seeds: c.Seeds, From: c.From, Jobs: c.Jobs, Commit: version, Program: []string{self, "sim", "--child"}, Out: w.out, Words: w.err,
	})
}

// one simulates one seed.
func (c *simCmd) one(w *world) error {
	trace := w.out
	if !c.Trace {
		trace = nil
	}
	r, err := sim.One(c.Seed, c.Only, trace)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "seed %d: %d steps, %d sessions, %d crashes, trace %s\n", r.Seed, r.Steps, r.Sessions, r.Crashes, r.Hash)
	if r.Broken != nil {
		return fmt.Errorf("SEED=%d COMMIT=%s: %w", r.Seed, version, r.Broken)
	}
	return err
}

// shrink says what of a seed that fails is enough to fail.
func (c *simCmd) shrink(w *world) error {
	s, err := sim.Shrink(c.Seed, w.err)
	if err != nil {
		return err
	}
	if s.Result.Broken == nil {
		_, err := fmt.Fprintf(w.out, "seed %d: nothing is broken by its %d actions\n", c.Seed, s.Of)
		return err
	}
	numbers := make([]string, len(s.Left))
	for i, a := range s.Left {
		numbers[i] = strconv.Itoa(a.N)
		if _, err := fmt.Fprintln(w.out, a); err != nil {
			return err
		}
	}
	why := "leaving out any of them mends it"
	if s.Ended {
		why = "there was no time to try more"
	}
	_, err = fmt.Fprintf(w.out, "%d of %d actions left after %d tries: %s\n\nto see all of it:  till sim --seed %d --only %s --trace\n", len(s.Left), s.Of, s.Tries, why, c.Seed, strings.Join(numbers, ","))
	return errors.Join(err, fmt.Errorf("SEED=%d COMMIT=%s: %w", c.Seed, version, s.Result.Broken))
}
