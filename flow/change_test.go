package flow_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

func TestAnAttemptIsAskedAboutMoreAndMoreSeldomForADay(t *testing.T) {
	a := trying("a", flow.BankTransfer)
	ends := a.ExpiresAt.Add(flow.WatchAfter)
	for _, c := range []struct{ at, want time.Duration }{
		{0, time.Minute},
		{59 * time.Second, time.Minute},
		{time.Minute, 5 * time.Minute},
		{5 * time.Minute, 15 * time.Minute},
		{15 * time.Minute, 30 * time.Minute},
		{30 * time.Minute, 45 * time.Minute}, // it has ended
		{31 * time.Minute, 45 * time.Minute},
		{45 * time.Minute, time.Hour},
		{time.Hour, 90 * time.Minute},
		{90 * time.Minute, 150 * time.Minute},
		{20 * time.Hour, 24*time.Hour + 30*time.Minute},
	} {
		if next, ok := flow.NextCheck(a, noon.Add(c.at)); !ok || !next.Equal(noon.Add(c.want)) {
			t.Errorf("after %v asked again at %v (%v)", c.at, next.Sub(noon), ok)
		}
	}
	for _, lasts := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 100 * time.Minute, 72 * time.Hour} {
		a := a
		a.ExpiresAt = noon.Add(lasts)
		asked, now, ended := 0, noon, false
		for range 1000 {
			next, ok := flow.NextCheck(a, now)
			if !ok {
				break
			}
			asked++
			// Never later than half an hour while it lives, and then than it is over.
			most := max(30*time.Minute, now.Sub(a.ExpiresAt))
			if !next.After(now) || next.Sub(now) > most {
				t.Fatalf("one of %v is asked about %v after its beginning, %v after it was before", lasts, next.Sub(noon), next.Sub(now))
			}
			ended = ended || next.Equal(a.ExpiresAt)
			now = next
		}
		if live := int(lasts / (30 * time.Minute)); !ended || asked < live+9 || asked > live+13 || !now.Equal(a.ExpiresAt.Add(flow.WatchAfter)) {
			t.Errorf("one of %v is asked about %d times, at its end: %v, the last %v after its beginning", lasts, asked, ended, now.Sub(noon))
		}
	}
	for _, status := range []flow.AttemptStatus{flow.AttemptActive, flow.AttemptExpired, flow.AttemptSuperseded} {
		a.Status = status
		if _, ok := flow.NextCheck(a, ends.Add(-time.Hour)); !ok {
			t.Errorf("%s is not asked about for a day", status)
		}
		if at, ok := flow.NextCheck(a, ends); ok {
			t.Errorf("%s is asked about at %v, after a day", status, at)
		}
	}
}

func TestWhatSucceededOrFailedIsAskedAboutSeldomForADay(t *testing.T) {
	for _, status := range []flow.AttemptStatus{flow.AttemptSucceeded, flow.AttemptFailed} {
		a := trying("a", flow.BankTransfer)
		a.Status, a.Instructions = status, &flow.Instructions{}
		var waits []time.Duration
		for now, ok := noon, true; ok && len(waits) < 100; {
			if now, ok = flow.NextCheck(a, now); ok {
				waits = append(waits, now.Sub(a.ExpiresAt))
			}
		}
		if want := []time.Duration{0, 6 * time.Hour, 12 * time.Hour, 18 * time.Hour, 24 * time.Hour}; !slices.Equal(waits, want) {
			t.Errorf("%s: asked after %v, want %v", status, waits, want)
		}
	}
	refused := trying("a", flow.BankTransfer)
	refused.Status, refused.Instructions = flow.AttemptFailed, nil
	if at, ok := flow.NextCheck(refused, noon); ok {
		t.Errorf("what nobody could pay is asked about at %v", at)
	}
}

func TestATaskThatFailedWaitsLongerEachTimeUpToABound(t *testing.T) {
	for _, c := range []struct {
		kind flow.TaskKind
		want []time.Duration
		most time.Duration
	}{
		{flow.TaskStart, []time.Duration{time.Second, time.Second, 4 * time.Second, 10 * time.Second, 10 * time.Second}, 10 * time.Second},
		{flow.TaskSay, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second}, 15 * time.Second},
		{flow.TaskCheck, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, 10 * time.Minute},
		{flow.TaskExpireSession, []time.Duration{time.Second, 2 * time.Second}, 10 * time.Minute},
	} {
		for n, want := range c.want {
			if got := (flow.Task{Kind: c.kind, Attempts: n}).Retry(); got != want {
				t.Errorf("%s after %d tries waits %v, want %v", c.kind, n, got, want)
			}
		}
		last := time.Duration(0)
		for _, n := range []int{0, 1, 5, 10, 11, 63, 64, 1000, math.MaxInt} {
			got := flow.Task{Kind: c.kind, Attempts: n}.Retry()
			if got < last || got > c.most || got <= 0 {
				t.Errorf("%s after %d tries waits %v", c.kind, n, got)
			}
			last = got
		}
		if last != c.most {
			t.Errorf("%s waits at most %v", c.kind, last)
		}
	}
}

func TestALiveAttemptEndsAtItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := trying("a", flow.Card)
		a.Status = rapid.SampledFrom([]flow.AttemptStatus{flow.AttemptActive, flow.AttemptExpired, flow.AttemptFailed, flow.AttemptSucceeded, flow.AttemptSuperseded}).Draw(t, "status")
		now := a.ExpiresAt.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "ns")))
		want := a.Status == flow.AttemptActive && now.Before(a.ExpiresAt)
		_, found := flow.LiveOf([]flow.Attempt{a}, flow.Card, now)
		if a.Live(now) != want || found != want {
			t.Fatalf("%s at %v is live: %v", a.Status, now, a.Live(now))
		}
	})
}

func TestARefusalIsKnownByItsCode(t *testing.T) {
	cause := errors.New("the disk")
	err := fmt.Errorf("open: %w", &flow.Error{Code: flow.CodeStorage, Message: "Try again.", Err: cause})
	if flow.CodeOf(err) != flow.CodeStorage || !errors.Is(err, &flow.Error{Code: flow.CodeStorage}) || errors.Is(err, &flow.Error{Code: flow.CodeNotFound}) || !errors.Is(err, cause) {
		t.Error(err)
	}
	if flow.CodeOf(cause) != flow.CodeInternal || errors.Is(err, errors.New("x")) {
		t.Error("what has no code is not internal")
	}
	if got := flow.Refuse(flow.CodeNotFound, "no %d", 7).Error(); got != "resource_not_found: no 7" {
		t.Error(got)
	}
}

func TestASessionThatIsOverSaysWhichWay(t *testing.T) {
	for status, code := range map[flow.SessionStatus]flow.Code{
		flow.SessionPaid: flow.CodeSessionPaid, flow.SessionExpired: flow.CodeSessionExpired, flow.SessionCancelled: flow.CodeSessionCancelled, "LOST": flow.CodeInternal,
	} {
		s := open()
		s.Status = status
		if got := flow.CodeOf(s.Closed()); got != code || s.Open() {
			t.Errorf("%s: %s", status, got)
		}
	}
	for _, status := range []flow.SessionStatus{flow.SessionPending, flow.SessionProcessing} {
		s := open()
		s.Status = status
		if s.Closed() != nil || !s.Open() {
			t.Errorf("%s is over", status)
		}
	}
}

func TestAnEndpointIsToldWhatItAskedFor(t *testing.T) {
	all := flow.EventKinds()
	plain := flow.Endpoint{Status: flow.EndpointEnabled}
	some := flow.Endpoint{Status: flow.EndpointEnabled, Events: []flow.EventKind{flow.SessionCreated, flow.ChargeSuccess}}
	off := flow.Endpoint{Status: flow.EndpointDisabled, Events: some.Events}
	var told, named int
	for _, k := range all {
		if plain.Wants(k) == k.OnRequest() {
			t.Errorf("an endpoint that named nothing is told of %s: %v", k, plain.Wants(k))
		}
		if plain.Wants(k) {
			told++
		}
		if some.Wants(k) {
			named++
		}
		if off.Wants(k) {
			t.Errorf("an endpoint that is off is told of %s", k)
		}
		if off.Asks(k) != some.Wants(k) || plain.Asks(k) != plain.Wants(k) {
			t.Errorf("what is asked for in %s depends on who is on", k)
		}
	}
	if told != len(all)-4 || named != 2 {
		t.Errorf("told %d of %d, named %d", told, len(all), named)
	}
}

func TestExceptionsAreASet(t *testing.T) {
	s := open().With(flow.Overpaid)
	twice := s.With(flow.Overpaid).With(flow.PaidLate)
	if len(twice.Exceptions) != 2 || len(s.Exceptions) != 1 || len(twice.Without(flow.Overpaid).Exceptions) != 1 || len(twice.Exceptions) != 2 {
		t.Errorf("%v %v", s.Exceptions, twice.Exceptions)
	}
}
