//go:build linux

package load

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/benchtest"
)

// The rhythm of a soak.
const (
	soakFault  = 30 * time.Second // one of the faults begins
	soakHurts  = 4 * time.Second  // and lasts so long
	soakLook   = 10 * time.Second // memory and the like are looked at
	soakProof  = time.Minute      // the ledger is proven
	soakChats  = 100              // open chats
	soakSays   = 5                // messages a second in them
	soakSettle = 8 * time.Minute  // for what the last faults left behind
	soakTries  = 60               // of one step, a second apart
	soakRound  = 4 * soakFault    // each fault once, and rest between them
)

// soak is a service under steady load with a fault every half minute.
type soak struct {
	*world

	lasts    time.Duration
	rate     float64
	began    time.Time
	samples  []sample
	faults   map[string]int
	proofs   int
	broken   []string
	again    atomic.Int64 // steps that were done again
	given    atomic.Int64 // checkouts that were given up
	unheard  atomic.Int64 // chat messages without an answer
	messages atomic.Int64
	longest  time.Duration // that a proof took
}

// sample is what one look found.
type sample struct {
	at                   time.Duration
	rss, heap, live, wal float64 // MiB
	goroutines, descript float64
}

// BenchmarkSoak runs the service for TILL_SOAK (30m) at TILL_SOAK_RATE (100)
// checkouts a second: make soak.
func BenchmarkSoak(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	s := &soak{lasts: soakTime(b), rate: soakRate(b), faults: map[string]int{}}
	where := benchtest.Machine(b)
	s.world = newWorld(b, settings{limit: 1_000_000, chat: true})
	list := s.chatters(b, soakChats, 50)
	progress("soak: %s at %.0f checkouts/s and %d messages/s in %d chats, a fault every %s", s.lasts, s.rate, soakSays, soakChats, soakFault)
	s.began = time.Now()
	ctx, stop := context.WithTimeout(context.Background(), s.lasts)
	defer stop()
	var beside sync.WaitGroup
	for _, f := range []func(context.Context){s.hurt, s.watch, s.prove} {
		beside.Go(func() { f(ctx) })
	}
	beside.Go(func() {
		pace(soakSays, int(s.lasts.Seconds()*soakSays), soakChats, func(i int) error {
			s.messages.Add(1)
			if _, err := list[i%soakChats].turn("menu"); err != nil {
				s.unheard.Add(1)
			}
			return nil
		})
	})
	load := pace(s.rate, int(s.rate*s.lasts.Seconds()), 8192, func(i int) error { return s.checkout(i) })
	beside.Wait()
	s.heal(context.Background())
	s.report(b, where, load)
}

