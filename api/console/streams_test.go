package console

import (
	"fmt"
	"testing"
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
