//go:build unix

package bot_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow/checkout"
	"till/flow/redistest"
)

// memory is a Redis server of a test's own, beside a conversation.
type memory struct {
	*redistest.Server

	t     *testing.T
	lines int // of the conversation that were played
}

// forget loses everything, if the server answers at all.
func (m *memory) forget() {
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	options := m.Options()
	options.ContextTimeoutEnabled, options.MaxRetries = true, -1
	hurried := redis.NewClient(options)
	defer hurried.Close()
	hurried.FlushAll(short)
}

// chats are the keys of all chats.
func (m *memory) chats() []string {
	m.t.Helper()
	keys, err := m.Client.Keys(context.Background(), "*chat:*").Result()
	must(m.t, err)
	return keys
}

// spoil does something to what is remembered of each chat.
func (m *memory) spoil(how func(ctx context.Context, key string) error) {
	m.t.Helper()
	for _, key := range m.chats() {
		must(m.t, how(context.Background(), key))
	}
}

// poison changes what is remembered at the right line of the log.
func (m *memory) poison(oldnew ...string) func() {
	return func() {
		m.spoil(func(ctx context.Context, key string) error {
			kept := m.Client.HGet(ctx, key, "chat").Val()
			return m.Client.HSet(ctx, key, "chat", strings.NewReplacer(oldnew...).Replace(kept)).Err()
		})
	}
}

// redisFaults are what goes wrong with a Redis before each line of a
// conversation.
var redisFaults = map[string]func(m *memory) func(){
	"none":     func(*memory) func() { return func() {} },
	"flushall": func(m *memory) func() { return func() { must(m.t, m.Client.FlushAll(context.Background()).Err()) } },
	"paused": func(m *memory) func() {
		return func() { must(m.t, m.Client.Do(context.Background(), "CLIENT", "PAUSE", "250", "ALL").Err()) }
	},
	"killed and restarted": func(m *memory) func() {
		return func() {
			if m.lines++; m.lines%2 == 1 {
				m.Kill()
			} else {
				m.Again()
			}
		}
	},
	"stopped": func(m *memory) func() {
		return func() {
			if m.lines++; m.lines%3 == 1 {
				must(m.t, m.Signal(syscall.SIGSTOP))
			} else {
				must(m.t, m.Signal(syscall.SIGCONT))
			}
		}
	},
	"another type": func(m *memory) func() {
		return func() {
			m.spoil(func(ctx context.Context, key string) error {
				m.Client.Del(ctx, key)
				return m.Client.RPush(ctx, key, "a", "list").Err()
			})
		}
	},
	"full": func(m *memory) func() {
		return func() { must(m.t, m.Client.ConfigSet(context.Background(), "maxmemory", "1").Err()) }
	},
	"full now and then": func(m *memory) func() {
		return func() {
			m.lines++
			must(m.t, m.Client.ConfigSet(context.Background(), "maxmemory", []string{"0", "1"}[m.lines%2]).Err())
		}
	},
	"stale": func(m *memory) func() { // as it was before the line before
		before := map[string]string{}
		return func() {
			now := map[string]string{}
			m.spoil(func(ctx context.Context, key string) error {
				now[key] = m.Client.Dump(ctx, key).Val()
				if old, ok := before[key]; ok {
					return m.Client.RestoreReplace(ctx, key, time.Hour, old).Err()
				}
				return nil
			})
			before = now
		}
	},
	"another person": func(m *memory) func() { return m.poison("person-1", "person-9") },
	"another state": func(m *memory) func() {
		return m.poison("choosing", "paid", "await_transfer", "closed", "ussd_bank", "paid", "await_ussd", "paid", "await_card", "paid")
	},
	"far ahead": func(m *memory) func() {
		return func() {
			m.spoil(func(ctx context.Context, key string) error { return m.Client.HSet(ctx, key, "seq", "999999999").Err() })
		}
	},
	"giant": func(m *memory) func() {
		giant := strings.Repeat("x", 4<<20)
		return func() {
			m.spoil(func(ctx context.Context, key string) error { return m.Client.HSet(ctx, key, "chat", giant).Err() })
		}
	},
}

// Whatever Redis does in the middle of a conversation, the conversation comes
// out the same, and no message waits for longer than Redis may be waited for.
func TestConversationsBesideARedisThatFails(t *testing.T) {
	const waited, busy = 100 * time.Millisecond, 2 * time.Second // what the machine itself may take on a bad day
	for fault, arm := range redisFaults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			m := &memory{Server: redistest.Start(t), t: t}
			for _, name := range []string{"transfer", "switched", "everything-twice"} {
				want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
				must(t, err)
				places := checkout.NewRedisPlaces(m.Client, name+":", []byte("a key of these tests"), slog.New(slog.DiscardHandler))
				s := newStage(t, places, m.forget)
				if got := s.Play(string(want), arm(m)); got != string(want) {
					t.Errorf("%s came out as:\n%s", name, got)
				}
				if s.longest > waited+busy {
					t.Errorf("%s: a message was taken in after %v", name, s.longest)
				}
			}
		})
	}
}
