package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till/api"
	"till/config"
	"till/flow/checkout"
	"till/rail/sandbox"
)

// Processes that share a data dir share the clock: what one moved another one
// neither takes back nor misses.
func TestTheClockIsSharedByItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "clock")
	one, other := newClock(file), newClock(file)
	moves := func(c *clock, seconds int64, ahead time.Duration) {
		t.Helper()
		now, moved := c.Advance(seconds)
		if off := time.Until(now) - ahead; !moved || off < -time.Minute || off > time.Minute {
			t.Errorf("moved by %d s the clock is %v ahead, not %v", seconds, time.Until(now), ahead)
		}
	}
	moves(one, 7200, 2*time.Hour)
	moves(other, 3600, 3*time.Hour)
	moves(one, 0, 3*time.Hour)
	if again := time.Until(newClock(file).Now()); again < 3*time.Hour-time.Minute {
		t.Errorf("after a restart it is %v ahead", again)
	}
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan struct{})
	ended := make(chan error)
	go func() { ended <- one.follow(ctx, func() { close(heard) }) }()
	moves(other, 3600, 4*time.Hour)
	<-heard
	stop()
	if err := <-ended; err != nil || time.Until(one.Now()) < 4*time.Hour-time.Minute {
		t.Errorf("one that follows is %v ahead, %v", time.Until(one.Now()), err)
	}
}

// A file that says nothing any more moves the test clock back to the machine's time, which
// nobody would learn from what is kept at a later time.
func TestAClockThatIsLostIsSaid(t *testing.T) {
	t.Parallel()
	for text, warnings := range map[string]int{"": 1, "72000000000": 0, "x72000000000": 1} {
		set := config.Settings{HTTPAddr: "127.0.0.1:0", DataDir: t.TempDir(), RateLimitTest: 50, RateLimitLive: 50, WhatsAppSends: 1, WhatsAppChats: 1, WhatsAppNumbers: 1}
		must(t, os.WriteFile(filepath.Join(set.DataDir, "clock"), []byte(text), 0o600))
		var log bytes.Buffer
		preparedApp(t, set, slog.New(slog.NewTextHandler(&log, nil)), false)
		if n := strings.Count(log.String(), "the test clock is back"); n != warnings {
			t.Errorf("a clock of %q is told of %d times: %s", text, n, &log)
		}
	}
}

// Strangers have test keys where the number is a real one: none of them moves the
// time of the others. On a network of one's own everybody may.
func TestTheClockStandsOnTheRealNetwork(t *testing.T) {
	for network, want := range map[string]int{"local": http.StatusOK, "whatsapp": http.StatusForbidden} {
		t.Run(network, func(t *testing.T) {
			set := config.Settings{
				HTTPAddr: "127.0.0.1:0", DataDir: t.TempDir(), WhatsAppNetwork: network, RateLimitTest: 50, RateLimitLive: 50,
				WhatsAppSends: 1, WhatsAppChats: 1, WhatsAppNumbers: 1,
			}
			server, key := opened(t, set)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/test/clock", strings.NewReader(`{"advanceSeconds":60}`))
			r.Header.Set("Authorization", "Bearer "+key)
			r.Header.Set("Content-Type", "application/json")
			answer, err := server.Test(r, time.Minute)
			must(t, err)
			defer answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("it answers %d, not %d", answer.StatusCode, want)
			}
		})
	}
}

// A webhook is signed by the real time, however far the clock was moved, and till try
// judges it by that.
func TestATrialHoldsWhereTheClockWasMoved(t *testing.T) {
	t.Parallel()
	m, p, _ := devServer(t)
	for _, jump := range []time.Duration{time.Second, time.Hour, 24 * time.Hour} {
		m.call(http.MethodPost, "/v1/test/clock", object{"advanceSeconds": int(jump.Seconds())})
		if out, err := p.Beside("try"); err != nil {
			t.Errorf("after a jump by %s: %v: %s", jump, err, out)
		}
	}
}

// preparedApp is an app that is made and not opened, until the test ends.
func preparedApp(t *testing.T, set config.Settings, log *slog.Logger, dev bool) *app {
	t.Helper()
	a, err := prepare(t.Context(), set, log, dev)
	must(t, err)
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// opened is the API as it is wired for some settings, and a test key. Nothing runs,
// and no network is asked.
func opened(t *testing.T, set config.Settings) (*api.Server, string) {
	t.Helper()
	ctx := t.Context()
	a := preparedApp(t, set, slog.New(slog.DiscardHandler), true)
	must := func(err error) {
		t.Helper()
		must(t, err)
	}
	test, live, err := a.openStores(ctx, true)
	must(err)
	must(a.openBoards(ctx, test, live))
	a.rail, err = sandbox.NewRail(sandbox.RailConfig{BaseURL: "http://127.0.0.1:1", Secret: "a secret that no bank knows", Now: time.Now})
	must(err)
	must(a.openFleet(ctx, test, io.Discard, &network{}))
	must(a.openServices(ctx, test, live, ""))
	server, err := a.api(nil, false)
	must(err)
	made, err := a.accounts.Demo(ctx, demoEmail, demoName, func(checkout.SignedUp) error { return nil })
	must(err)
	return server, made.SecretKey
}

// Merchants move the clock as often as they like: it must never run over and go
// back, nor go back when the program starts again.
func TestTheClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "clock")
	c := newClock(file)
	const step = 400 * 24 * 3600
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for last := c.Now(); ; {
				now, moved := c.Advance(step)
				if now.Before(last) {
					t.Errorf("time went back from %v to %v", last, now)
					return
				}
				if last = now; !moved {
					return
				}
			}
		})
	}
	wg.Wait()
	ahead := time.Until(c.Now())
	if ahead > maxMoved || ahead < maxMoved-step*time.Second {
		t.Errorf("the clock ended %v ahead", ahead)
	}
	if _, moved := c.Advance(1 << 62); moved {
		t.Error("it was moved by more than time holds")
	}
	if again := newClock(file).Now(); again.Before(c.Now().Add(-time.Minute)) {
		t.Errorf("after a restart it is %v, and was %v", again, c.Now())
	}
}
