package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till/flow/store/lite/disk"
)

// said is a line that a child process says to its parent.
type said struct {
	Result *Result `json:"result,omitempty"`
	Goals  *Goals  `json:"goals,omitempty"`
}

// inBubble does something in a bubble of its own, where time is virtual. The
// bubble wants a test to belong to; a zero one serves, which reports to nobody.
func inBubble(do func()) {
	synctest.Test(new(testing.T), func(*testing.T) { do() })
}

// prepared makes the template of this process, with its databases elsewhere where at
// is not nil.
func prepared(at otherStore) (*template, func() error, error) {
	runtime.GOMAXPROCS(1) // one goroutine at a time, or a seed would not come out the same
	d, err := disk.New()
	if err != nil {
		return nil, nil, err
	}
	var t *template
	inBubble(func() { t, err = makeTemplate(d, at) })
	return t, d.Close, err
}

// Child simulates the seeds that it reads, one a line, until there are no more,
// and says what came of each.
func Child(in io.Reader, out io.Writer) (err error) {
	t, clean, err := prepared(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	say := json.NewEncoder(out)
	goals := newGoals()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		seed, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			return fmt.Errorf("read a seed: %w", err)
		}
		var r Result
		inBubble(func() { r = play{seed: seed, tpl: t, goals: goals}.run() })
		if err := say.Encode(said{Result: &r}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return say.Encode(said{Goals: goals})
}

// One simulates one seed in this process, or only some of its actions, and writes
// its trace where there is a place for it.
func One(seed uint64, only []int, trace io.Writer) (r Result, err error) {
	t, clean, err := prepared(nil)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, clean()) }()
	p := play{seed: seed, tpl: t, out: trace, goals: newGoals()}
	if len(only) > 0 {
		p.only(only)
	}
	inBubble(func() { r = p.run() })
	return r, nil
}

// child is a process that simulates seeds, as its parent holds it.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	answers *json.Decoder
	fault   strings.Builder
}

// begin starts a child process, on one core and with more in its environment.
func begin(ctx context.Context, program []string, more ...string) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, program[0], program[1:]...)} //nolint:gosec // the program itself
	c.cmd.Env = append(append(os.Environ(), "GOMAXPROCS=1", "GOGC=400", "GODEBUG=asyncpreemptoff=1,adaptivestackstart=1"), more...)
	c.cmd.Stderr = &c.fault
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	c.answers = json.NewDecoder(c.out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("begin a process of the simulation: %w", err)
	}
	return c, nil
}

// simulate has the child simulate a seed. One that takes too long is killed, and
// then its answer does not come.
func (c *child) simulate(seed uint64) (*Result, error) {
	watch := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer watch.Stop()
	if _, err := fmt.Fprintln(c.in, seed); err != nil {
		return nil, err
	}
	var s said
	if err := c.answers.Decode(&s); err != nil {
		return nil, err
	}
	if s.Result == nil {
		return nil, errors.New("it said something else")
	}
	return s.Result, nil
}

// end lets the child end, and says what it reached, nil where it did not say.
func (c *child) end() (*Goals, error) {
	err := c.in.Close()
	var s said
	err = errors.Join(err, c.answers.Decode(&s))
	_, _ = io.Copy(io.Discard, c.out) // or it could not end
	if ended := c.cmd.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("%w:\n%s", ended, tail(c.fault.String())))
	}
	return s.Goals, err
}
