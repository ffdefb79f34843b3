package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A payer wrote that they paid while nothing ran, and the time of the account number went
// by: what they wrote is heard before it is said by the clock that it is over.
func TestWhatWasWrittenWhileNothingRanIsHeardBeforeTheClock(t *testing.T) {
	t.Parallel() // it mostly waits
	o := newOutside(t)
	x, m := running(t, o)
	p := newPayer(m)
	_, text := m.openChat(500_000, "missed")
	p.says(text)
	p.hears(`1 Bank transfer`)
	p.says("1")
	p.hears(`^\d{10}$`)
	x.p.Kill()
	phone, err := url.PathUnescape(p.phone)
	must(t, err)
	_, err = o.network.SendQuote(t.Context(), strings.TrimPrefix(phone, "+"), botNumber, "I have paid", "")
	must(t, err)
	data, err := filepath.Glob(filepath.Join(x.dir, "*", "accounts.db"))
	if err != nil || len(data) != 1 {
		t.Fatalf("the data dir is not found: %v, %v", data, err)
	}
	moved := strconv.FormatInt(int64(31*time.Minute), 10)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(data[0]), "clock"), []byte(moved), 0o600))
	x.start()
	p.hears(`Checking with the bank`)
	if n := p.heardTimes(`have run out`); n != 0 {
		t.Errorf("who says that they paid is told that it is over:\n%s", p.transcript())
	}
}
