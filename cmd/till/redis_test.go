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
	waitReady(m)
	away := func() bool {
		began := time.Now()
		status, out, err := m.try(http.MethodGet, "/readyz", nil)
		if took := time.Since(began); err != nil || status != http.StatusOK || took > 2*time.Second {
			t.Errorf("asked whether it is ready it says %d after %v: %v, %v", status, took, out, err)
		}
		data, _ := out["data"].(object)
		return data["state"] == "degraded"
	}
	if err := r.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Signal(syscall.SIGCONT) }()
	for range 3 {
		if !away() {
			t.Error("a Redis that hangs is said to work")
		}
	}
	if out, err := p.Beside("health", "--http-addr", strings.TrimPrefix(m.base, "http://")); err != nil || !strings.Contains(out, "redis: It does not answer") {
		t.Errorf("health: %v\n%s", err, out)
	}
	if err := r.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "Redis is back", func() bool { return !away() })
}
