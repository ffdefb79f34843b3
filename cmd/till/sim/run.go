package sim

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say what is simulated.
type Options struct {
	Seeds   int       // how many, after the permanent ones
	From    uint64    // the first of them
	Jobs    int       // processes; 0: one for each core
	Commit  string    // of the program, for who reads of a failure
	Program []string  // how a child process is begun
	Out     io.Writer // the table
	Words   io.Writer // progress
}

// The bounds of a run.
const (
	patience    = 10 * time.Minute // of real time, for one seed
	sayEvery    = 5 * time.Second
	twice       = 20 // of the seeds at most are simulated a second time, and must come out the same
	mayWaver    = 2  // of those at most come out otherwise once
	maxFailures = 5  // seeds that failed before no more are begun
	goalsFrom   = 300
)

//go:embed testdata/seeds.txt
var permanent string

// permanentSeeds are the seeds that found something once: they always run first.
func permanentSeeds() ([]uint64, error) {
	var list []uint64
	for line := range strings.SplitSeq(permanent, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		number, _, _ := strings.Cut(line, " ")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the permanent seeds: %w", err)
		}
		list = append(list, seed)
	}
	return list, nil
}

// ErrBroken says that a seed broke an invariant, ErrGoals that the run did not go
// everywhere.
var (
	ErrBroken = errors.New("an invariant was broken")
	ErrGoals  = errors.New("the simulation did not reach all its goals")
)

// runner shares seeds out and gathers what came of them.
type runner struct {
	o     Options
	began time.Time

	mu       sync.Mutex // guards what follows
	next     []uint64
	from     uint64
	left     int
	done     int
	steps    int
	sessions int
	crashes  int
	failed   []Result
	traces   map[uint64][]string
	wavered  int // seeds that came out otherwise the second time
	goals    *Goals
}

// Run simulates many seeds, in processes of one core each, and tells what came of
// them. Errors: ErrBroken, ErrGoals, or what kept it from running.
func Run(ctx context.Context, o Options) error {
	if o.Jobs <= 0 {
		o.Jobs = runtime.NumCPU()
	}
	first, err := permanentSeeds()
	if err != nil {
		return err
	}
	for i := range min(twice, o.Seeds/15) { // in other company, maybe in another process
		first = append(first, o.From+uint64(i)) // not negative
	}
	r := &runner{o: o, began: time.Now(), next: first, from: o.From, left: o.Seeds, goals: newGoals(), traces: map[uint64][]string{}} // real time, for who waits
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	faults := make(chan error, o.Jobs)
	for range o.Jobs {
		work.Go(func() {
			if err := r.child(ctx); err != nil {
				faults <- err
				cancel()
			}
		})
	}
	ended := make(chan struct{})
	go func() { work.Wait(); close(ended) }()
	tick := time.NewTicker(sayEvery)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-tick.C:
			r.progress()
		case <-ended:
			waiting = false
		}
	}
	close(faults)
	for err := range faults {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.tell()
}

// take is the next seed; false when there are no more.
func (r *runner) take() (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) >= maxFailures {
		return 0, false
	}
	if len(r.next) > 0 {
		seed := r.next[0]
		r.next = r.next[1:]
		return seed, true
	}
	if r.left == 0 {
		return 0, false
	}
	r.left--
	r.from++
	return r.from - 1, true
}

// child has one process simulate seeds until there are no more.
func (r *runner) child(ctx context.Context) error {
	c, err := begin(ctx, r.o.Program)
	if err != nil {
		return err
	}
	for seed, more := r.take(); more; seed, more = r.take() {
		result, err := c.simulate(seed)
		if err != nil {
			_, ended := c.end()
			return errors.Join(fmt.Errorf("SEED=%d COMMIT=%s: the process that simulated it ended or hung (%w); till sim --seed %d --trace shows where", seed, r.o.Commit, err, seed), ended)
		}
		r.took(*result)
	}
	goals, err := c.end()
	if err != nil || goals == nil {
		return fmt.Errorf("a process of the simulation did not end well: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goals.Add(goals)
	return nil
}

// tail is the part of a long text that says most.
func tail(text string) string {
	if len(text) > 6000 {
		text = text[:3000] + "\n…\n" + text[len(text)-3000:]
	}
	return text
}

// again holds a seed against how it came out before. One that comes out otherwise
// is simulated once more: on a machine that has much else to do, a goroutine is now
// and then put off at a moment of the machine's choice. That may happen to few of
// them; one that comes out in three ways, or many, hang on something else than the
// seed.
func (r *runner) again(s *Result) {
	before := r.traces[s.Seed]
	r.traces[s.Seed] = append(before, s.Hash)
	if s.Broken != nil || len(before) == 0 || slices.Contains(before, s.Hash) {
		return
	}
	switch {
	case len(before) == 1:
		r.next = append(r.next, s.Seed)
		r.wavered++
		if r.wavered > mayWaver {
			s.Broken = &Broken{Invariant: "sim", What: fmt.Sprintf("%d seeds came out otherwise the second time, this one as %s and %s", r.wavered, before[0], s.Hash), Step: s.Steps}
		}
	default:
		s.Broken = &Broken{Invariant: "sim", What: fmt.Sprintf("the same seed came out in three ways: %s and %s", strings.Join(before, ", "), s.Hash), Step: s.Steps}
	}
}

// took takes in what came of a seed, and says at once that it failed.
func (r *runner) took(s Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.steps += s.Steps
	r.sessions += s.Sessions
	r.crashes += s.Crashes
	r.again(&s)
	if s.Broken == nil {
		return
	}
	r.failed = append(r.failed, s)
	_, _ = fmt.Fprintf(r.o.Words, "\nSEED=%d COMMIT=%s\n%s\n\nthe last of it:\n%s\n\nto see all of it:  till sim --seed %d --trace\n\n", s.Seed, r.o.Commit, s.Broken.Error(), strings.Join(s.Last, "\n"), s.Seed)
}

func (r *runner) progress() {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := time.Since(r.began) //nolint:forbidigo // real time, for who waits
	_, _ = fmt.Fprintf(r.o.Words, "%d seeds, %d to go, %d failed, %.1f a second\n", r.done, r.left+len(r.next), len(r.failed), float64(r.done)/took.Seconds())
}
