package lite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"till/flow/store/lite"
)

// Whoever opens a new file at the moment at which others do is not refused.
func TestSeveralOpenANewFileAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 60 {
		uri := "file:" + filepath.Join(t.TempDir(), fmt.Sprintf("new%d.db", round))
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				<-begin
				conn, err := lite.Open(uri, "busy_timeout(5000)", "journal_mode(WAL)")
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
	}
}
