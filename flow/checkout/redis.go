package checkout

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow"
)

// placeLasts is how long an idle chat is remembered.
const placeLasts = 24 * time.Hour

// maxPlace bounds what is remembered of one chat, in bytes.
const maxPlace = 16 << 10

// RedisPlaces remembers in Redis where live talks stand. Redis may lose
// everything, be stale, be full or be gone: each costs a query, never a turn.
//
// What it gives back is signed: nobody else who writes to that Redis, and no
// copy of it that outlived a database, can make a talk stand elsewhere.
type RedisPlaces struct {
	client redis.UniversalClient
	prefix string
	key    []byte
	by     string // tells whose key signed an entry
	log    *slog.Logger
	slots  chan struct{}
	rests  rest
}

// maxAsking is how many questions may be under way. A Redis that hangs keeps
// its places taken, and whoever finds none does not wait: where talks stand is
// looked up inside transactions, and those must not be held up by a memory.
const maxAsking = 8

// restFor is how long nobody asks after a question that was not answered in
// time: one turn in that while waits, and not each.
const restFor = time.Second

// rest is whether Redis did not answer just now, and is left alone for a while.
type rest struct{ atomic.Bool }

// begin leaves it alone from now on.
func (r *rest) begin() {
	if r.CompareAndSwap(false, true) {
		time.AfterFunc(restFor, func() { r.Store(false) })
	}
}

// NewRedisPlaces makes a memory whose keys in Redis begin with prefix. The key
// that signs what is remembered is secret; drawn anew for each process, it makes
// a process forget what another one left, which costs a query for each talk.
func NewRedisPlaces(client redis.UniversalClient, prefix string, key []byte, log *slog.Logger) *RedisPlaces {
	p := &RedisPlaces{client: client, prefix: prefix, key: key, log: log, slots: make(chan struct{}, maxAsking)}
	p.by = hex.EncodeToString(p.sign(nil)[:8])
	return p
}

// sign makes the signature that stands before what is remembered.
func (p *RedisPlaces) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, p.key)
	mac.Write(text)
	return mac.Sum(nil)
}

var _ FarPlaces = (*RedisPlaces)(nil)

func (p *RedisPlaces) name(id flow.ChatID) string { return p.prefix + "chat:" + string(id) }

// Get returns what is remembered of a chat.
func (p *RedisPlaces) Get(ctx context.Context, id flow.ChatID) (flow.Chat, bool) {
	found := make(chan flow.Chat, 1)
	p.ask(ctx, func() {
		if chat, ok := p.get(ctx, id); ok {
			found <- chat
		}
	})
	select {
	case chat := <-found:
		return chat, true
	default:
		return flow.Chat{}, false
	}
}

// ask puts a question and waits for its end no longer than ctx lasts, whatever
// the client does: by its own settings it waits for a silent server for seconds.
func (p *RedisPlaces) ask(ctx context.Context, question func()) {
	if p.rests.Load() {
		return
	}
	select {
	case p.slots <- struct{}{}:
	default:
		return
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-p.slots }()
		defer close(done)
		question()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		p.rests.begin()
	}
}

func (p *RedisPlaces) get(ctx context.Context, id flow.ChatID) (flow.Chat, bool) {
	text, err := p.client.HGet(ctx, p.name(id), "chat").Bytes()
	if err != nil {
		if !errors.Is(err, redis.Nil) {
			p.log.LogAttrs(ctx, slog.LevelDebug, "remember a chat", slog.String("error", err.Error()))
		}
		return flow.Chat{}, false
	}
	if len(text) < sha256.Size || len(text) > sha256.Size+maxPlace {
		return flow.Chat{}, false
	}
	signature, text := text[:sha256.Size], text[sha256.Size:]
	var chat flow.Chat
	if !hmac.Equal(signature, p.sign(text)) || json.Unmarshal(text, &chat) != nil {
		return flow.Chat{}, false
	}
	return chat, true
}

// putPlace keeps a chat unless a newer one is kept: compare and set on Seq, in
// one step of the server. A key of another type, one that makes no sense and one
// that somebody else signed are replaced: whose is newer does not show in them.
var putPlace = redis.NewScript(`
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local kept = redis.call('HMGET', KEYS[1], 'seq', 'by')
if kept[2] ~= ARGV[4] then redis.call('DEL', KEYS[1])
elseif (tonumber(kept[1] or '-1') or -1) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'chat', ARGV[2], 'by', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`)

// Put remembers a chat unless something newer is remembered.
func (p *RedisPlaces) Put(ctx context.Context, c flow.Chat) { p.PutAll(ctx, []flow.Chat{c}) }

