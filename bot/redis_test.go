//go:build unix

package bot_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow/checkout"
)

// memory is a Redis server of a test's own.
type memory struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	client *redis.Client
	lines  int // of the conversation that were played
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), "redis") {
			t.Fatal("redis is required here and not installed")
		}
		t.Skip("skipped: redis is not installed (redis-server)")
	}
	m := &memory{t: t, dir: t.TempDir()}
	m.client = redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(m.dir, "redis.sock"), DisableIdentity: true})
	m.start()
	t.Cleanup(func() {
		m.kill()
		_ = m.client.Close()
	})
	return m
}

func (m *memory) start() {
	m.t.Helper()
	m.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", filepath.Join(m.dir, "redis.sock"), "--save", "", "--appendonly", "no", "--dir", m.dir)
	m.must(m.cmd.Start())
	deadline := time.Now().Add(20 * time.Second)
	for m.client.Ping(context.Background()).Err() != nil {
		if time.Now().After(deadline) {
			m.t.Fatal("redis-server never answered")
		}
		time.Sleep(10 * time.Millisecond) // between two questions, not to order events
	}
}

func (m *memory) kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

func (m *memory) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// forget loses everything, if the server answers at all.
func (m *memory) forget() {
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	hurried := redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(m.dir, "redis.sock"), DisableIdentity: true, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer hurried.Close()
	hurried.FlushAll(short)
}

// chats are the keys of all chats.
func (m *memory) chats() []string {
	m.t.Helper()
	keys, err := m.client.Keys(context.Background(), "*chat:*").Result()
	m.must(err)
	return keys
}

// spoil does something to what is remembered of each chat.
func (m *memory) spoil(how func(ctx context.Context, key string) error) {
	m.t.Helper()
	for _, key := range m.chats() {
		m.must(how(context.Background(), key))
	}
}

// poison changes what is remembered at the right line of the log.
func (m *memory) poison(oldnew ...string) func() {
	return func() {
		m.spoil(func(ctx context.Context, key string) error {
			kept := m.client.HGet(ctx, key, "chat").Val()
			return m.client.HSet(ctx, key, "chat", strings.NewReplacer(oldnew...).Replace(kept)).Err()
		})
	}
}

// redisFaults are what goes wrong with a Redis before each line of a
// conversation.
var redisFaults = map[string]func(m *memory) func(){
	"none":     func(*memory) func() { return func() {} },
	"flushall": func(m *memory) func() { return func() { m.must(m.client.FlushAll(context.Background()).Err()) } },
	"paused": func(m *memory) func() {
		return func() { m.must(m.client.Do(context.Background(), "CLIENT", "PAUSE", "250", "ALL").Err()) }
	},
	"killed and restarted": func(m *memory) func() {
		return func() {
			if m.lines++; m.lines%2 == 1 {
				m.kill()
			} else {
				m.start()
			}
		}
	},
	"stopped": func(m *memory) func() {
		return func() {
			if m.lines++; m.lines%3 == 1 {
				m.must(m.cmd.Process.Signal(syscall.SIGSTOP))
			} else {
				m.must(m.cmd.Process.Signal(syscall.SIGCONT))
			}
		}
	},
	"another type": func(m *memory) func() {
		return func() {
			m.spoil(func(ctx context.Context, key string) error {
				m.client.Del(ctx, key)
				return m.client.RPush(ctx, key, "a", "list").Err()
			})
		}
	},
	"full": func(m *memory) func() {
		return func() { m.must(m.client.ConfigSet(context.Background(), "maxmemory", "1").Err()) }
	},
	"full now and then": func(m *memory) func() {
		return func() {
			m.lines++
			m.must(m.client.ConfigSet(context.Background(), "maxmemory", []string{"0", "1"}[m.lines%2]).Err())
		}
	},
	"stale": func(m *memory) func() { // as it was before the line before
		before := map[string]string{}
		return func() {
			now := map[string]string{}
			m.spoil(func(ctx context.Context, key string) error {
				now[key] = m.client.Dump(ctx, key).Val()
				if old, ok := before[key]; ok {
					return m.client.RestoreReplace(ctx, key, time.Hour, old).Err()
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
			m.spoil(func(ctx context.Context, key string) error { return m.client.HSet(ctx, key, "seq", "999999999").Err() })
		}
	},
	"giant": func(m *memory) func() {
		giant := strings.Repeat("x", 4<<20)
		return func() {
			m.spoil(func(ctx context.Context, key string) error { return m.client.HSet(ctx, key, "chat", giant).Err() })
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
			m := newMemory(t)
			for _, name := range []string{"transfer", "switched", "everything-twice"} {
				want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
				if err != nil {
					t.Fatal(err)
				}
				places := checkout.NewRedisPlaces(m.client, name+":", []byte("a key of these tests"), slog.New(slog.DiscardHandler))
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
