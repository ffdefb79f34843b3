package console

import (
	"fmt"
	"testing"
	"time"
)

// Few who open all that they may leave room for everybody else, and however many they
// are, whoever has none gets one before they get another.
func TestFewAccountsDoNotTakeEveryStream(t *testing.T) {
	for _, greedy := range []int{1, 6, 40, 120} {
		var s streams
		for took := true; took; {
			took = false
			for i := range greedy {
				took = s.takes(fmt.Sprintf("account %d", i)) || took
			}
		}
		if s.all == 0 || s.all > maxStreams || s.of["account 0"] > maxStreamsEach {
			t.Errorf("%d accounts have %d streams, one of them %d", greedy, s.all, s.of["account 0"])
		}
		if !s.takes("a newcomer") {
			t.Errorf("%d accounts have all %d streams", greedy, s.all)
		}
	}
}

// An inbox that nobody looks at any more is not kept in memory, with who waited in it; one
// that is looked at is one for all.
func TestInboxesThatNobodyLooksAtAreForgotten(t *testing.T) {
	now := time.Now()
	c := &Console{cfg: Config{Real: func() time.Time { return now }}}
	for _, place := range []string{"ada.test", "bola.test"} {
		q := c.queueAt(place)
		q.read, q.last = now, []byte("Bola waits")
	}
	now = now.Add(streamLife + time.Second)
	open := c.queueAt("bola.test")
	if _, kept := c.queues.Load("ada.test"); kept {
		t.Error("who waited where nobody looks any more is still in memory")
	}
	if c.queueAt("bola.test") != open {
		t.Error("two who look at one inbox have two")
	}
}
