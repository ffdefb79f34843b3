package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"till/cmd/till/meter"
	"till/config"
	"till/flow"
	"till/rail"
)

// away is a bank that answers nothing until it is back.
type away struct {
	rail.Closed

	back bool
}

// Check implements rail.Rail.
func (b *away) Check(context.Context, string) ([]flow.Notice, error) {
	if b.back {
		return nil, nil
	}
	return nil, rail.ErrUnavailable
}

// A Redis that does not answer, or not yet, keeps nothing from starting; one that
// refuses us is a wrong setting.
func TestARedisThatIsAwayKeepsNothingFromStarting(t *testing.T) {
	there := miniredis.RunT(t)
	there.RequireAuth("open sesame")
	loads, crowded := miniredis.RunT(t), miniredis.RunT(t)
	loads.SetError("LOADING Redis is loading the dataset in memory")
	crowded.SetError("ERR max number of clients reached")
	for url, want := range map[string]string{
		"redis://" + there.Addr():                "redis lets us do nothing",
		"redis://:open%20sesame@" + there.Addr(): "",
		"redis://127.0.0.1:1/0":                  "",
		"redis://" + loads.Addr():                "",
		"redis://" + crowded.Addr():              "",
	} {
		a := &app{set: config.Settings{RedisURL: config.Secret(url)}, log: slog.New(slog.DiscardHandler)}
		err := a.openRedis(t.Context())
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: %v", url, err)
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}
}

// A full disk and a bank that does not answer are said, and no longer than they
// last.
func TestPartsSayThatTheyAreAway(t *testing.T) {
	free, failed := uint64(1<<30), error(nil)
	now := time.Now()
	a := &app{meter: meter.New("test", func() time.Time { return now })}
	a.checkDisk(func(string) (uint64, uint64, error) { return free, 1 << 40, failed })
	a.checkBank()
	says := func(when string, want ...bool) {
		t.Helper()
		for i, got := range a.ready(t.Context()) {
			if got.OK != want[i] || got.OK != (got.Reason == "") || got.OK != (got.Err == nil) {
				t.Errorf("%s: %+v", when, got)
			}
		}
	}
	says("at first", true, true)
	bank := &away{}
	timed := a.meter.Rail(flow.Test, bank)
	asks := func(n int) {
		for range n {
			_, _ = timed.Check(t.Context(), "wsp_ref_1")
		}
	}
	asks(4)
	says("a few calls went unanswered", true, true)
	asks(1)
	says("the bank is away", true, false)
	free = 1<<20 - 1
	says("and the disk is full", false, false)
	failed = errors.New("not known here")
	says("the system does not say", true, false)
	free, failed, bank.back = 1<<20, nil, true
	asks(1)
	says("all is back", true, true)
	bank.back = false
	asks(5)
	says("the bank is away once more", true, false)
	now = now.Add(time.Hour + time.Minute)
	says("it is asked about money that waits once an hour", true, false)
	now = now.Add(29 * time.Minute)
	says("nobody asked it for long", true, true)
	asks(1)
	says("it is still away, who asks", true, false)
	bank.back = true
	asks(1)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for range 9 {
		_, _ = timed.Check(gone, "wsp_ref_1")
	}
	says("callers hung up, which says nothing of the bank", true, true)
}

// Whoever runs Till on WhatsApp's own network has set no address of one: what could be
// wrong is another thing then.
func TestWhatToLookAtDependsOnWhoseNetworkIsNotReached(t *testing.T) {
	t.Parallel()
	if theirs, own := notReached(""), notReached("127.0.0.1:8090"); strings.Contains(theirs, "--") || !strings.Contains(own, "--whatsapp-dial") {
		t.Errorf("of WhatsApp's own: %q, and of another: %q", theirs, own)
	}
}

// Another program that holds a database keeps everything from being kept. Readiness
// says so, and the doctor, to whom it sends: every part that it looks at by itself is
// well meanwhile.
func TestTheDoctorSeesThatNothingCanBeKept(t *testing.T) {
	t.Parallel()
	m, p, dir := devServerWith(t, nil)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "data", "test.db")+"?mode=rw&_txlock=immediate")
	must(t, err)
	defer func() { must(t, db.Close()) }()
	held, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	addr := strings.TrimPrefix(m.base, "http://")
	if out, err := p.Beside("health", "--http-addr", addr); err == nil || !strings.Contains(out, "store: It does not answer, or keeps nothing: till doctor says why.") {
		t.Errorf("health: %v\n%s", err, out)
	}
	const fault = "fail  port        Till answers on %s and can serve nobody: store: It does not answer, or keeps nothing"
	if out, err := p.Beside("doctor", "--http-addr", addr); err == nil || !strings.Contains(out, fmt.Sprintf(fault, addr)) || !strings.Contains(out, "fuser -v ") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	must(t, held.Rollback())
	out, _ := p.Beside("doctor", "--http-addr", addr) // that ends as the machine is: its disk may be slow, or nearly full
	if !strings.Contains(out, "ok    port        Till answers on "+addr+".") {
		t.Errorf("doctor, once it is free again:\n%s", out)
	}
}
