package sim

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// The bounds of shrinking.
const (
	maxTries     = 200             // simulations of a part of the seed
	shrinksFor   = 2 * time.Minute // of real time; a simulation that is under way then is ended
	shrinksAfter = time.Hour       // how much longer a try lasts than the seed did until it failed
)

// Shrunk is what is left of a seed that fails: leaving out any one of the actions
// was tried, and the same invariant did not break any more, as far as the bounds
// allowed to try.
type Shrunk struct {
	Result Result   // of what is left
	Left   []Action // of the seed's
	Of     int      // how many it has
	Tries  int
	Ended  bool // by a bound, and not because nothing more can be left out
}

// Shrink cuts a seed that fails down to the actions that it needs to break the
// same invariant. words is where progress goes. A seed that holds comes back as
// it is, with no invariant broken.
func Shrink(seed uint64, words io.Writer) (s Shrunk, err error) {
	t, clean, err := prepared(nil)
	if err != nil {
		return Shrunk{}, err
	}
	defer func() { err = errors.Join(err, clean()) }()
	return shrink(play{seed: seed, tpl: t}, words), nil
}

// shrink is Shrink of a seed that is played so.
func shrink(p play, words io.Writer) Shrunk {
	began := time.Now() // real time, for who waits
	once := func() (r Result) {
		p.goals = newGoals()
		inBubble(func() { r = p.run() })
		return r
	}
	out := Shrunk{Result: once()}
	was := out.Result.Broken
	out.Left, out.Of = out.Result.acts, len(out.Result.acts)
	if was == nil {
		return out
	}
	if was.age < lasts { // one that is found at the end is looked for until then
		p.until = was.age + shrinksAfter
	}
	holds := func(keep []Action) bool {
		out.Tries++
		p.only(numbers(keep))
		r := once()
		if r.Broken == nil || r.Broken.Invariant != was.Invariant {
			return false
		}
		out.Result, out.Left = r, keep
		return true
	}
	said := began
	for size := len(out.Left); size > 0; {
		fewer := false
		for i := 0; i < len(out.Left); {
			now := time.Now()
			if out.Ended = out.Tries >= maxTries || now.Sub(began) > shrinksFor; out.Ended {
				return out
			}
			if now.Sub(said) > sayEvery {
				said = now
				_, _ = fmt.Fprintf(words, "%d of %d actions left after %d tries\n", len(out.Left), out.Of, out.Tries)
			}
			keep := append(append([]Action{}, out.Left[:i]...), out.Left[min(i+size, len(out.Left)):]...)
			if holds(keep) {
				fewer = true
			} else {
				i += size
			}
		}
		if size == 1 && !fewer {
			break
		}
		size = max(size/2, 1)
	}
	return out
}

func numbers(list []Action) []int {
	out := make([]int, len(list))
	for i, a := range list {
		out[i] = a.N
	}
	return out
}
