//go:build unix

package checkout_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// BenchmarkHooks measures how webhooks are delivered beside what the machine
// allows in the same run, on each database: make bench-hooks. It prints one table
// and fails only when an event is lost. TILL_HOOKS_ROUNDS and TILL_HOOKS_N make it
// longer, TILL_HOOKS_PARTS names the parts that are run, TILL_HOOKS_LOUD=1 tells
// every figure as it is found.
func BenchmarkHooks(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	debug.SetGCPercent(400) // as the program does
	h := newHookBench(b)
	for round := range h.rounds {
		for _, producers := range hookProducers() {
			if h.on("rate") {
				h.rates(b, producers)
			}
		}
		if h.on("drain") {
			h.drains(b)
		}
		if h.on("latency") {
			h.latencies(b)
		}
		if h.on("hang") {
			h.hangs(b)
		}
		h.progress("round %d of %d", round+1, h.rounds)
	}
	if h.on("held") {
		h.holds(b)
		h.progress("held rows")
	}
	if h.on("kill") {
		h.kills(b)
		h.progress("kills")
	}
	fmt.Print(h.table(b))
}

// What BenchmarkHooks is made of changes with the tests around it, and it is run by hand:
// this sees that it still runs to its end, on each database and beside River.
func TestTheBenchmarkOfHooksRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures, so not under the race detector")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$", "-test.bench=^BenchmarkHooks$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), "TILL_HOOKS_ROUNDS=1", "TILL_HOOKS_N=30", "TILL_HOOKS_PARTS=rate,drain,river")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{"SQLite: drain of a stored backlog", "events lost in the whole run"}
	if strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), "postgres") {
		want = append(want, "PostgreSQL: drain of a stored backlog", "River, PostgreSQL: drain of a stored backlog")
	}
	for _, row := range want {
		if !strings.Contains(string(out), "| "+row) {
			t.Errorf("the table has no row %q:\n%s", row, out)
		}
	}
}

// hookSlower is how many times fewer events a round has on PostgreSQL.
const hookSlower = 3

// hookBarer is how many times more bare posts there are in a round, so that it
// lasts long enough to be measured.
const hookBarer = 4

func hookProducers() []int { return []int{16, 128} }

// hookBench is a run.
type hookBench struct {
	rounds, n int
	parts     string
	began     time.Time
	sink      *hookSink
	bare      *bareHooks
	engines   []*hookEngine
	river     *hookRiver
	found     map[string][]float64       // by name, a figure a round
	took      map[string][]time.Duration // by name, of all rounds
	notes     []string
	lost      int
}

// hookEngine is Till on one kind of database.
type hookEngine struct {
	name   string
	n      int                 // events of a round
	place  func() store.Config // a new one each time
	rig    *hookRig
	body   []byte    // of an event
	bare   *store.DB // where rows are kept and nothing follows
	plain  *sql.DB   // the same on PostgreSQL, as any program speaks to it; nil: on SQLite
	alone  *hookRig  // its merchant has one healthy endpoint
	beside *hookRig  // and here one that hangs as well
}

func hookKnob(b *testing.B, name string, standard int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		b.Fatalf("%s %q cannot be used: give a number", name, text)
	}
	return n
}

func newHookBench(b *testing.B) *hookBench {
	b.Helper()
	h := &hookBench{
		rounds: hookKnob(b, "TILL_HOOKS_ROUNDS", 5), n: hookKnob(b, "TILL_HOOKS_N", 2700), parts: os.Getenv("TILL_HOOKS_PARTS"), began: time.Now(),
		found: map[string][]float64{}, took: map[string][]time.Duration{},
	}
	h.sink = startSink(b)
	h.engines = []*hookEngine{{name: "SQLite", n: h.n, place: func() store.Config { return storetest.SQLite(b, store.Checkout) }}}
	if err := storetest.Durable(); err != nil {
		h.notes = append(h.notes, fmt.Sprintf("Neither Till nor River was measured on PostgreSQL: %v", err))
	} else {
		h.engines = append(h.engines, &hookEngine{name: "PostgreSQL", n: max(h.n/hookSlower, 1), place: func() store.Config { return storetest.Postgres(b, store.Checkout) }})
	}
	for _, e := range h.engines {
		e.rig = newHookRig(b, e.place(), time.Now, 0)
		e.rig.endpoints(b, toldOfMoney, h.sink.hook)
		e.rig.endpoints(b, toldOfSessions, h.sink.hook, flow.SessionCreated)
		e.rig.run(b).rest(b)
		e.openBare(b)
	}
	body := h.body(b)
	for _, e := range h.engines {
		e.body = body
	}
	h.bare = newBareHooks(b, h.sink, body)
	if h.on("river") && len(h.engines) > 1 {
		h.river = startRiver(b, h)
	}
	h.warm(b)
	clear(h.found)
	return h
}

