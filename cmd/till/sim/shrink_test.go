package sim

import (
	"io"
	"testing"
)

// A fault that one paid session is enough for is shrunk to what leads to one.
func TestShrinkLeavesWhatTheFaultNeeds(t *testing.T) {
	const most = 3
	tpl := template1(t, nil)
	out := shrink(play{seed: 2, tpl: tpl, meddles: func(w *world) {
		if w.book.envs[0].conn == nil {
			return
		}
		for _, s := range w.book.envs[0].sessions {
			if s.status == "PAID" {
				w.breaks("I3", "somebody paid, which this test takes for a fault")
				return
			}
		}
	}}, io.Discard)
	if out.Result.Broken == nil || out.Result.Broken.Invariant != "I3" {
		t.Fatalf("the fault is lost: %+v", out)
	}
	if len(out.Left) == 0 || len(out.Left) > most || out.Tries > maxTries {
		t.Errorf("want at most %d of %d actions left, got %v after %d tries", most, out.Of, out.Left, out.Tries)
	}
}
