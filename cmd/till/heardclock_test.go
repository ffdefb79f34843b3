package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

func TestABanksClockIsHeardFromItsAnswers(t *testing.T) {
	var passed atomic.Int64
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := &heardClock{next: http.DefaultTransport, now: func() time.Time { return start.Add(time.Duration(passed.Load())) }}
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		took, _ := time.ParseDuration(r.URL.Query().Get("took"))
		passed.Add(int64(took))
		w.Header().Set("Date", r.URL.Query().Get("date"))
	}))
	t.Cleanup(bank.Close)
	if _, known, err := c.Now(t.Context()); known || err != nil {
		t.Errorf("a clock is known that nobody asked (%v)", err)
	}
	dated := func(ahead time.Duration) string { return start.Add(ahead).Format(http.TimeFormat) }
	for _, answer := range []struct {
		date  string
		took  time.Duration
		ahead time.Duration // what is believed by then
	}{
		{dated(3 * time.Second), 0, 3 * time.Second},
		{dated(time.Hour), 800 * time.Millisecond, time.Hour},
		{dated(0), 2 * time.Second, time.Hour}, // nobody knows when in these two seconds
		{"yesterday", 0, time.Hour},
	} {
		res, err := (&http.Client{Transport: c}).Get(bank.URL + "?" + url.Values{"date": {answer.date}, "took": {answer.took.String()}}.Encode())
		must(t, err)
		must(t, res.Body.Close())
		said, known, err := c.Now(t.Context())
		if off := said.Sub(c.now()) - answer.ahead; !known || off.Abs() > time.Second || err != nil {
			t.Errorf("after the date %q, in %s, the bank's clock is %s off (%t, %v)", answer.date, answer.took, off, known, err)
		}
	}
	passed.Add(int64(dateLasts))
	if said, known, _ := c.Now(t.Context()); known {
		t.Errorf("what was heard ten minutes ago is believed: %v", said)
	}
}
