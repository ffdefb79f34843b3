package checkout

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow"
	"till/flow/await"
	"till/flow/redistest"
)

// Who guesses at a password has ten tries, however many processes there are and however
// often one is started anew. Without Redis each counts alone.
func TestProcessesCountTriesTogether(t *testing.T) {
	server := redistest.Start(t)
	now := morning
	process := func() *Accounts {
		a := NewAccounts(nil, func() time.Time { return now }, nil)
		a.Together(server.Client, "t:")
		a.tries.far.wait = await.Patience // on a busy machine too
		return a
	}
	one, other := process(), process()
	guess := func(a *Accounts, email, address string) error {
		t.Helper()
		_, err := a.guess(t.Context(), email, address)
		return err
	}
	for n := range triesAccount {
		if err := guess([]*Accounts{one, other}[n%2], "obi@example.com", "203.0.113.1"); err != nil {
			t.Fatalf("try %d: %v", n+1, err)
		}
		now = now.Add(time.Second)
	}
	for name, a := range map[string]*Accounts{"one": one, "the other": other, "one that was started anew": process()} {
		known, ok := errors.AsType[*flow.Error](guess(a, "obi@example.com", "203.0.113.1"))
		if !ok || known.Code != flow.CodeRateLimited || known.RetryAfter != tryWindow-triesAccount*time.Second {
			t.Errorf("%s: %#v", name, known)
		}
		if err := guess(a, "obi@example.com", "203.0.113.2"); err != nil {
			t.Errorf("%s: the owner elsewhere: %v", name, err)
		}
	}
	if guess(one, "ada@example.com", "203.0.113.1") != nil {
		t.Error("what was refused counts for its address")
	}
	now = morning.Add(tryWindow) // the first is a quarter of an hour old
	if guess(other, "obi@example.com", "203.0.113.1") != nil || guess(one, "obi@example.com", "203.0.113.1") == nil {
		t.Error("one place is free, and only one")
	}
	keys, err := server.Client.Keys(t.Context(), "*").Result()
	if named := strings.Join(keys, " "); err != nil || len(keys) == 0 || strings.Contains(named, "obi") || strings.Contains(named, "203.0.113") {
		t.Errorf("who tries, and from where, stands in Redis: %s (%v)", named, err)
	}
	one.tries.drop(t.Context(), loginPair("obi@example.com", "203.0.113.1")) // somebody knew the password there
	if err := guess(process(), "obi@example.com", "203.0.113.1"); err != nil {
		t.Errorf("after a login: %v", err)
	}

	// All from one address, whoever they guess at; those that are taken back do not count.
	for n := range 2 * triesAddress {
		a := []*Accounts{one, other}[n%2]
		forgive, err := a.guess(t.Context(), fmt.Sprintf("who%d@example.com", n), "203.0.113.3")
		if (err == nil) != (n < triesAddress+5) {
			t.Fatalf("try %d of an address: %v", n+1, err)
		}
		if n < 5 {
			forgive()
		}
	}
}

// A Redis that hangs, is full or has something else under a name costs nobody a login.
func TestTriesAreCountedWithoutRedis(t *testing.T) {
	for what, breaks := range map[string]func(*redistest.Server) error{
		"killed": func(s *redistest.Server) error { return s.Signal(syscall.SIGKILL) },
		"hangs":  func(s *redistest.Server) error { return s.Signal(syscall.SIGSTOP) },
		"full":   func(s *redistest.Server) error { return s.Client.ConfigSet(t.Context(), "maxmemory", "1").Err() },
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t)
			options := server.Options()
			options.ContextTimeoutEnabled = true // as the program's is
			client := redis.NewClient(options)
			defer func() { _ = client.Close() }()
			a := NewAccounts(nil, func() time.Time { return morning }, nil)
			a.Together(client, "t:")
			if err := breaks(server); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Signal(syscall.SIGCONT) }()
			for n := range triesAccount + 1 {
				if _, err := a.guess(t.Context(), "obi@example.com", "203.0.113.1"); (err == nil) != (n < triesAccount) {
					t.Fatalf("try %d: %v", n+1, err)
				}
				if n == 0 && a.tries.far.rests.Load() != (what != "full") { // a full one lets a script that removes first write
					t.Error("each try waits for it, or none is counted there")
				}
			}
		})
	}
	server := redistest.Start(t)
	a := NewAccounts(nil, func() time.Time { return morning }, nil)
	a.Together(server.Client, "t:")
	a.tries.far.wait = await.Patience
	if _, err := a.guess(t.Context(), "obi@example.com", "203.0.113.1"); err != nil {
		t.Fatal(err)
	}
	keys, err := server.Client.Keys(t.Context(), "t:*").Result()
	if err != nil || len(keys) != 2 {
		t.Fatalf("kept are %v (%v)", keys, err)
	}
	for _, key := range keys {
		if err := server.Client.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.guess(t.Context(), "obi@example.com", "203.0.113.1"); err != nil || a.tries.far.rests.Load() {
		t.Errorf("with something else under a name: %v", err)
	}
}
