package api

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow"
)

// The bounds of counting.
const (
	redisWait  = 50 * time.Millisecond // how long an answer of Redis is waited for
	redisRest  = time.Second           // how long Redis is not asked after it failed
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

// step is how long one call takes to come back, in microseconds.
func (l Limit) step() int64 { return int64(time.Second/time.Microsecond) / int64(l.PerSecond) }

// size is how long an empty bucket takes to be full again, in microseconds.
func (l Limit) size() int64 { return l.step() * int64(l.Burst) }

// state is what a bucket with this much missing looks like to a call.
func (l Limit) state(ok bool, missing int64) taken {
	t := taken{
		ok: ok, limit: l, left: int((l.size() - missing) / l.step()),
		reset: time.Duration(missing) * time.Microsecond, wait: time.Duration(missing-l.size()+l.step()) * time.Microsecond,
	}
	t.wait = max(t.wait, 0)
	return t
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
	// that calls without a key that holds.
	Test, Live, Address Limit
	Now                 func() time.Time
	Log                 *slog.Logger
}

// Limiter counts calls. Each is counted in this process and, where that allows
// it, in Redis. So Redis may be away, slow, emptied or wrong: then this
// process's count still holds, and nobody waits for longer than redisWait.
type Limiter struct {
	cfg LimiterConfig

	mu      sync.Mutex
	buckets map[string]int64 // the latest used: when each will be full, in microseconds since 1970
	older   map[string]int64 // those used before; forgotten when buckets are many again
	waiting []*ask           // for the next question to Redis
	asking  bool
	rests   time.Time // Redis is not asked before
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
	return &Limiter{cfg: c, buckets: map[string]int64{}}, nil
}

// take takes a token of a bucket.
func (l *Limiter) take(ctx context.Context, name string, limit Limit) taken {
	now := l.cfg.Now()
	own := l.takeHere(name, limit, now)
	if !own.ok || l.cfg.Redis == nil {
		return own
	}
	all, answered := l.takeThere(ctx, name, limit, now)
	if !answered {
		return own
	}
	if !all.ok {
		l.giveBack(name, limit)
		return all
	}
	own.left, own.reset = min(own.left, all.left), max(own.reset, all.reset)
	return own
}

// takeHere takes a token of this process's own bucket. A bucket is one number,
// the time at which it will be full: each token moves that a step away.
func (l *Limiter) takeHere(name string, limit Limit, at time.Time) taken {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := at.UnixMicro()
	missing := min(max(l.full(name)-now, 0), limit.size()) // whatever the clock did
	ok := missing+limit.step() <= limit.size()
	if ok {
		missing += limit.step()
	}
	l.buckets[name] = now + missing
	return limit.state(ok, missing)
}

// giveBack returns a token that was not used after all.
func (l *Limiter) giveBack(name string, limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buckets[name] = l.full(name) - limit.step()
}

// full is when a bucket will be full, and brings it among the latest used.
// Those that were not used for longest are forgotten, many at a time: they are
// full long since, or somebody has come from very many addresses.
func (l *Limiter) full(name string) int64 {
	at, there := l.buckets[name]
	if there {
		return at
	}
	at = l.older[name]
	if len(l.buckets) >= maxBuckets/2 {
		l.older, l.buckets = l.buckets, map[string]int64{}
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
func (l *Limiter) takeThere(ctx context.Context, name string, limit Limit, now time.Time) (taken, bool) {
	one := &ask{name: name, limit: limit, answer: make(chan taken, 1)}
	l.mu.Lock()
	if now.Before(l.rests) || len(l.waiting) >= maxWaiting {
		l.mu.Unlock()
		return taken{}, false
	}
	l.waiting = append(l.waiting, one)
	if !l.asking {
		l.asking = true
		go l.questions(context.WithoutCancel(ctx))
	}
	l.mu.Unlock()
	patience := time.NewTimer(redisWait)
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
	ctx, cancel := context.WithTimeout(ctx, redisWait)
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
		said[i] = say(ctx, pipe, []string{l.cfg.Prefix + name}, group[0].limit.step(), group[0].limit.size(), len(group))
	}
	_, err := pipe.Exec(ctx)
	for i, name := range names {
		if got, fault := said[i].Int64Slice(); fault == nil && len(got) == 2 {
			share(groups[name], got[0], got[1])
			delete(groups, name)
		}
	}
	return err
}

// share gives the tokens that were taken to those who waited, in their order.
func share(group []*ask, took, missing int64) {
	for i, one := range group {
		later := max(took-int64(i)-1, 0) // were given to those behind
		one.answer <- one.limit.state(int64(i) < took, missing-later*one.limit.step())
		close(one.answer)
	}
}

// rest leaves Redis alone for a while.
func (l *Limiter) rest(ctx context.Context, err error) {
	l.mu.Lock()
	now := l.cfg.Now()
	first := !now.Before(l.rests)
	if first {
		l.rests = now.Add(redisRest)
	}
	l.mu.Unlock()
	if first {
		l.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "calls are counted by this process alone: redis does not answer", slog.String("error", err.Error()))
	}
}

// countKey counts a call against its key.
func (s *Server) countKey(c *call) error {
	return s.count(c, "key:"+c.key.ID, func(l LimiterConfig) Limit {
		if c.key.Environment == flow.Live {
			return l.Live
		}
		return l.Test
	})
}

// countAccount counts a call of a dashboard against whose it is.
func (s *Server) countAccount(c *call) error {
	return s.count(c, "account:"+c.token.Account, func(l LimiterConfig) Limit { return l.Test })
}

// countAddress counts a call without a key that holds against where it comes from.
func (s *Server) countAddress(c *call) error {
	return s.count(c, "from:"+c.address(), func(l LimiterConfig) Limit { return l.Address })
}

// wrongKey counts a call whose key does not hold, and says which refusal it gets.
func (s *Server) wrongKey(c *call, err error) error {
	if kind, _ := classOf(flow.CodeOf(err)); kind.kind != "authentication" {
		return err // the store's trouble is not the caller's
	}
	if limited := s.countAddress(c); limited != nil {
		return limited
	}
	return err
}

// count takes a token for a call and says in the headers what is left, in the
// words of draft-ietf-httpapi-ratelimit-headers: the limit is of the whole
// bucket, the policy says in how many seconds it fills.
func (s *Server) count(c *call, name string, which func(LimiterConfig) Limit) error {
	if s.cfg.Limits == nil {
		return nil
	}
	limit := which(s.cfg.Limits.cfg)
	t := s.cfg.Limits.take(c.ctx, name, limit)
	h := &c.http.Context().Response.Header
	h.Set("RateLimit-Limit", strconv.Itoa(limit.Burst))
	h.Set("RateLimit-Policy", strconv.Itoa(limit.Burst)+";w="+seconds(time.Duration(limit.size())*time.Microsecond))
	h.Set("RateLimit-Remaining", strconv.Itoa(t.left))
	h.Set("RateLimit-Reset", seconds(t.reset))
	if t.ok {
		return nil
	}
	refused := flow.Refuse(flow.CodeRateLimited, "Too many calls: %d a second are let through, %d at once. Wait as long as Retry-After says.", limit.PerSecond, limit.Burst)
	refused.RetryAfter = t.wait
	return refused
}

// seconds is a time in whole seconds, none too few.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
