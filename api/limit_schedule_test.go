package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// oracle is a Redis that answers as it is told to, after as long as it is told
// to. It knows pipelines only, and no network.
type oracle struct {
	redis.UniversalClient

	mu    sync.Mutex
	delay time.Duration
	says  says
	asked int
}

// says is what an oracle answers.
type says int

const (
	everybody says = iota // gets a token, whatever there was
	nobody                // does
	nothing               // it is not there
	forgets               // the script is not known
)

var errAway = errors.New("the connection is refused")

// question is a pipeline to an oracle.
type question struct {
	redis.Pipeliner

	to    *oracle
	lines []line
}

// line asks for so many tokens of a bucket.
type line struct {
	*redis.Cmd

	size int64
	want int
}

func (o *oracle) Pipeline() redis.Pipeliner { return &question{to: o} }

func (q *question) Eval(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	l := line{Cmd: redis.NewCmd(ctx)}
	l.size, _ = args[1].(int64)
	l.want, _ = args[2].(int)
	q.lines = append(q.lines, l)
	return l.Cmd
}

func (q *question) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return q.Eval(ctx, sha, keys, args...)
}

func (q *question) Exec(ctx context.Context) ([]redis.Cmder, error) {
	q.to.mu.Lock()
	delay, words := q.to.delay, q.to.says
	q.to.asked++
	q.to.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		words = nothing
	}
	var err error
	for _, l := range q.lines {
		switch words {
		case everybody:
			l.SetVal([]any{int64(l.want), int64(0)})
		case nobody:
			l.SetVal([]any{int64(0), l.size})
		case nothing:
			err = errAway
		case forgets:
			err = redis.ErrNoScript
		}
		l.SetErr(err)
	}
	return nil, err
}

func (o *oracle) will(s says, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.says, o.delay = s, after
}

// times is how often it was asked.
func (o *oracle) times() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// prophecies is a limiter and the oracle that it asks.
func prophecies(t *testing.T, now func() time.Time) (*Limiter, *oracle) {
	t.Helper()
	o := &oracle{}
	return limiter(t, o, now), o
}

// scene is one part of a schedule: so many call at once, then time goes by.
type scene struct {
	callers int
	says    says
	after   time.Duration // until Redis says it; what is longer than redisWait, it never does
	pause   time.Duration
}

// play lets the callers of a schedule loose and says when each that got through did.
func play(ctx context.Context, l *Limiter, o *oracle, limit Limit, scenes []scene) []time.Time {
	var mu sync.Mutex
	var all sync.WaitGroup
	var passed []time.Time
	for _, at := range scenes {
		o.will(at.says, at.after)
		for range at.callers {
			all.Go(func() {
				if !l.take(ctx, "k", limit).ok {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				passed = append(passed, time.Now())
			})
		}
		time.Sleep(at.pause) // on the bubble's clock
	}
	all.Wait()
	slices.SortFunc(passed, time.Time.Compare)
	return passed
}

// tooMany finds a stretch of time in which more got through than the bucket
// holds and what came back meanwhile.
func tooMany(passed []time.Time, limit Limit) (n int, in time.Duration) {
	for i := range passed {
		for j := i; j < len(passed); j++ {
			in = passed[j].Sub(passed[i])
			if n = j - i + 1; n > limit.Burst+int(in/limit.step()) {
				return n, in
			}
		}
	}
	return 0, 0
}

// Whatever Redis says, late, never, or wrongly, and however often it goes and
// comes back: in no stretch of time do more get through than may. And who is
// refused costs nothing: afterwards the bucket fills to its brim.
func TestNoScheduleOverrunsTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := Limit{PerSecond: rapid.SampledFrom([]int{3, 20, 100, 1000}).Draw(rt, "rate"), Burst: rapid.IntRange(1, 40).Draw(rt, "burst")}
		pauses := []time.Duration{0, time.Microsecond, limit.step() - 1, limit.step(), redisWait, redisWait + time.Millisecond, limit.size(), redisRest}
		scenes := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) scene {
			return scene{
				callers: rapid.IntRange(0, 2*limit.Burst).Draw(rt, "callers"),
				says:    rapid.SampledFrom([]says{everybody, nobody, nothing, forgets}).Draw(rt, "says"),
				after:   rapid.SampledFrom([]time.Duration{0, time.Millisecond, redisWait - 1, redisWait, redisRest}).Draw(rt, "after"),
				pause:   rapid.SampledFrom(pauses).Draw(rt, "pause"),
			}
		}), 1, 12).Draw(rt, "scenes")
		var passed []time.Time
		var brim int
		synctest.Test(t, func(t *testing.T) {
			l, o := prophecies(t, time.Now)
			passed = play(t.Context(), l, o, limit, scenes)
			time.Sleep(limit.size() + redisRest) // on the bubble's clock
			o.will(everybody, 0)
			for l.take(t.Context(), "k", limit).ok {
				brim++
			}
		})
		if n, in := tooMany(passed, limit); n > 0 {
			rt.Fatalf("%d got through in %v", n, in)
		}
		if brim != limit.Burst {
			rt.Fatalf("a full bucket holds %d, want %d", brim, limit.Burst)
		}
	})
}