func soakTime(b *testing.B) time.Duration {
	b.Helper()
	text := os.Getenv("TILL_SOAK")
	if text == "" {
		return 30 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute {
		b.Fatalf("TILL_SOAK %q cannot be used: give a minute or more, as 30m", text)
	}
	return d
}

func soakRate(b *testing.B) float64 {
	b.Helper()
	text := os.Getenv("TILL_SOAK_RATE")
	if text == "" {
		return 100
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || rate < 1 || rate > 10_000 {
		b.Fatalf("TILL_SOAK_RATE %q cannot be used: give checkouts a second, as 100", text)
	}
	return rate
}

// checkout is one that does not give up: a step that fails is done again, as a
// merchant would.
func (s *soak) checkout(i int) error {
	var session string
	err := s.repeated(func(ctx context.Context) (err error) {
		session, _, err = s.open(ctx, i, "headless")
		return err
	})
	if err == nil {
		err = s.repeated(func(ctx context.Context) error { return s.transfer(ctx, i, session) })
	}
	if err != nil {
		s.given.Add(1)
	}
	return err
}

func (s *soak) repeated(do func(ctx context.Context) error) (err error) {
	for range soakTries {
		ctx, cancel := context.WithTimeout(context.Background(), tilltest.Patience)
		err = do(ctx)
		cancel()
		if err == nil {
			return nil
		}
		s.again.Add(1)
		time.Sleep(time.Second) // a merchant's program waits before it asks again
	}
	return err
}

// hurt has one fault after the other.
func (s *soak) hurt(ctx context.Context) {
	tick := time.NewTicker(soakFault)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name := []string{"endpoints down", "Redis emptied", "bank hangs", "number dropped"}[i%4]
		s.faults[name]++
		switch i % 4 {
		case 0:
			s.relay.down.Store(true)
		case 1:
			s.flush()
			continue
		case 2:
			s.conditions(ctx, map[string]any{"timeoutAfterCommit": true})
		case 3:
			if d, ok := s.linked.Device(1); ok {
				d.Drop()
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(soakHurts):
		}
		s.heal(context.WithoutCancel(ctx))
	}
}

// heal ends what hurts.
func (s *soak) heal(ctx context.Context) {
	s.relay.down.Store(false)
	s.conditions(ctx, map[string]any{"timeoutAfterCommit": false})
}

func (s *soak) conditions(ctx context.Context, c map[string]any) {
	if err := s.call(ctx, http.MethodPut, "http://"+s.bankAt+"/bank/test/conditions", "", c, nil); err != nil && ctx.Err() == nil {
		progress("  the bank does not take its conditions: %v", err)
	}
}

func (s *soak) flush() {
	if s.redis == nil {
		return
	}
	if err := s.redis.Client.FlushAll(context.Background()).Err(); err != nil {
		progress("  Redis was not emptied: %v", err)
	}
}

// watch looks at what must not grow.
func (s *soak) watch(ctx context.Context) {
	tick := time.NewTicker(soakLook)
	defer tick.Stop()
	wal := 0.0 // the largest so far
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		g := s.gauges(ctx)
		if g == nil {
			continue // the load is over, or Till is
		}
		// Who asks opens connections as it waits for answers: those are its own.
		asked := g["till_http_connections"]
		x := sample{
			at: time.Since(s.began), rss: s.till.rss(), heap: s.till.heap(), wal: s.largestWAL(),
			live:       g["go_memstats_next_gc_bytes"] / (1 + g["go_gc_gogc_percent"]/100) / (1 << 20),
			goroutines: g["go_goroutines"] - asked, descript: float64(s.till.descriptors()) - asked,
		}
		s.samples, wal = append(s.samples, x), max(wal, x.wal)
		if len(s.samples)%6 == 0 {
			progress("  %s: %d paid, %d webhooks, RSS %s (heap %s), %.0f goroutines, %.0f descriptors, WAL at most %s, %d steps done again, %d given up",
				x.at.Round(time.Second), s.paid.Load(), s.relay.arrived.Load(), mib(x.rss), mib(x.heap), x.goroutines, x.descript, mib(wal), s.again.Load(), s.given.Load())
		}
	}
}

// largestWAL is the size of the largest write-ahead log, in MiB.
func (s *soak) largestWAL() (most float64) {
	files, _ := filepath.Glob(filepath.Join(s.dir, "data", "*-wal"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			most = max(most, float64(info.Size())/(1<<20))
		}
	}
	return most
}

// gauges are what Till's metrics say; nil where they say nothing.
func (s *soak) gauges(ctx context.Context) map[string]float64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metricsAt+"/metrics", http.NoBody)
	if err != nil {
		return nil
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return all
}

// prove proves the ledger while everything goes on.
func (s *soak) prove(ctx context.Context) {
	tick := time.NewTicker(soakProof)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		text, holds := s.proven()
		s.proofs++
		s.longest = max(s.longest, time.Since(began))
		if !holds {
			s.broken = append(s.broken, text)
			progress("  the ledger is not proven:\n%s", text)
		}
	}
}

// slope is by how much a figure grows in an hour, by least squares over the least that
// was seen of it in each round of faults after the first third: what a fault adds goes
// again with it, and what leaks stays. give is twice the standard error of that, by how
// far the rounds lie off the line: no run tells a smaller growth from none.
func (s *soak) slope(of func(sample) float64) (grows, give float64) {
	type point struct{ x, y float64 }
	var points []point
	var x, y float64
	for from := s.lasts / 3; from < s.lasts; from += soakRound {
		var list []float64
		for _, one := range s.samples {
			if one.at >= from && one.at < from+soakRound {
				list = append(list, of(one))
			}
		}
		if len(list) > 0 {
			points = append(points, point{from.Hours(), slices.Min(list)})
			x, y = x+points[len(points)-1].x, y+points[len(points)-1].y
		}
	}
	n := float64(len(points))
	if n < 3 {
		return 0, math.Inf(1)
	}
	var xx, xy, off float64
	for _, p := range points {
		xx, xy = xx+(p.x-x/n)*(p.x-x/n), xy+(p.x-x/n)*(p.y-y/n)
	}
	grows = xy / xx
	for _, p := range points {
		d := p.y - y/n - grows*(p.x-x/n)
		off += d * d
	}
	return grows, 2 * math.Sqrt(off/(n-2)/xx)
}

