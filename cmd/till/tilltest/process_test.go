package tilltest_test

import (
	"testing"

	"till/cmd/till/tilltest"
)

// What a process said before it ended is found after its end, each time.
func TestALineOfAProcessThatHasEnded(t *testing.T) {
	for range 10 {
		p := tilltest.StartOther(t, t.TempDir(), nil, "sh", "-c", "echo one; echo two; echo 'the third line'")
		<-p.Ended()
		if got := p.Line(`^the (\w+) line$`); got[1] != "third" {
			t.Errorf("it said %q", got)
		}
	}
}
