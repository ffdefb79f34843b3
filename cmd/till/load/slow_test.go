//go:build linux

package load

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// slowWay is how a client is slow: what it sends at once, what it drips, a piece
// each half second, and whether it reads as slowly.
type slowWay struct {
	name, first, drip string
	reads             bool
}

func slowWays() []slowWay {
	const host = " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	return []slowWay{
		{name: "headers (-H)", first: "GET /livez" + host, drip: "X-a: b\r\n"},
		{name: "bodies (-B)", first: "POST /v1/whatsapp/checkout/sessions" + host + "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{", drip: " "},
		{name: "reading (-X)", first: "GET /openapi.yaml" + host + "\r\n", reads: true},
	}
}

// A crowd of clients that are slow on purpose keeps nobody from being served, and
// nothing of it is left.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	w := newWorld(t, settings{limit: 1_000_000})
	for _, way := range slowWays() {
		// Who waits for slow ones to be sent away waits for as long as those are given.
		// What a busy machine does to less than that is the benchmark's to judge.
		w.slow(t, way, 60, time.Second, func(times) float64 { return float64(slowGiven.Milliseconds()) })
	}
}

// BenchmarkFaultSlow does that with 2,000 of each kind, for TILL_FAULT_SLOW (4m)
// each: make fault-slow.
func BenchmarkFaultSlow(b *testing.B) {
	if b.N > 1 {
		b.Skip("one run is enough: -benchtime 1x")
	}
	lasts := 4 * time.Minute
	if text := os.Getenv("TILL_FAULT_SLOW"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil || lasts < 10*time.Second {
			b.Fatalf("TILL_FAULT_SLOW %q cannot be used: give 10s or more, as 1m", text)
		}
	}
	w := newWorld(b, settings{limit: 1_000_000})
	for _, way := range slowWays() {
		progress("%s", w.slow(b, way, size(2000, 200), lasts, func(alone times) float64 {
			return max(20, 2*alone.at(0.99)) // what is below 20 ms holds nobody up
		}))
	}
}

// slowGiven is how long Till waits for the next of a request before it sends its
// client away.
const slowGiven = 10 * time.Second

// slow measures other clients alone, and beside so many slow ones that come back
// whenever they are sent away. most is how many milliseconds others' p99 may come
// to then, by what it was alone.
func (w *world) slow(tb testing.TB, way slowWay, n int, lasts time.Duration, most func(alone times) float64) string {
	tb.Helper()
	served := func() *offered {
		return pace(50, int(50*lasts.Seconds()), 256, func(i int) error {
			session, _, err := w.open(context.Background(), i, "headless")
			if err != nil {
				return err
			}
			return w.call(context.Background(), http.MethodGet, w.url("/v1/whatsapp/checkout/sessions/"+session), w.keys[i%merchants], nil, nil)
		})
	}
	alone := served()
	base := w.till.descriptors()
	ctx, stop := context.WithCancel(context.Background())
	var crowd sync.WaitGroup
	var opened atomic.Int64
	for range n {
		crowd.Go(func() {
			for ctx.Err() == nil {
				if w.slowly(ctx, way, &opened) != nil {
					select { // nobody takes it just now
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
	}
	until(tb, "all slow clients are there", tilltest.Patience, func() bool { return opened.Load() >= int64(n) })
	held := w.till.descriptors() - base
	w.client.CloseIdleConnections() // others come anew, as the crowd did
	beside := served()
	open := w.till.descriptors()
	stop()
	crowd.Wait()
	until(tb, "nothing is left of them", 90*time.Second, func() bool { return w.till.descriptors() <= base+10 })
	line := fmt.Sprintf("slow %s: %d at once (%d connections in all); others' p99 alone %s, beside them %s, %d failed%s; descriptors %d, with them %d, at most %d, after %d",
		way.name, n, opened.Load(), ms(alone.Took.at(0.99)), ms(beside.Took.at(0.99)), beside.failed(), reasons(beside.Faults), base, base+held, open, w.till.descriptors())
	if beside.failed() > 0 || beside.Missed > 0 || beside.Took.at(0.99) > most(alone.Took) {
		tb.Errorf("others are held up: %s", line)
	}
	return line
}

// slowly is one connection, until it is ended from either side.
func (w *world) slowly(ctx context.Context, way slowWay, opened *atomic.Int64) error {
	conn, err := (&net.Dialer{Timeout: tilltest.Patience}).DialContext(ctx, "tcp", w.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if tcp, ok := conn.(*net.TCPConn); ok && way.reads {
		_ = tcp.SetReadBuffer(1024)
	}
	if _, err := conn.Write([]byte(way.first)); err != nil {
		return err
	}
	opened.Add(1)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	one := make([]byte, 1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if way.reads {
			_, err = conn.Read(one)
		} else {
			_, err = conn.Write([]byte(way.drip))
		}
		if err != nil {
			return nil // it was sent away, as it should be
		}
	}
}
