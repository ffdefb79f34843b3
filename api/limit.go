package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The bounds of counting.
const (
	redisWait  = 50 * time.Millisecond // how long an answer of Redis is waited for
	redisRest  = time.Second           // how long Redis is not asked after it failed
	redisCalm  = 10 * time.Second      // how long it has to answer until it is said to be back
	maxBuckets = 16 << 10              // that this process remembers
	maxWaiting = 4096                  // calls that wait for Redis at once
	maxRate    = 1_000_000             // a second
)

// Limit is a token bucket: Burst calls at once, and PerSecond of them come back
// every second.
type Limit struct{ PerSecond, Burst int }

// PerSecond is a limit with the usual burst: twice as many at once.
func PerSecond(n int) Limit {
	n = min(max(n, 1), maxRate)
	return Limit{PerSecond: n, Burst: 2 * n}
}

// step is how long one call takes to come back: whole microseconds, as Redis
// counts them, and rounded up, so that never more than PerSecond come back.
func (l Limit) step() time.Duration {
	const second = int(time.Second / time.Microsecond)
	return time.Duration((second+l.PerSecond-1)/l.PerSecond) * time.Microsecond
}

// size is how long an empty bucket takes to be full again.
func (l Limit) size() time.Duration { return l.step() * time.Duration(l.Burst) }

// state is what a bucket with this much missing looks like to a call.
func (l Limit) state(ok bool, missing time.Duration) taken {
	return taken{
		ok: ok, limit: l, left: int((l.size() - missing) / l.step()),
		reset: missing, wait: max(missing-l.size()+l.step(), 0),
	}
}

// taken is what became of one call's token.
type taken struct {
	ok    bool
	limit Limit
	left  int
	reset time.Duration // until the bucket is full
	wait  time.Duration // until there is a token, 0 where there is one
}

// LimiterConfig is what a Limiter is made of.
type LimiterConfig struct {
	// Redis is where all processes count together; nil where there is but one.
	Redis redis.UniversalClient
	// Prefix begins the names of the keys in Redis.
	Prefix string
	// Test and Live are for each key of an environment, Address for each address
	// that calls without a key that holds, or with a public one alone.
	Test, Live, Address Limit
	Now                 func() time.Time
	Log                 *slog.Logger
}

// Limiter counts calls. One is let through where this process's bucket has a
// token and Redis does not object; then, and only then, it costs that token. So
// Redis may be away, slow, emptied or wrong, and come back: from one process,
// never more get through than the bucket holds and what came back meanwhile
// (save for a name that was forgotten for more than maxBuckets/2 others), and
// nobody waits for longer than redisWait.
type Limiter struct {
	cfg  LimiterConfig
	wait time.Duration // redisWait

	mu      sync.Mutex
	read    time.Time                // what the clock said last
	age     time.Duration            // how far it went on since the limiter was made
	buckets map[string]time.Duration // the latest used: at which age each will be full
	older   map[string]time.Duration // those used before; forgotten when buckets are many again
	waiting []*ask                   // for the next question to Redis
	asking  bool
	rests   time.Duration // Redis is not asked before this age
	alone   bool          // Redis was away, and is not said to be back: the log has a line for each change
}

// ask is one call that waits for Redis.
type ask struct {
	name   string
	limit  Limit
	answer chan taken // closed where there is none
}

// NewLimiter makes a Limiter.
func NewLimiter(c LimiterConfig) (*Limiter, error) {
	for _, l := range []Limit{c.Test, c.Live, c.Address} {
		if l.PerSecond < 1 || l.PerSecond > maxRate || l.Burst < 1 || l.Burst > 2*maxRate {
			return nil, errors.New("make the limiter: a limit must be from 1 to 1000000 a second")
		}
	}
	if c.Now == nil {
		return nil, errors.New("make the limiter: a clock is missing")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if one, ok := c.Redis.(*redis.Client); ok {
		c.Redis = one.WithTimeout(redisWait) // the same connections, less patience
	}
	return &Limiter{cfg: c, wait: redisWait, read: c.Now(), buckets: map[string]time.Duration{}}, nil
}

// take takes a token of a bucket.
func (l *Limiter) take(ctx context.Context, name string, limit Limit) taken {
	if l.cfg.Redis == nil {
		return l.takeHere(name, limit, true)
	}
	if own := l.takeHere(name, limit, false); !own.ok {
		return own
	}
	all, answered := l.takeThere(ctx, name, limit)
	if answered && !all.ok {
		return all
	}
	// Taken now and not before Redis was asked: a token that is given back may
	// have come back by itself meanwhile, and would be there twice.
	own := l.takeHere(name, limit, true)
	if answered && own.ok {
		own.left, own.reset = min(own.left, all.left), max(own.reset, all.reset)
	}
	return own
}

// takeHere takes a token of this process's own bucket, or only says whether
// there is one where it is not to be spent. A bucket is one number, the age at which it will be
// full: each token moves that a step away.
func (l *Limiter) takeHere(name string, limit Limit, spend bool) taken {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	missing := max(l.full(name)-now, 0)
	ok := missing+limit.step() <= limit.size()
	if ok && spend {
		missing += limit.step()
		l.buckets[name] = now + missing
	}
	return limit.state(ok, missing)
}

// now is the limiter's age. It only grows: what a clock is put back is no time
// that went by, and nothing that waits. It must be asked for under the lock. Of
// two callers who look at the clock first and lock then, the second may have
// looked earlier, and would be given the time in between once more.
func (l *Limiter) now() time.Duration {
	at := l.cfg.Now()
	l.age += max(at.Sub(l.read), 0)
	l.read = at
	return l.age
}

// full is when a bucket will be full, and brings it among the latest used.
// Those that were not used for longest are forgotten, many at a time: they are
// full long since, or somebody has come from very many addresses.
func (l *Limiter) full(name string) time.Duration {
	at, there := l.buckets[name]
	if there {
		return at
	}
	at = l.older[name]
	if len(l.buckets) >= maxBuckets/2 {
		l.older, l.buckets = l.buckets, map[string]time.Duration{}
	}
	l.buckets[name] = at
	return at
}

// takeScript takes up to ARGV[3] tokens of a bucket, which holds ARGV[2] and gets
// one back every ARGV[1] microseconds. It returns how many it took and how much
// is missing. The time is the server's: the clocks of those who ask may differ.
// What is no number, or not a string at all, counts as a full bucket; what is
// fuller of calls than a bucket can be, as an empty one.
var takeScript = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local step, size, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'table' then
	redis.call('DEL', KEYS[1])
	kept = false
end
local full = tonumber(kept or '') or now
if not (full >= now) then full = now end
local wrong = full > now + size
if wrong then full = now + size end
local took = math.min(want, math.floor((size - (full - now)) / step))
if took > 0 or wrong then
	full = full + took * step
	redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000) + 1)
