//go:build linux

package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/store"
	"till/flow/store/storetest"
)

// echo starts a server that says what it is told, and returns what asks it.
func (w *world) echo(b *testing.B) func(int) error {
	b.Helper()
	addr := tilltest.FreePort(b)
	server := &http.Server{Addr: addr, ReadHeaderTimeout: tilltest.Patience, Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(out, r.Body)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	b.Cleanup(func() { _ = server.Close(); <-ended })
	ask := func(i int) error {
		var out map[string]any
		return w.call(context.Background(), http.MethodPost, "http://"+addr, "", map[string]any{
			"amount": 500_000, "customerEmail": "ada@example.com", "mode": "headless", "reference": fmt.Sprint(i),
		}, &out)
	}
	until(b, "the echo answers", tilltest.Patience, func() bool { return ask(0) == nil })
	return ask
}

// bareCommits is how many durable commits of one row a second the store does for
// 64 at once.
func bareCommits(b *testing.B, lasts time.Duration) float64 {
	b.Helper()
	db, err := store.Open(b.Context(), store.Config{Schema: store.Accounts, Dir: b.TempDir(), Name: "bare", Keys: storetest.Keys(b)})
	must(b, err)
	defer db.Close()
	var n atomic.Int64
	rate, _, err := closed(64, lasts, func(int) error {
		return db.Update(context.Background(), func(tx *store.Tx) error {
			return tx.SetSetting(context.Background(), fmt.Sprintf("bare-%d", n.Add(1)), "1")
		})
	})
	must(b, err)
	return rate
}
