package sim

import (
	"strings"
	"testing"

	"till/flow/store/storetest"
)

func template1(t *testing.T, at otherStore) *template {
	t.Helper()
	tpl, clean, err := prepared(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clean(); err != nil { // something of the service is still open
			t.Error(err)
		}
	})
	return tpl
}

func TestTheSameSeedIsTheSameWeek(t *testing.T) {
	tpl := template1(t, nil)
	for seed := uint64(1); seed <= 1; seed++ {
		var hash [2]string
		for i := range hash {
			var r Result
			inBubble(func() { r = play{seed: seed, tpl: tpl, goals: newGoals()}.run() })
			if r.Broken != nil {
				t.Fatalf("seed %d: %v\n%s", seed, r.Broken, strings.Join(r.Last, "\n"))
			}
			if r.Sessions < 50 || r.Steps < 100 {
				t.Errorf("seed %d is hardly a week: %+v", seed, r)
			}
			hash[i] = r.Hash
		}
		if hash[0] != hash[1] {
			t.Errorf("seed %d came out as %s and as %s", seed, hash[0], hash[1])
		}
	}
}

func TestMain(m *testing.M) { storetest.Main(m) }