end
return {took, full - now}`)

// takeThere takes a token of the bucket in Redis; false where Redis has no
// answer. Calls that come while a question is on its way share the next one.
func (l *Limiter) takeThere(ctx context.Context, name string, limit Limit) (taken, bool) {
	one := &ask{name: name, limit: limit, answer: make(chan taken, 1)}
	l.mu.Lock()
	if l.now() < l.rests || len(l.waiting) >= maxWaiting {
		l.mu.Unlock()
		return taken{}, false
	}
	l.waiting = append(l.waiting, one)
	if !l.asking {
		l.asking = true
		go l.questions(context.WithoutCancel(ctx))
	}
	l.mu.Unlock()
	patience := time.NewTimer(l.wait)
	defer patience.Stop()
	select {
	case t, answered := <-one.answer:
		return t, answered
	case <-patience.C:
		l.rest(ctx, context.DeadlineExceeded)
		return taken{}, false
	}
}

// questions asks Redis until nobody waits.
func (l *Limiter) questions(ctx context.Context) {
	for {
		l.mu.Lock()
		asks := l.waiting
		l.waiting = nil
		l.asking = len(asks) > 0
		l.mu.Unlock()
		if len(asks) == 0 {
			return
		}
		l.question(ctx, asks)
	}
}

// question asks Redis for many calls at once, one line for each bucket.
func (l *Limiter) question(ctx context.Context, asks []*ask) {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	groups, names := map[string][]*ask{}, []string{}
	for _, one := range asks {
		if groups[one.name] == nil {
			names = append(names, one.name)
		}
		groups[one.name] = append(groups[one.name], one)
	}
	err := l.tell(ctx, groups, names, takeScript.EvalSha)
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // a new Redis, or one that was told to forget
		err = l.tell(ctx, groups, names, takeScript.Eval)
	}
	if err != nil {
		l.rest(ctx, err)
	} else {
		l.back(ctx)
	}
	for _, group := range groups {
		for _, one := range group {
			close(one.answer)
		}
	}
}

// tell asks for every group that has no answer yet, in one go, and answers those
// that get one.
func (l *Limiter) tell(ctx context.Context, groups map[string][]*ask, names []string,
	say func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd,
) error {
	pipe := l.cfg.Redis.Pipeline()
	said := make([]*redis.Cmd, len(names))
	for i, name := range names {
		group := groups[name]
		said[i] = say(ctx, pipe, []string{l.cfg.Prefix + name}, group[0].limit.step().Microseconds(), group[0].limit.size().Microseconds(), len(group))
	}
	_, err := pipe.Exec(ctx)
	for i, name := range names {
		if got, fault := said[i].Int64Slice(); fault == nil && len(got) == 2 {
			share(groups[name], got[0], time.Duration(got[1])*time.Microsecond)
			delete(groups, name)
		}
	}
	return err
}

// share gives the tokens that were taken to those who waited, in their order.
func share(group []*ask, took int64, missing time.Duration) {
	for i, one := range group {
		later := max(took-int64(i)-1, 0) // were given to those behind
		one.answer <- one.limit.state(int64(i) < took, missing-time.Duration(later)*one.limit.step())
		close(one.answer)
	}
}

// rest leaves Redis alone for a while.
func (l *Limiter) rest(ctx context.Context, err error) {
	l.mu.Lock()
	if now := l.now(); now >= l.rests {
		l.rests = now + redisRest
	}
	first := !l.alone
	l.alone = true
	l.mu.Unlock()
	if first {
		l.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "calls are counted by this process alone: redis does not answer, or refuses", slog.String("error", err.Error()))
	}
}

// back notes that Redis answered. One that fails now and then is not back yet.
func (l *Limiter) back(ctx context.Context) {
	l.mu.Lock()
	calm := l.alone && l.now() >= l.rests+redisCalm
	l.alone = l.alone && !calm
	l.mu.Unlock()
	if calm {
		l.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "calls are counted by all processes together again") // as loud as that they were not
	}
}
