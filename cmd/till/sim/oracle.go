//go:build planted

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"till/flow/planted"
)

// OracleOptions say what is planted and how long the judge has to find it.
type OracleOptions struct {
	Bugs    []string  // their names; nil: all of them
	Most    int       // seeds for each bug
	Clean   int       // seeds without any bug, which must find nothing; 0: none
	Jobs    int       // processes; 0: one for each core
	Program []string  // how a child process is begun
	Out     io.Writer // the table
	Words   io.Writer // progress
}

// ErrMissed says that the judge did not find a bug, or found one where none is.
var ErrMissed = errors.New("the judge of the simulation missed something")

// sought is a bug, and what came of looking for it.
type sought struct {
	planted.Bug

	Seeds int     // that were simulated
	Found *Broken // nil: it was not
	Seed  uint64  // that found it
	Own   int     // seeds that ended with the simulator's own complaint, which does not count
	CPU   time.Duration
	Fault error
}

// Oracle plants one bug after the other, simulates seeds from 1 on until one of
// them breaks an invariant, and tells which did. The simulator's own complaints
// are no invariant. Errors: ErrMissed, or what kept it from running.
func Oracle(ctx context.Context, o OracleOptions) error {
	list, err := chosen(o.Bugs)
	if err != nil {
		return err
	}
	if o.Clean > 0 {
		list = append(list, &sought{Bug: planted.Bug{What: "nothing is planted"}})
	}
	if o.Jobs <= 0 {
		o.Jobs = runtime.NumCPU()
	}
	work := make(chan *sought)
	var all sync.WaitGroup
	var told sync.Mutex
	done := 0
	for range o.Jobs {
		all.Go(func() {
			for s := range work {
				s.Fault = s.seek(ctx, o)
				told.Lock()
				done++
				_, _ = fmt.Fprintf(o.Words, "%d of %d: %s\n", done, len(list), s.line())
				told.Unlock()
			}
		})
	}
	for _, s := range list {
		work <- s
	}
	close(work)
	all.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return tabled(list, o)
}

// chosen are the bugs of some names, all of them where none is named.
func chosen(names []string) ([]*sought, error) {
	var list []*sought
	for _, b := range planted.Bugs() {
		if len(names) == 0 || slices.Contains(names, b.Name) {
			list = append(list, &sought{Bug: b})
		}
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == b.Name && len(names) > 1 })
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no bug of the name %s", strings.Join(names, ", "))
	}
	return list, nil
}

// seek simulates seeds in a process of its own until one of them finds the bug.
func (s *sought) seek(ctx context.Context, o OracleOptions) (err error) {
	c, err := begin(ctx, o.Program, planted.Variable+"="+s.Name)
	if err != nil {
		return err
	}
	defer func() {
		_, ended := c.end()
		err = errors.Join(err, ended)
		s.CPU = c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
	}()
	most := o.Most
	if s.Name == "" {
		most = o.Clean
	}
	for seed := uint64(1); s.Seeds < most && s.Found == nil; seed++ {
		r, err := c.simulate(seed)
		if err != nil {
			return fmt.Errorf("seed %d: the process that simulated it ended or hung: %w", seed, err)
		}
		s.Seeds++
		switch b := r.Broken; {
		case b != nil && b.Invariant == "sim" && s.Name != "":
			s.Own++
		case b != nil:
			s.Found, s.Seed = b, seed
		}
	}
	return nil
}

// maxLine is how much is said of what was seen: till sim --seed shows the rest.
const maxLine = 200

// right says whether what is planted was found, and what is not was not.
func (s *sought) right() bool { return s.Fault == nil && (s.Found != nil) == (s.Name != "") }

// line tells what came of a bug.
func (s *sought) line() string {
	name := s.Name
	if name == "" {
		name = "no bug"
	}
	text := fmt.Sprintf("%s: not found in %d seeds", name, s.Seeds)
	if s.Found != nil {
		what, _, _ := strings.Cut(s.Found.Error(), "\n")
		if r := []rune(what); len(r) > maxLine {
			what = string(r[:maxLine]) + "…"
		}
		text = fmt.Sprintf("%s: seed %d, %s", name, s.Seed, what)
	}
	if s.Own > 0 {
		text += fmt.Sprintf(" (%d seeds ended with a complaint of the simulator's own)", s.Own)
	}
	if s.Fault != nil {
		text += ": " + s.Fault.Error()
	}
	return text
}

// tabled writes the table, and says what was missed.
func tabled(list []*sought, o OracleOptions) error {
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "bug\tseed\tinvariant\tCPU s\twhat it is") // a builder never fails to be written to
	found, bugs := 0, 0
	var missed []string
	for _, s := range list {
		seed, invariant := "none of "+fmt.Sprint(s.Seeds), "–"
		if s.Found != nil {
			seed, invariant = fmt.Sprint(s.Seed), s.Found.Invariant
		}
		name := s.Name
		if name == "" {
			name = "no bug"
		} else {
			bugs++
			if s.right() {
				found++
			}
		}
		if !s.right() {
			missed = append(missed, s.line())
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%.1f\t%s\n", name, seed, invariant, s.CPU.Seconds(), s.What)
	}
	_ = table.Flush() // as above
	if _, err := fmt.Fprintf(o.Out, "%sfound %d of %d bugs\n", text, found, bugs); err != nil {
		return err
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w: %s", ErrMissed, strings.Join(missed, "; "))
	}
	return nil
}
