//go:build linux

package load

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// times are how long things took.
type times []time.Duration

// at is the time within which such a part of them was done, in milliseconds.
func (t times) at(part float64) float64 {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return float64(t[int(part*float64(len(t)-1))].Microseconds()) / 1000
}

// offered is what a paced run did.
type offered struct {
	Count   int // began
	Missed  int // not begun, as too many were under way
	Took    times
	Faults  map[string]int
	Elapsed time.Duration
}

// pace begins something at a fixed rate, whatever becomes of what began before,
// and measures each from the moment at which it was to begin: who waits is not
// left out. No more than atMost are under way; what would be is missed, and told.
func pace(perSecond float64, n, atMost int, do func(i int) error) *offered {
	o := &offered{Faults: map[string]int{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var under atomic.Int64
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
		time.Sleep(time.Until(due)) // this is the pace
		if under.Load() >= int64(atMost) {
			o.Missed++
			continue
		}
		o.Count++
		under.Add(1)
		wg.Go(func() {
			err := do(i)
			took := time.Since(due)
			under.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				o.Faults[err.Error()]++
				return
			}
			o.Took = append(o.Took, took)
		})
	}
	wg.Wait()
	o.Elapsed = time.Since(began)
	return o
}

// failed is how many did not come to their end.
func (o *offered) failed() (n int) {
	for _, k := range o.Faults {
		n += k
	}
	return n
}

// closed does something by so many at once, each after its last, for a while, and
// returns how many a second were done, and how long each took.
func closed(atOnce int, lasts time.Duration, do func(i int) error) (perSecond float64, took times, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var n atomic.Int64
	began := time.Now()
	for range atOnce {
		wg.Go(func() {
			var mine times
			var fault error
			for now := began; now.Sub(began) < lasts && fault == nil; {
				fault = do(int(n.Add(1)))
				next := time.Now()
				mine, now = append(mine, next.Sub(now)), next
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			if fault != nil {
				err = fault
			}
		})
	}
	wg.Wait()
	return float64(len(took)) / time.Since(began).Seconds(), took, err
}
