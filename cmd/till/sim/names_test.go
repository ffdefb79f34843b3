package sim

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Ids are found as the expression says that they are written.
func TestIdsAreFoundInATrace(t *testing.T) {
	t.Parallel()
	says := regexp.MustCompile(`[a-z]+(?:_[a-z]+)*_[0-9a-z]{26}\b|ttb_[0-9a-f]{32}`)
	const tail = "01jd7qzv3x8m2k9p4r6t0w5y1b"
	parts := []string{
		"wsp", "wsp_sess", "_", "__", "ttb", "xttb", tail, tail[:25], tail + "0", "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdeg", "₦", " of ", "/", "A", "7",
		"wsp_sess_" + tail, "ttb_0123456789abcdef0123456789abcdef",
	}
	w := newWorld(1, &template{})
	w.name("wsp_sess_"+tail, "the session")
	met := 0
	for seed := range uint64(50_000) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var text strings.Builder
		for range 1 + dice.IntN(8) {
			_, _ = text.WriteString(parts[dice.IntN(len(parts))]) // a builder never fails to be written to
		}
		want := says.ReplaceAllStringFunc(text.String(), func(id string) string {
			met++
			if id == "wsp_sess_"+tail {
				return "the session"
			}
			return id[:strings.LastIndexByte(id, '_')+1] + "…"
		})
		if got := w.canonical(text.String()); got != want {
			t.Fatalf("%s is called %s, and not %s", text.String(), got, want)
		}
	}
	if met < 10_000 {
		t.Errorf("%d ids were met", met)
	}
}
