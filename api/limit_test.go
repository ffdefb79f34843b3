package api

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"till/flow/await"
)

// dial is a clock that is turned by hand.
type dial struct{ micros atomic.Int64 }

func newDial() *dial {
	d := &dial{}
	d.micros.Store(1_800_000_000_000_000)
	return d
}

func (d *dial) now() time.Time       { return time.UnixMicro(d.micros.Load()) }
func (d *dial) turn(t time.Duration) { d.micros.Add(t.Microseconds()) }

func limiter(t *testing.T, client redis.UniversalClient, now func() time.Time) *Limiter {
	t.Helper()
	l, err := NewLimiter(LimiterConfig{Redis: client, Prefix: "t:", Test: PerSecond(5), Live: PerSecond(10), Address: PerSecond(5), Now: now})
	must(t, err)
	return l
}

// patient is a limiter that waits for Redis for as long as a busy machine takes:
// none of its calls is counted by the process alone.
func patient(t *testing.T, client redis.UniversalClient, now func() time.Time) *Limiter {
	t.Helper()
	l := limiter(t, client, now)
	l.wait = await.Patience
	return l
}

// inside is a Redis inside the test, on the test's clock.
func inside(t *testing.T, d *dial) (*miniredis.Miniredis, redis.UniversalClient) {
	t.Helper()
	m := miniredis.RunT(t)
	m.SetTime(d.now())
	client := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true, ReadTimeout: await.Patience})
	t.Cleanup(func() { _ = client.Close() })
	return m, struct{ *redis.Client }{client} // whose own patience is left as it is
}

func TestABucketEmptiesAndFills(t *testing.T) {
	d := newDial()
	l := limiter(t, nil, d.now)
	limit := PerSecond(5) // ten at once
	take := func(ok bool, left int, reset, wait time.Duration) {
		t.Helper()
		got := l.take(t.Context(), "k", limit)
		if want := (taken{ok, limit, left, reset, wait}); got != want {
			t.Errorf("want %+v, got %+v", want, got)
		}
	}
	const step = 200 * time.Millisecond
	for i := range 9 {
		take(true, 9-i, time.Duration(i+1)*step, 0)
	}
	take(true, 0, 10*step, step)
	take(false, 0, 10*step, step)
	d.turn(step - time.Microsecond)
	take(false, 0, 9*step+time.Microsecond, time.Microsecond)
	d.turn(time.Microsecond)
	take(true, 0, 10*step, step)
	d.turn(3 * step)
	take(true, 2, 8*step, 0)
	d.turn(time.Hour) // never more than it holds
	take(true, 9, step, 0)
	d.turn(-time.Hour) // a clock that is put back takes nothing away, and goes on from there
	take(true, 8, 2*step, 0)
	d.turn(step)
	take(true, 8, 2*step, 0)
}

// Nobody gets more calls a second than was said, for all that time is whole
// microseconds.
func TestNoRateIsRoundedUp(t *testing.T) {
	for _, rate := range []int{1, 3, 7, 50, 700, 99_999, 300_000, 600_000, maxRate} {
		d := newDial()
		l, limit := limiter(t, nil, d.now), Limit{PerSecond: rate, Burst: 1}
		if !l.take(t.Context(), "k", limit).ok {
			t.Fatalf("%d: the first is refused", rate)
		}
		d.turn(time.Second / time.Duration(rate))
		early := time.Second%(time.Duration(rate)*time.Microsecond) != 0 // what was turned is less than a call's share
		if got := l.take(t.Context(), "k", limit); got.ok == early {
			t.Errorf("%d: %+v", rate, got)
		}
	}
}

