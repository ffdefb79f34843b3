package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
type RedisPlaces struct {
	client redis.UniversalClient
	prefix string
	log    *slog.Logger
	slots  chan struct{}
}

// maxAsking is how many questions may be under way. A Redis that hangs keeps
// its places taken, and whoever finds none does not wait: where talks stand is
// looked up inside transactions, and those must not be held up by a memory.
const maxAsking = 8

// NewRedisPlaces makes a memory whose keys begin with prefix.
func NewRedisPlaces(client redis.UniversalClient, prefix string, log *slog.Logger) *RedisPlaces {
	return &RedisPlaces{client: client, prefix: prefix, log: log, slots: make(chan struct{}, maxAsking)}
}

var _ Places = (*RedisPlaces)(nil)

func (p *RedisPlaces) key(id flow.ChatID) string { return p.prefix + "chat:" + string(id) }

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
	}
}

func (p *RedisPlaces) get(ctx context.Context, id flow.ChatID) (flow.Chat, bool) {
	text, err := p.client.HGet(ctx, p.key(id), "chat").Bytes()
	if err != nil {
		if !errors.Is(err, redis.Nil) {
			p.log.LogAttrs(ctx, slog.LevelDebug, "remember a chat", slog.String("error", err.Error()))
		}
		return flow.Chat{}, false
	}
	var chat flow.Chat
	if len(text) > maxPlace || json.Unmarshal(text, &chat) != nil {
		return flow.Chat{}, false
	}
	return chat, true
}

// putPlace keeps a chat unless a newer one is kept: compare and set on Seq, in
// one step of the server. A key of another type, or one that makes no sense, is
// replaced.
var putPlace = redis.NewScript(`
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local kept = tonumber(redis.call('HGET', KEYS[1], 'seq') or '-1') or -1
if kept >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'chat', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`)

// Put remembers a chat unless something newer is remembered.
func (p *RedisPlaces) Put(ctx context.Context, c flow.Chat) {
	text, err := json.Marshal(c)
	if err != nil || len(text) > maxPlace {
		return
	}
	p.ask(ctx, func() {
		if err := putPlace.Run(ctx, p.client, []string{p.key(c.ID)}, c.Seq, text, placeLasts.Milliseconds()).Err(); err != nil {
			p.log.LogAttrs(ctx, slog.LevelDebug, "remember a chat", slog.String("error", err.Error()))
		}
	})
}
