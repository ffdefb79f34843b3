//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// mostAsked is how many calls are under way at once at most. Each keeps its connection,
// as a program's pool does: to make a new one for each call would cost more than the
// call, on both sides.
const mostAsked = 4096

// overload offers five times what may come, and looks at what is let in, what is
// refused and how soon all is as before. Once each merchant's bucket is what
// refuses; once nothing but the machine does.
func overload(b *testing.B, t *table) {
	b.Helper()
	const limit = 30 // calls a second of each key: 8 keys, two calls for a checkout
	held := newWorld(b, settings{limit: limit})
	held.overloaded(t, fmt.Sprintf("overload, 5 × what the keys may (%d/s each)", limit), 5*limit*merchants, true)
	held.till.Kill()
	bare := newWorld(b, settings{limit: 1_000_000})
	most, _, err := closed(64, time.Duration(size(3000, 1000))*time.Millisecond, func(i int) error {
		_, _, err := bare.open(context.Background(), i, "headless")
		return err
	})
	must(b, err)
	progress("  %.0f creates a second by 64 that wait for their answers", most)
	bare.overloaded(t, fmt.Sprintf("overload without any limit, 5 × %.0f creates/s", most), 5*most, false)
}

// overloaded offers sessions at a rate that is too much.
func (w *world) overloaded(t *table, what string, rate float64, refuses bool) {
	seconds := float64(size(60, 10))
	rate = min(rate, 20_000)
	var mu sync.Mutex
	var accepted times
	codes, silent := map[int]int{}, 0
	o := pace(rate, int(rate*seconds), mostAsked, func(i int) error {
		began := time.Now()
		_, _, err := w.open(context.Background(), i, "headless")
		mu.Lock()
		defer mu.Unlock()
		if no, ok := errors.AsType[*refused](err); ok {
			codes[no.status]++
			if no.wait == "" {
				silent++
			}
			return nil
		}
		if err == nil {
			codes[http.StatusCreated]++
			accepted = append(accepted, time.Since(began))
		}
		return err
	})
	over := time.Now()
	recovered := time.Duration(-1)
	for time.Since(over) < tilltest.Patience { // a second at a time, far below what may come
		calm := pace(20, 20, 64, func(i int) error {
			_, _, err := w.open(context.Background(), i, "headless")
			return err
		})
		if calm.failed() == 0 && calm.Took.at(1) < 250 {
			recovered = time.Since(over) - calm.Elapsed
			break
		}
	}
	allowed := codes[http.StatusCreated] + codes[http.StatusTooManyRequests] + codes[http.StatusServiceUnavailable]
	t.Judge(what+": answers", fmt.Sprintf("%v of %d, %d not begun%s; %d refusals without Retry-After", codes, o.Count, o.Missed, reasons(o.Faults), silent), "",
		"201, 429, 503", o.failed() == 0 && silent == 0 && allowed == o.Count && (!refuses || codes[http.StatusTooManyRequests] > 0))
	t.Judge("p99 of those let in", fmt.Sprintf("%s at %.0f/s", ms(accepted.at(0.99)), float64(len(accepted))/o.Elapsed.Seconds()), "", "≤ 1 s", accepted.at(0.99) <= 1000)
	t.Judge("as before after", fmt.Sprintf("%.1f s", recovered.Seconds()), "", "≤ 10 s", recovered >= 0 && recovered <= 10*time.Second)
}
