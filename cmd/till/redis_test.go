package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/flow/await"
	"till/flow/redistest"
)

// A Redis that says nothing any more holds nobody who asks how things stand: it is
// said to be away, and all else to work.
func TestARedisThatHangsIsSaidToSoon(t *testing.T) {
	r := redistest.Start(t)
	m, p, _ := devServerWith(t, []string{"TILL_REDIS_URL=" + r.URL})
	away := func() bool {
		began := time.Now()
		status, out, err := m.try(http.MethodGet, "/readyz", nil)
		if took := time.Since(began); err != nil || status != http.StatusOK || took > 5*time.Second {
			t.Errorf("asked whether it is ready it says %d after %v: %v, %v", status, took, out, err)
		}
		data, _ := out["data"].(object)
		return data["state"] == "degraded"
	}
	must(t, r.Signal(syscall.SIGSTOP))
	defer func() { _ = r.Signal(syscall.SIGCONT) }()
	for range 3 {
		if !away() {
			t.Error("a Redis that hangs is said to work")
		}
	}
	if out, err := p.Beside("health", "--http-addr", strings.TrimPrefix(m.base, "http://")); err != nil || !strings.Contains(out, "redis: It does not answer") {
		t.Errorf("health: %v\n%s", err, out)
	}
	must(t, r.Signal(syscall.SIGCONT))
	await.Until(t, "Redis is back", func() bool { return !away() })
}

// A Redis that answers and keeps nothing is said to be away, and why: each process
// counts alone then, and nobody would know.
func TestARedisThatKeepsNothingIsSaid(t *testing.T) {
	for what, set := range map[string]struct{ name, value, back, says string }{
		"full":      {"maxmemory", "1", "0", "Redis is full and refuses what it is told"},
		"a replica": {"replicaof", "127.0.0.1 1", "no one", "Redis is a replica that can only be read"},
	} {
		t.Run(what, func(t *testing.T) {
			r := redistest.Start(t)
			m, p, _ := devServerWith(t, []string{"TILL_REDIS_URL=" + r.URL})
			tell := func(value string) {
				t.Helper()
				args := []any{set.name}
				if set.name == "maxmemory" {
					args = []any{"config", "set", set.name}
				}
				for word := range strings.FieldsSeq(value) {
					args = append(args, word)
				}
				must(t, r.Client.Do(t.Context(), args...).Err())
			}
			state := func() any {
				_, out, err := m.try(http.MethodGet, "/readyz", nil)
				must(t, err)
				data, _ := out["data"].(object)
				return data["state"]
			}
			tell(set.value)
			if got := state(); got != "degraded" {
				t.Errorf("it is %v", got)
			}
			if out, err := p.Beside("doctor"); err == nil || !strings.Contains(out, set.says) {
				t.Errorf("doctor: %v\n%s", err, out)
			}
			tell(set.back)
			await.Until(t, "Redis is back", func() bool { return state() != "degraded" })
		})
	}
}
