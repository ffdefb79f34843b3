package sandbox_test

import (
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

// BenchmarkPaid is an order, a transfer to it and the notice, by eight callers.
func BenchmarkPaid(b *testing.B) {
	bank, err := sandbox.Open(sandbox.Config{File: filepath.Join(b.TempDir(), "bank.db"), Now: time.Now})
	must(b, err)
	w := town{bank: bank, url: serve(b, bank), door: openDoor(b), clock: &clock{}}
	w.rail = newRail(b, w.url, time.Now, 0)
	must(b, w.rail.Register(b.Context(), w.door.url))
	var n atomic.Int64
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ins, err := w.rail.Start(b.Context(), w.order(flow.BankTransfer, "ref-"+strconv.FormatInt(n.Add(1), 10)))
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := w.rail.Transfer(b.Context(), rail.Transfer{AccountNumber: ins.AccountNumber}); err != nil {
				b.Error(err)
				return
			}
			<-w.door.got
		}
	})
}