// The script in Redis and the count in this process are the same arithmetic.
func TestRedisCountsAsThisProcessDoes(t *testing.T) {
	d := newDial()
	m, client := inside(t, d)
	alone, shared := limiter(t, nil, d.now), patient(t, client, d.now)
	dice := rand.New(rand.NewPCG(1, 2))
	limits := map[string]Limit{"a": PerSecond(5), "b": PerSecond(3), "c": {PerSecond: 100, Burst: 7}, "d": PerSecond(1)}
	for i := range 2000 {
		name := string(rune('a' + dice.IntN(4)))
		want := alone.take(t.Context(), name, limits[name])
		got, answered := shared.takeThere(t.Context(), name, limits[name])
		if !answered {
			t.Fatal("no answer")
		}
		if got != want {
			t.Fatalf("%d %s: want %+v, got %+v", i, name, want, got)
		}
		d.turn(time.Duration(dice.IntN(150_000)) * time.Microsecond)
		m.SetTime(d.now())
	}
	for _, key := range m.Keys() {
		if ttl := m.TTL(key); ttl <= 0 || ttl > 3*time.Second {
			t.Errorf("%s is kept for %v", key, ttl)
		}
	}
}

// atMost fails when more got through than the limit allows: what the bucket
// held, and what came back meanwhile.
func atMost(t *testing.T, through int64, took time.Duration, limit Limit) {
	t.Helper()
	if most := int64(limit.Burst) + int64(took/limit.step()); through > most {
		t.Errorf("%d got through in %v, at most %d may", through, took, most)
	}
}

// Calls that wait together ask together, and each gets its own answer.
func TestCallsShareAQuestion(t *testing.T) {
	d := newDial()
	m, client := inside(t, d)
	l := patient(t, client, d.now)
	limit := PerSecond(5)
	asks := make([]*ask, 0, 18)
	for i := range 15 {
		asks = append(asks, &ask{name: fmt.Sprint(i % 2), limit: limit, answer: make(chan taken, 1)})
	}
	asks = append(asks, &ask{name: "0", limit: limit, answer: make(chan taken, 1)}, &ask{name: "0", limit: limit, answer: make(chan taken, 1)}, &ask{name: "0", limit: limit, answer: make(chan taken, 1)})
	l.question(t.Context(), asks)
	left := map[string]int{"0": 10, "1": 10}
	for _, one := range asks {
		got, answered := <-one.answer
		if !answered {
			t.Fatal("no answer")
		}
		if want := left[one.name] > 0; got.ok != want {
			t.Errorf("want %v, got %+v", want, got)
		}
		left[one.name] = max(left[one.name]-1, 0)
		if got.left != left[one.name] {
			t.Errorf("want %d left, got %+v", left[one.name], got)
		}
	}
	if n := len(m.Keys()); n != 2 {
		t.Errorf("%d keys for two buckets", n)
	}
}

func TestAFloodOfAddressesIsForgotten(t *testing.T) {
	d := newDial()
	l := limiter(t, nil, d.now)
	limit := PerSecond(1)
	for i := range 5 * maxBuckets {
		l.takeHere(strconv.Itoa(i), limit, true)
		l.takeHere("used all the time", limit, true)
	}
	if n := len(l.buckets) + len(l.older); n > maxBuckets {
		t.Errorf("%d buckets are remembered, at most %d may be", n, maxBuckets)
	}
	if l.takeHere("used all the time", limit, true).ok {
		t.Error("a bucket in use was forgotten")
	}
}

func TestALimiterWantsSenseInItsLimits(t *testing.T) {
	good := LimiterConfig{Test: PerSecond(1), Live: PerSecond(1), Address: PerSecond(1), Now: time.Now}
	for name, wrong := range map[string]func(*LimiterConfig){
		"no limit": func(c *LimiterConfig) { c.Test = Limit{} }, "below nothing": func(c *LimiterConfig) { c.Live.PerSecond = -1 },
		"too high": func(c *LimiterConfig) { c.Address.PerSecond = maxRate + 1 }, "no burst": func(c *LimiterConfig) { c.Live.Burst = 0 },
		"no clock": func(c *LimiterConfig) { c.Now = nil },
	} {
		c := good
		wrong(&c)
		if _, err := NewLimiter(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := NewLimiter(good); err != nil {
		t.Error(err)
	}
}
