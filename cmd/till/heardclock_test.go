package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

func TestABanksClockIsHeardFromItsAnswers(t *testing.T) {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Date", r.URL.Query().Get("date")) }))
	t.Cleanup(bank.Close)
	c := &heardClock{next: http.DefaultTransport}
	if _, known, err := c.Now(t.Context()); known || err != nil {
		t.Errorf("a clock is known that nobody asked (%v)", err)
	}
	dated := func(ahead time.Duration) string { return time.Now().Add(ahead).UTC().Format(http.TimeFormat) }
	for _, answer := range []struct {
		date  string
		ahead time.Duration
	}{{dated(0), 0}, {dated(time.Hour), time.Hour}, {"yesterday", time.Hour}} { // what is no date changes nothing
		res, err := (&http.Client{Transport: c}).Get(bank.URL + "?" + url.Values{"date": {answer.date}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		said, known, err := c.Now(t.Context())
		if off := time.Until(said) - answer.ahead; !known || off.Abs() > 2*time.Second || err != nil {
			t.Errorf("after the date %q the bank's clock is %s off (%t, %v)", answer.date, off, known, err)
		}
	}
}