// A call that Redis refuses takes nothing, and gives nothing back: by the time
// that it hears, what it would have taken may have come back by itself.
func TestARefusalByRedisGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := prophecies(t, time.Now)
		limit := Limit{PerSecond: 100, Burst: 3}
		passed := play(t.Context(), l, o, limit, []scene{
			{callers: 3, says: nobody, after: redisWait - time.Millisecond, pause: redisWait - 2*time.Millisecond},
			{callers: 3, says: everybody, pause: 2 * time.Millisecond},
			{callers: 9, says: everybody},
		})
		if len(passed) != 3 {
			t.Errorf("%d got through, the bucket holds %d", len(passed), limit.Burst)
		}
	})
}

// Who looks at the clock before it has the lock may hold an old time by then,
// and whoever comes next is given what lies between once more.
func TestTheClockIsReadUnderTheLock(t *testing.T) {
	var l *Limiter
	d := newDial()
	looked := 0
	l = limiter(t, nil, func() time.Time {
		if l != nil {
			looked++
			if l.mu.TryLock() {
				l.mu.Unlock()
				t.Error("the clock is read outside the lock")
			}
		}
		return d.now()
	})
	l.take(t.Context(), "k", PerSecond(5))
	l.rest(t.Context(), errAway)
	if looked < 2 {
		t.Errorf("the clock was read %d times", looked)
	}
}

// A Redis that never answers is asked once, and then left alone for redisRest.
func TestARedisThatNeverAnswersIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := prophecies(t, time.Now)
		limit := PerSecond(1000)
		o.will(nothing, time.Hour)
		began := time.Now()
		for range 100 {
			if !l.take(t.Context(), "k", limit).ok {
				t.Fatal("refused because Redis does not answer")
			}
		}
		if spent := time.Since(began); spent != redisWait {
			t.Errorf("a hundred waited for %v", spent)
		}
		if o.times() != 1 {
			t.Errorf("Redis was asked %d times", o.times())
		}
		o.will(nobody, 0)
		time.Sleep(redisRest - 1) // on the bubble's clock
		if !l.take(t.Context(), "k", limit).ok || o.times() != 1 {
			t.Errorf("Redis was asked %d times before its rest was over", o.times())
		}
		time.Sleep(time.Nanosecond) // on the bubble's clock
		if l.take(t.Context(), "k", limit).ok || o.times() != 2 {
			t.Errorf("Redis was asked %d times after its rest", o.times())
		}
	})
}

// However long Redis is away, and however often it answers in between, the log has a
// line when this process counts alone, and one when all count together again.
func TestTheLogHasOneLineOfARedisThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := prophecies(t, time.Now)
		var log bytes.Buffer
		l.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		limit := PerSecond(1000)
		goesBy := func(seconds int, says func(second int) says) {
			for s := range seconds {
				o.will(says(s), 0)
				l.take(t.Context(), "k", limit)
				synctest.Wait()
				time.Sleep(redisRest) // on the bubble's clock
			}
		}
		lines := func(alone, together int) {
			t.Helper()
			if a, b := strings.Count(log.String(), "by this process alone"), strings.Count(log.String(), "by all processes together again"); a != alone || b != together {
				t.Errorf("%d lines say that it counts alone, %d that all count together; %d and %d should:\n%s", a, b, alone, together, &log)
			}
		}
		goesBy(600, func(int) says { return nothing })
		lines(1, 0)
		goesBy(600, func(s int) says { return []says{everybody, nothing}[s%2] })
		lines(1, 0)
		goesBy(60, func(int) says { return everybody })
		lines(1, 1)
		goesBy(60, func(int) says { return nothing })
		lines(2, 1)
	})
}
