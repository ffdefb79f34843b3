package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// The work that goes on while Till is killed.
const (
	merchants = 5
	payers    = 3
	// earlyKills is how many of a hundred kills come while Till starts.
	earlyKills = 10
	// drained is how long everything may take to come to its end when the kills
	// are over.
	drained = 150 * time.Second
	// inVain is how much longer is waited for who waits for that long.
	inVain = 20 * time.Second
	// readySoon is how long a start may take, each of them.
	readySoon = 2 * time.Second
)

// sweep is what one row of kills came to.
type sweep struct {
	on       string
	kills    int
	early    int
	acks     int
	replies  int // of acknowledged calls that were compared
	checks   int // by the ledger's own check
	sessions int
	chats    int // of the sessions
	money    int // movements at the bank
	hooks    int
	again    int // webhooks that came more than once
	lost     int
	doubled  int
	other    int
	ready    []time.Duration
}

// BenchmarkCrash kills Till under load as often as TILL_CRASH_KILLS says, four
// times of five on SQLite, and prints one table.
func BenchmarkCrash(b *testing.B) {
	kills := asked(b, "TILL_CRASH_KILLS", 100, 5, 100_000)
	seed := uint64(time.Now().UnixNano())
	progress("%d kills, seed %d", kills, seed)
	onPostgres := kills / 5
	rows := make([]sweep, 2)
	var group sync.WaitGroup // both at once: a number on PostgreSQL waits long for the lease of the dead
	group.Go(func() { rows[0] = swept(b, "SQLite", kills-onPostgres, seed, atRandom) })
	group.Go(func() {
		rows[1] = swept(b, "PostgreSQL", onPostgres, seed+1, atRandom, "TILL_DATABASE_URL="+ownDatabase(b, "crash"))
	})
	group.Wait()
	if rows[0].on == "" || rows[1].on == "" {
		b.FailNow() // one of them did not come to its end, and said why
	}
	table(rows)
}

// asked is the number that an environment variable asks for.
func asked(tb testing.TB, variable string, usual, least, most int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		tb.Fatalf("%s is %q, not a number from %d to %d", variable, text, least, most)
	}
	return n
}

// killing is one kill of many: when it returns no process of Till runs.
type killing func(s *shop, n int, random *rand.Rand, out *sweep)

// atRandom kills at any moment, some while Till starts.
func atRandom(s *shop, _ int, random *rand.Rand, out *sweep) {
	if random.IntN(100) < earlyKills { // before it is ready, and then again
		s.w.p.Kill()
		s.w.start()
		time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
		out.early++
	} else {
		time.Sleep(20*time.Millisecond + time.Duration(random.Int64N(int64(1980*time.Millisecond))))
	}
	s.w.p.Kill()
}

// swept kills Till so many times.
func swept(tb testing.TB, on string, kills int, seed uint64, kill killing, env ...string) sweep {
	tb.Helper()
	w := newWorld(tb, env...)
	s := &shop{w: w, sales: map[string]sale{}, paydays: make(chan string, kills)}
	a := &audit{w: w, shop: s, sink: newSink(w), ended: map[string]string{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	work := s.work(ctx, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	out := sweep{on: on, kills: kills}
	for n := range kills {
		kill(s, n, random, &out)
		began := time.Now()
		w.start()
		if !await.Within(tilltest.Patience, w.ready) {
			tb.Fatalf("Till never got ready after kill %d:\n%s", n+1, w.p.Said())
		}
		out.ready = append(out.ready, time.Since(began))
		a.after(random)
		if (n+1)%10 == 0 {
			progress("%s: %d of %d kills, %d acknowledged, lost %d, doubled %d", on, n+1, kills, len(w.journal.all), w.count("lost"), w.count("doubled"))
		}
	}
	stop()
	if !await.Within(drained+inVain, func() bool { // a payer who waits in vain says for what
		select {
		case <-work:
			return true
		default:
			return false
		}
	}) {
		tb.Fatalf("%s: the work did not end; Till said:\n%s", on, w.p.Said())
	}
	progress("%s: everything comes to its end", on)
	a.end()
	out.acks, out.replies, out.checks = len(w.journal.all), a.compared, a.checks
	out.sessions, out.money = len(s.sales), a.movements
	for _, one := range s.all() {
		if one.chat {
			out.chats++
		}
	}
	times, different := a.sink.taken()
	out.hooks, out.again = different, times-different
	out.lost, out.doubled = w.count("lost"), w.count("doubled")
	for kind := range w.found {
		if kind != "lost" && kind != "doubled" {
			out.other += w.count(kind)
		}
	}
	// Tests run beside others, and speed is not theirs to judge.
	if _, alone := tb.(*testing.B); alone && at(out.ready, 100) > readySoon {
		w.wrong("slow", "a start took %s", at(out.ready, 100))
	}
	w.verdict()
	w.p.Kill()
	return out
}

// work has merchants and payers work until the context ends; what it returns is
// closed when all have come to the end of what they were about.
func (s *shop) work(ctx context.Context, seed uint64) <-chan struct{} {
	var group sync.WaitGroup
	for n := range merchants {
		group.Go(func() { s.sell(ctx, n, rand.New(rand.NewPCG(seed, uint64(n+1)))) })
	}
	for n := range payers {
		group.Go(func() { s.pay(ctx, n, rand.New(rand.NewPCG(seed, uint64(n+1001)))) })
	}
	group.Go(func() { s.payOuts(ctx) })
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

// at is the value below which so many of a hundred are.
func at(list []time.Duration, percent int) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)*percent/100].Round(time.Millisecond)
}

// table prints the rows.
func table(rows []sweep) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "store\tkills\tin the start\tacknowledged\tcompared again\tledger checks\tsessions\tin chats\tmovements\tlost\tdoubled\tother\tready p50\tp99\tmax\twebhooks\tcame again\tfor each kill\t")
	for _, r := range rows {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%d.%02d\t\n", r.on, r.kills+r.early, r.early, r.acks, r.replies, r.checks,
			r.sessions, r.chats, r.money, r.lost, r.doubled, r.other, at(r.ready, 50), at(r.ready, 99), at(r.ready, 100), r.hooks, r.again,
			r.again/(r.kills+r.early), r.again*100/(r.kills+r.early)%100)
	}
	_ = out.Flush()
}