// warm runs a small round that counts for nothing.
func (h *hookBench) warm(b *testing.B) {
	b.Helper()
	const part = 4
	for _, e := range h.engines {
		whole := e.n
		e.n = max(whole/part, 1)
		defer func() { e.n = whole }()
	}
	for _, p := range hookProducers() {
		if h.on("rate") {
			h.rates(b, p)
		}
	}
}

// on says whether a part is run.
func (h *hookBench) on(part string) bool {
	return h.parts == "" || slices.Contains(strings.Split(h.parts, ","), part)
}

func (h *hookBench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(h.began).Seconds(), fmt.Sprintf(format, args...))
}

// add notes a figure of a round.
func (h *hookBench) add(value float64, format string, args ...any) {
	name := fmt.Sprintf(format, args...)
	h.found[name] = append(h.found[name], value)
	if os.Getenv("TILL_HOOKS_LOUD") != "" {
		h.progress("%s: %.2f", name, value)
	}
}

// median is the middle of the rounds.
func (h *hookBench) median(format string, args ...any) float64 {
	all := slices.Sorted(slices.Values(h.found[fmt.Sprintf(format, args...)]))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// note keeps how long something took, each time.
func (h *hookBench) note(took []time.Duration, format string, args ...any) {
	name := fmt.Sprintf(format, args...)
	h.took[name] = append(h.took[name], took...)
}

// at is a quantile over all rounds, in milliseconds.
func (h *hookBench) at(part float64, format string, args ...any) float64 {
	all := slices.Sorted(slices.Values(h.took[fmt.Sprintf(format, args...)]))
	if len(all) == 0 {
		return 0
	}
	return float64(all[int(part*float64(len(all)-1))].Microseconds()) / 1000
}

// body is what Till posts for a payment: the others post the same.
func (h *hookBench) body(b *testing.B) []byte {
	b.Helper()
	r := h.engines[0].rig
	r.prepare(b, toldOfMoney, 1)
	n := r.take(toldOfMoney, 1)[0]
	r.expect(1)
	must(b, r.settle(b.Context(), n))
	r.all(b)
	a, err := r.db.AttemptByReference(b.Context(), n.Reference)
	must(b, err)
	events, err := r.db.Events(b.Context(), a.Session)
	if err != nil || len(events) != 1 {
		b.Fatalf("a payment made the events %+v, %v", events, err)
	}
	return events[0].Body
}

// rates measures one round of everything that has a rate, one after the other.
func (h *hookBench) rates(b *testing.B, producers int) {
	b.Helper()
	bare, _ := h.bare.rate(b, producers, hookBarer*h.n)
	h.add(bare, "H %d", producers)
	for _, e := range h.engines {
		runtime.GC()
		h.add(e.commit(b, producers, e.n), "%s C %d", e.name, producers)
		for project, name := range map[string]string{toldNothing: "S", toldOfMoney: "SE"} {
			e.rig.prepare(b, project, e.n)
			money := e.rig.take(project, e.n)
			h.add(h.whole(b, e, producers, project == toldOfMoney, func(i int) error { return e.rig.settle(b.Context(), money[i]) }),
				"%s %s %d", e.name, name, producers)
		}
		h.add(h.whole(b, e, producers, true, func(i int) error { return e.rig.book(b.Context(), i, e.body) }), "%s E %d", e.name, producers)
		for project, name := range map[string]string{toldNothing: "O", toldOfSessions: "OE"} {
			h.add(h.whole(b, e, producers, project == toldOfSessions, func(i int) error {
				_, err := e.rig.open(b.Context(), project, i)
				return err
			}), "%s %s %d", e.name, name, producers)
		}
	}
	if h.river != nil {
		h.add(h.river.order(b, producers, h.river.n), "River %d", producers)
	}
}

// whole is the rate of a command; where it is told to somebody, until the last
// delivery is made and kept.
func (h *hookBench) whole(b *testing.B, e *hookEngine, producers int, told bool, do func(i int) error) float64 {
	b.Helper()
	h.sink.forget(b)
	runtime.GC()
	if told {
		e.rig.expect(e.n)
	}
	began := time.Now()
	atOnce(b, producers, e.n, do)
	if told {
		e.rig.all(b)
	}
	spent := time.Since(began)
	if told {
		h.complete(b, e.n)
	}
	return float64(e.n) / spent.Seconds()
}

// complete fails where an event did not come.
func (h *hookBench) complete(b *testing.B, want int) {
	b.Helper()
	got := h.sink.count(b)
	if got.Different < want {
		h.lost += want - got.Different
		b.Errorf("%d of %d events are lost", want-got.Different, want)
	}
	h.add(float64(got.All-got.Different), "duplicates")
}
