package lite

import (
	"context"
	"sync"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// againUndone is the time between two calls that undo a statement: one that had not
// begun yet would not hear the first.
const againUndone = 20 * time.Millisecond

// Until has what runs on the connection be undone once ctx ends, until the function that
// it returns is called, which comes before Close. It is for a connection that does one
// thing for long and for nobody else, as the copy of a file.
func (l *Conn) Until(ctx context.Context) (done func()) {
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		tls := libc.NewTLS() // the other one is of whoever runs the statement
		defer tls.Close()
		again := time.NewTicker(againUndone)
		defer again.Stop()
		for {
			sqlite3.Xsqlite3_interrupt(tls, l.db)
			select {
			case <-over:
				return
			case <-again.C:
			}
		}
	})
	return func() { close(over); watching.Wait() }
}
