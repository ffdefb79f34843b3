package checkout

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
)

var morning = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func TestTriesAreCountedInASlidingWindow(t *testing.T) {
	s := newTries()
	take := func(at time.Duration) error { return s.take(morning.Add(at), try{"a", 3}) }
	for n := range 3 {
		if err := take(time.Duration(n) * time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	err := take(4 * time.Minute)
	known, ok := errors.AsType[*flow.Error](err)
	if !ok || known.Code != flow.CodeRateLimited || known.RetryAfter != 11*time.Minute || known.Message != "Too many tries. Try again in 11 minutes." {
		t.Fatalf("the fourth: %#v", err)
	}
	if err := s.take(morning, try{"b", 3}); err != nil {
		t.Errorf("another name: %v", err)
	}
	if take(15*time.Minute-time.Millisecond) == nil || take(15*time.Minute) != nil || take(15*time.Minute) == nil {
		t.Error("one place is free when the first try is a quarter of an hour old, and only one")
	}
	s.forgive(morning.Add(15*time.Minute), "a")
	if take(15*time.Minute) != nil {
		t.Error("a forgiven try counts")
	}
	s.forget("a")
	if take(15*time.Minute) != nil || take(-time.Hour) != nil {
		t.Error("a forgotten name counts, or a clock that was set back locks out")
	}
}

// A refusal under one name counts under none.
func TestATryThatIsRefusedCountsNowhere(t *testing.T) {
	s := newTries()
	for n := range 50 {
		if err := s.take(morning, try{fmt.Sprintf("pair %d", n), 10}, try{"place", 50}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if s.take(morning, try{"pair x", 10}, try{"place", 50}) == nil {
			t.Fatal("the 51st of a place")
		}
	}
	if s.take(morning, try{"pair x", 1}) != nil {
		t.Error("what was refused counts")
	}
}

func TestTriesAtOnceAreCountedOnce(t *testing.T) {
	s := newTries()
	var let atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for n := range 10 {
				if s.take(morning.Add(time.Duration(n)), try{"a", 10}) == nil {
					let.Add(1)
				}
			}
		})
	}
	all.Wait()
	if let.Load() != 10 {
		t.Errorf("%d tries of 10", let.Load())
	}
}

func TestTriesAreRememberedOfSoManyAlone(t *testing.T) {
	s := newTries()
	for n := range maxTried + 1000 {
		if err := s.take(morning.Add(time.Duration(n)), try{fmt.Sprint(n), 1}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.seen) > maxTried {
		t.Errorf("%d names are remembered", len(s.seen))
	}
}

func TestKeysAreRememberedOfSoManyAlone(t *testing.T) {
	m := newKeyMemory()
	for n := range maxKeys + 100 {
		k := flow.Key{ID: fmt.Sprint(n), Hash: fmt.Sprint(n)}
		m.put(k.Hash, knownKey{key: k, since: morning}, 0)
		m.use(k.Hash, k, morning)
	}
	if len(m.known) > maxKeys || len(m.used) > maxKeys {
		t.Errorf("%d keys and %d uses are remembered", len(m.known), len(m.used))
	}
}

// What was read before a change is not remembered after it.
func TestAKeyThatChangedWhileItWasReadIsNotRemembered(t *testing.T) {
	m := newKeyMemory()
	_, turn, _ := m.get("h", morning)
	m.forget(func(k flow.Key) bool { return k.ID == "1" })
	m.put("h", knownKey{key: flow.Key{ID: "1"}, since: morning}, turn)
	if _, _, ok := m.get("h", morning); ok {
		t.Error("an old key is remembered")
	}
	_, turn, _ = m.get("h", morning)
	m.put("h", knownKey{key: flow.Key{ID: "1"}, since: morning}, turn)
	for at, want := range map[time.Duration]bool{0: true, KeyMemory - 1: true, KeyMemory: false, -KeyMemory: false} {
		if _, _, ok := m.get("h", morning.Add(at)); ok != want {
			t.Errorf("after %v: %v", at, ok)
		}
	}
}
