package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
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

// prepared makes the template of this process.
func prepared() (*template, func(), error) {
	runtime.GOMAXPROCS(1) // one goroutine at a time, or a seed would not come out the same
	dir, err := place()
	if err != nil {
		return nil, nil, err
	}
	var t *template
	inBubble(func() { t, err = makeTemplate(dir) })
	return t, func() { _ = os.RemoveAll(dir) }, err
}

// Child simulates the seeds that it reads, one a line, until there are no more,
// and says what came of each.
func Child(in io.Reader, out io.Writer) error {
	t, clean, err := prepared()
	if err != nil {
		return err
	}
	defer clean()
	say := json.NewEncoder(out)
	goals := newGoals()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		seed, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			return fmt.Errorf("read a seed: %w", err)
		}
		var r Result
		inBubble(func() { r = simulate(seed, t, nil, goals) })
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
func One(seed uint64, only []int, trace io.Writer) (Result, error) {
	t, clean, err := prepared()
	if err != nil {
		return Result{}, err
	}
	defer clean()
	var r Result
	p := play{seed: seed, tpl: t, out: trace, goals: newGoals()}
	if len(only) > 0 {
		p.only(only)
	}
	inBubble(func() { r = p.run() })
	return r, nil
}
