package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
)

// What an operator sets reaches what it is for: on which days nobody is paid out, and for
// how long words and answers are kept, each by itself.
func TestSettingsReachWhatTheyAreFor(t *testing.T) {
	t.Parallel() // it mostly waits
	const wrote, answered = "leave it at Allen Avenue please", "thanks, says Ngozi"
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answered) }))
	t.Cleanup(sink.Close)
	today, closed := flow.DateOf(time.Now()), strings.Builder{}
	for n := range 20 {
		fmt.Fprintf(&closed, "%s,Declared\n", today.Plus(n+1))
	}
	days := filepath.Join(t.TempDir(), "days.csv")
	must(t, os.WriteFile(days, []byte(closed.String()), 0o600))

	m, p, dir := devServerWith(t, []string{"TILL_HOLIDAYS=" + days})
	m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": sink.URL})
	who := newPayer(m)
	account := m.chosen(who, "is-kept")
	who.says(wrote)
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	who.hears(`(?i)receipt`)
	for ahead, want := range map[int]int{14: 0, 30: 1} {
		run := m.call(http.MethodPost, "/v1/test/settlements/run", object{"date": string(today.Plus(ahead))})
		if n := len(items(run)); n != want {
			t.Errorf("with twenty days closed %d settlements are made %d days ahead, want %d", n, ahead, want)
		}
	}

	kept := func(text string) (places map[string]int) {
		t.Helper()
		must(t, store.Look(t.Context(), store.Config{Schema: store.Checkout, Dir: filepath.Join(dir, "data"), Name: "test"}, func(r store.Reader) (err error) {
			places, err = r.Mentions(t.Context(), text)
			return err
		}))
		return places
	}
	m.until("its answer is kept", func() bool { return len(kept(answered)) > 0 })
	ages := func(by time.Duration, env ...string) {
		t.Helper()
		p.End(os.Interrupt)
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "data", "test.db"))
		must(t, err)
		for _, change := range []string{"UPDATE log SET at = at - ?", "UPDATE delivery_attempts SET at = at - ?", "UPDATE tasks SET due = MIN(due, ?) WHERE kind = 'chat.retention'"} {
			_, err := db.ExecContext(t.Context(), change, by.Milliseconds())
			must(t, err)
		}
		must(t, db.Close())
		p = start(t, dir, env, "dev", "--http-addr", strings.TrimPrefix(m.base, "http://"))
	}
	const day = 24 * time.Hour
	ages(10*day, "TILL_RETENTION_CHAT=168h", "TILL_RETENTION_WEBHOOKS=336h")
	m.until("her words are gone", func() bool { return len(kept(wrote)) == 0 })
	if len(kept(answered)) == 0 {
		t.Error("what her merchant's endpoint answered is gone before its time")
	}
	ages(15*day, "TILL_RETENTION_CHAT=0s", "TILL_RETENTION_WEBHOOKS=336h")
	m.until("what her merchant's endpoint answered is gone", func() bool { return len(kept(answered)) == 0 })
}