// report waits for what is on its way and prints the table.
func (s *soak) report(b *testing.B, where string, load *offered) {
	b.Helper()
	progress("the load is over; waiting for webhooks that are tried again")
	ended := time.Now()
	for time.Since(ended) < soakSettle && s.relay.arrived.Load() < s.paid.Load() {
		time.Sleep(time.Second) // between two looks
	}
	t := newTable()
	t.Promise("checkouts offered, paid, told by webhook", fmt.Sprintf("%d at %.0f/s, %d, %d", load.Count+load.Missed, s.rate, s.paid.Load(), s.relay.arrived.Load()), "all",
		s.paid.Load() == s.relay.arrived.Load() && int64(load.Count+load.Missed) == s.paid.Load())
	t.Add("steps done again; checkouts given up, not begun; webhooks that came twice", fmt.Sprintf("%d; %d, %d; %d", s.again.Load(), s.given.Load(), load.Missed, s.relay.twice()), "")
	t.Add("create → transfer made, from the moment it was due", fmt.Sprintf("p50 %s, p99 %s, highest %s", ms(load.Took.at(0.5)), ms(load.Took.at(0.99)), ms(load.Took.at(1))), "")
	t.Promise("chat messages, unanswered", fmt.Sprintf("%d, %d", s.messages.Load(), s.unheard.Load()), "0", s.unheard.Load() == 0)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		names = append(names, fmt.Sprintf("%d × %s", s.faults[name], name))
	}
	t.Add("faults", strings.Join(names, ", "), "")
	for _, g := range []struct {
		name, goal string
		most       float64
		of         func(sample) float64
	}{
		{"RSS with what of the database's files is mapped, at most 256 MiB of each; MiB", "≤ 1 MiB/h", 1, func(x sample) float64 { return x.rss }},
		{"of that no file's, MiB", "≤ 1 MiB/h", 1, func(x sample) float64 { return x.heap }},
		{"objects in use after a collection, MiB", "≤ 1 MiB/h", 1, func(x sample) float64 { return x.live }},
		{"goroutines without those of callers' connections", "flat: ≤ 20/h", 20, func(x sample) float64 { return x.goroutines }},
		{"descriptors without those", "flat: ≤ 20/h", 20, func(x sample) float64 { return x.descript }},
	} {
		grows, give := s.slope(g.of)
		t.Judge(g.name+": middle of the second third, of the last, slope of the least of each round of faults after the first",
			fmt.Sprintf("%.0f, %.0f, %+.1f ± %.1f/h", s.middle(1, g.of), s.middle(2, g.of), grows, give), "", g.goal, grows-give <= g.most)
	}
	wal := 0.0
	for _, x := range s.samples {
		wal = max(wal, x.wal)
	}
	t.Promise("largest WAL", mib(wal), "≤ 64 MiB", wal <= 64)
	text, holds := s.proven()
	t.Promise("ledger proven beside the load, and after it", fmt.Sprintf("%d times, longest %s; %s", s.proofs, s.longest.Round(time.Millisecond), firstLine(text, "I3 rail")), "holds", holds && len(s.broken) == 0)
	fmt.Printf("\n%s\nSoak of %s: till serve, till bank and Redis as processes, the network and who asks in another.\n\n%s\n", where, s.lasts, t.Text())
	if err := t.Broken(); err != nil {
		b.Error(err)
	}
	if len(s.broken) > 0 {
		b.Errorf("the ledger was not proven %d of %d times: %s", len(s.broken), s.proofs, strings.Join(s.broken, "\n"))
	}
}

// middle is the median of a figure in one third of the run.
func (s *soak) middle(third int, of func(sample) float64) float64 {
	var all []float64
	for _, x := range s.samples {
		if int(3*x.at/(s.lasts+1)) == third {
			all = append(all, of(x))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// What leaks is told from what a fault adds and takes away again, and what comes by
// chance from a growth.
func TestASoakTellsALeakFromItsFaults(t *testing.T) {
	for _, leaks := range []float64{0, 30} {
		s := &soak{lasts: 30 * time.Minute}
		for at := soakLook; at < s.lasts; at += soakLook {
			fault := float64(at % soakRound / soakLook)                                       // from 0 to 11
			chance := []float64{1, 0, 2, 1, 3, 0, 1, 2, 0, 3, 1, 0, 2, 2, 1}[at/soakRound%15] // of each round
			s.samples = append(s.samples, sample{at: at, live: 100 + fault + chance/4 + leaks*at.Hours()})
		}
		grows, give := s.slope(func(x sample) float64 { return x.live })
		if told := grows-give > 1; told != (leaks > 0) || grows < leaks-give || grows > leaks+give {
			t.Errorf("of %.0f MiB/h it finds %+.1f ± %.1f", leaks, grows, give)
		}
	}
	short := &soak{lasts: 3 * time.Minute, samples: []sample{{at: 2 * time.Minute}}}
	if grows, give := short.slope(func(x sample) float64 { return x.live }); grows-give > 1 {
		t.Errorf("of one look it finds %+.1f ± %.1f", grows, give)
	}
}