// PutAll remembers chats unless something newer is remembered, with one question
// for all of them.
func (p *RedisPlaces) PutAll(ctx context.Context, chats []flow.Chat) {
	type entry struct {
		keys []string
		args []any
	}
	entries := make([]entry, 0, len(chats))
	for _, c := range chats {
		text, err := json.Marshal(c)
		if err != nil || len(text) > maxPlace {
			continue
		}
		text = append(p.sign(text), text...)
		entries = append(entries, entry{[]string{p.name(c.ID)}, []any{c.Seq, text, placeLasts.Milliseconds(), p.by}})
	}
	if len(entries) == 0 {
		return
	}
	p.ask(ctx, func() {
		results, err := p.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, e := range entries {
				putPlace.EvalSha(ctx, pipe, e.keys, e.args...)
			}
			return nil
		})
		for i, r := range results {
			if redis.HasErrorPrefix(r.Err(), "NOSCRIPT") { // this Redis has not seen it yet, or forgot it
				err = putPlace.Eval(ctx, p.client, entries[i].keys, entries[i].args...).Err()
			}
		}
		if err != nil {
			p.log.LogAttrs(ctx, slog.LevelDebug, "remember a chat", slog.String("error", err.Error()))
		}
	})
}

// ForgetPlace makes Redis forget where a chat's talks stand, in the memory whose
// keys begin with prefix. It returns how many entries there were.
func ForgetPlace(ctx context.Context, client redis.UniversalClient, prefix string, chat flow.ChatID) (int64, error) {
	p := &RedisPlaces{prefix: prefix}
	return client.Del(ctx, p.name(chat)).Result()
}

// farTriesWait is how long Redis is waited for at a try: whoever logs in must not
// notice that it is away.
const farTriesWait = 50 * time.Millisecond

// farTries counts tries in Redis, for all processes together. What it cannot say
// or keep is left to what each process counts by itself.
type farTries struct {
	client redis.UniversalClient
	prefix string
	wait   time.Duration
	rests  rest
}

// Together has tries counted for all processes together, in Redis, under keys that
// begin with prefix: who guesses at a password has no more tries for there being
// more processes, or for one that was started anew.
func (a *Accounts) Together(client redis.UniversalClient, prefix string) {
	a.tries.far = &farTries{client: client, prefix: prefix, wait: farTriesWait}
}

// takeTries counts a try under all names, or under none: then it says how many
// microseconds it is until the name that is full has a place. Tries of one
// microsecond are told apart by a number.
var takeTries = redis.NewScript(`
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
for i, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok ~= 'zset' then redis.call('DEL', key) end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  redis.call('ZREMRANGEBYSCORE', key, now + window, '+inf')
  local most, seen = tonumber(ARGV[2 + i]), redis.call('ZCARD', key)
  if seen >= most then
    local oldest = redis.call('ZRANGE', key, seen - most, seen - most, 'WITHSCORES')
    return tonumber(oldest[2]) + window - now
  end
end
for _, key in ipairs(KEYS) do
  local n = 0
  while redis.call('ZSCORE', key, ARGV[1] .. '-' .. n) do n = n + 1 end
  redis.call('ZADD', key, ARGV[1], ARGV[1] .. '-' .. n)
  redis.call('PEXPIRE', key, window / 1000)
end
return 0`)

// forgiveTries takes back one try of a moment, under each name.
var forgiveTries = redis.NewScript(`
for _, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok == 'zset' then
    local there = redis.call('ZRANGEBYSCORE', key, ARGV[1], ARGV[1], 'LIMIT', 0, 1)
    if there[1] then redis.call('ZREM', key, there[1]) end
  end
end
return 0`)

var forgetTries = redis.NewScript(`return redis.call('DEL', KEYS[1])`)

// take counts a try under all names and says 0, or how long it is until there is a
// place for it.
func (f *farTries) take(ctx context.Context, now time.Time, all []try) (wait time.Duration) {
	names, args := make([]string, 0, len(all)), []any{now.UnixMicro(), tryWindow.Microseconds()}
	for _, one := range all {
		names, args = append(names, one.name), append(args, one.most)
	}
	micros := f.ask(ctx, takeTries, names, args...)
	return time.Duration(micros) * time.Microsecond
}

// forgive takes back one try of a moment, under each name.
func (f *farTries) forgive(ctx context.Context, at time.Time, names ...string) {
	f.ask(ctx, forgiveTries, names, at.UnixMicro())
}

// forget drops a name.
func (f *farTries) forget(ctx context.Context, name string) {
	f.ask(ctx, forgetTries, []string{name})
}

// ask runs a script, also for a caller who has gone: what was tried counts.
func (f *farTries) ask(ctx context.Context, script *redis.Script, names []string, args ...any) int64 {
	if f == nil || f.rests.Load() {
		return 0
	}
	keys := make([]string, 0, len(names))
	for _, name := range names { // which holds an e-mail address and where somebody is: neither stands in Redis
		sum := sha256.Sum256([]byte(name))
		keys = append(keys, f.prefix+hex.EncodeToString(sum[:]))
	}
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.wait)
	defer cancel()
	answer, err := script.Run(short, f.client, keys, args...).Int64()
	if err != nil {
		f.rests.begin()
	}
	return answer // 0 where there is none
}
