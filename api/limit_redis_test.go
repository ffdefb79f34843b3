package api

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow/await"
	"till/flow/redistest"
)

// server is a real Redis of the test's own, and a client that waits for it as long
// as a busy machine takes.
type server struct {
	*redis.Client

	at *redistest.Server
}

func startRedis(tb testing.TB) *server {
	tb.Helper()
	at := redistest.Start(tb)
	options := at.Options()
	options.ReadTimeout = await.Patience
	s := &server{Client: redis.NewClient(options), at: at}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// storm lets callers loose on limiters, as fast as they can, until it is over,
// and says how many got through, how long it took and what the slowest call took.
func storm(t *testing.T, lasts time.Duration, limit Limit, limiters ...*Limiter) (through int64, took, slowest time.Duration) {
	t.Helper()
	const callers = 64
	var passed, worst atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for i := range callers {
		wg.Go(func() {
			for time.Since(began) < lasts {
				at := time.Now()
				if limiters[i%len(limiters)].take(t.Context(), "k", limit).ok {
					passed.Add(1)
				}
				for spent := time.Since(at).Nanoseconds(); ; {
					if have := worst.Load(); spent <= have || worst.CompareAndSwap(have, spent) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	return passed.Load(), time.Since(began), time.Duration(worst.Load())
}

func TestManyCallersOfManyProcessesShareOneLimit(t *testing.T) {
	r := startRedis(t)
	limit := PerSecond(100)
	through, took, _ := storm(t, time.Second, limit, patient(t, r, time.Now), patient(t, r, time.Now), patient(t, r, time.Now))
	atMost(t, through, took+time.Millisecond, limit) // by Redis's clock, which is another
	if least := int64(limit.Burst); through < least {
		t.Errorf("%d got through, at least %d must", through, least)
	}
	if ttl := r.PTTL(t.Context(), "t:k").Val(); ttl <= 0 || ttl > 3*time.Second {
		t.Errorf("the bucket is kept for %v", ttl)
	}
	if n := r.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys in Redis for one bucket", n)
	}
}

func TestTheLimitOutlivesRedis(t *testing.T) {
	r := startRedis(t)
	limit := PerSecond(100)
	l := limiter(t, r, time.Now)
	killer := time.AfterFunc(500*time.Millisecond, func() { _ = r.at.Signal(os.Kill) }) // in the middle of the storm
	defer killer.Stop()
	through, took, slowest := storm(t, 1500*time.Millisecond, limit, l)
	atMost(t, through, took, limit)
	if through < int64(limit.Burst) {
		t.Errorf("only %d got through", through)
	}
	if slowest > 2*time.Second { // on a busy machine too; the client by itself waits for 3 s and more
		t.Errorf("somebody waited for %v", slowest)
	}
	if again, _ := l.takeThere(t.Context(), "k", limit); again.ok {
		t.Error("a dead Redis gave a token")
	}
}

func TestASlowRedisIsLeftAlone(t *testing.T) {
	r := startRedis(t)
	d := newDial()
	l := limiter(t, r, d.now)
	limit := Limit{PerSecond: 1000, Burst: 1000}
	name := ""
	await.Until(t, "Redis answers in time", func() bool { // on a busy machine it may be left alone already
		d.turn(redisRest)
		name += "k"
		got := l.take(t.Context(), name, limit)
		l.mu.Lock()
		defer l.mu.Unlock()
		return got.ok && l.now() >= l.rests
	})
	pause := func(wait time.Duration) {
		t.Helper()
		must(t, r.Do(t.Context(), "CLIENT", "PAUSE", wait.Milliseconds(), "ALL").Err())
	}
	pause(2 * time.Second)
	began := time.Now()
	if got := l.take(t.Context(), name, limit); !got.ok || got.left != 998 {
		t.Errorf("this process has counted two: %+v", got)
	}
	if spent := time.Since(began); spent < redisWait || spent > 20*redisWait {
		t.Errorf("the first waited for %v", spent)
	}
	began = time.Now()
	for range 100 { // Redis rests: the clock stands still
		if got := l.take(t.Context(), name, limit); !got.ok {
			t.Fatalf("%+v", got)
		}
	}
	if spent := time.Since(began); spent > 20*redisWait {
		t.Errorf("a hundred waited for %v although Redis is known to be slow", spent)
	}
	if err := r.Ping(t.Context()).Err(); err != nil { // waits until the pause is over
		t.Fatal(err)
	}
	await.Until(t, "Redis is asked again", func() bool {
		d.turn(redisRest)
		_, answered := l.takeThere(t.Context(), name, limit)
		return answered
	})
}

func TestAnEmptiedRedisLetsNobodyThroughTwice(t *testing.T) {
	for name, empty := range map[string]func(*server, context.Context) error{
		"FLUSHALL":     func(r *server, ctx context.Context) error { return r.FlushAll(ctx).Err() },
		"SCRIPT FLUSH": func(r *server, ctx context.Context) error { return r.ScriptFlush(ctx).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			r, d := startRedis(t), newDial()
			l := patient(t, r, d.now)
			limit := PerSecond(5)
			through := 0
			for range 30 {
				if l.take(t.Context(), "k", limit).ok {
					through++
				}
				must(t, empty(r, t.Context()))
			}
			if through != limit.Burst {
				t.Errorf("%d got through, the bucket holds %d", through, limit.Burst)
			}
			if _, answered := l.takeThere(t.Context(), "k", limit); !answered {
				t.Error("Redis is not asked any more")
			}
		})
	}
}

func TestWhatStandsInTheWayIsReplaced(t *testing.T) {
	r := startRedis(t)
	limit := PerSecond(5)
	for name, put := range map[string][]any{
		"a hash": {"HSET", "t:k", "full", "1"}, "a list": {"RPUSH", "t:k", "1"}, "a word": {"SET", "t:k", "full"}, "nothing": {"SET", "t:k", ""},
		"nan": {"SET", "t:k", "nan"}, "no end": {"SET", "t:k", "inf"}, "before": {"SET", "t:k", "-1e300"}, "far away": {"SET", "t:k", "1e300"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, r.FlushAll(t.Context()).Err())
			must(t, r.Do(t.Context(), put...).Err())
			d := newDial()
			l := patient(t, r, d.now)
			first, answered := l.takeThere(t.Context(), "k", limit)
			if !answered {
				t.Fatal("no answer")
			}
			if first.ok != (name != "far away" && name != "no end") {
				t.Errorf("%+v", first)
			}
			if !first.ok { // what looked empty for ever is empty now, and fills
				if first.wait > limit.step() {
					t.Errorf("it is empty for %v", first.wait)
				}
				await.Until(t, "it has a token", func() bool { return l.take(t.Context(), "k", limit).ok })
			} else if got := l.take(t.Context(), "k", limit); !got.ok {
				t.Errorf("%+v", got)
			}
			if ttl := r.PTTL(t.Context(), "t:k").Val(); ttl <= 0 || ttl > 3*time.Second {
				t.Errorf("it is kept for %v", ttl)
			}
		})
	}
}
