package crash

import (
	"fmt"
	"os"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/store/storetest"
)

func TestMain(m *testing.M) {
	code := storetest.Around(m).Run()
	tilltest.Clean()
	os.Exit(code)
}

// began is when this run began.
var began = time.Now() // of the whole run

// progress tells whoever waits where a long run stands.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4ds  "+format+"\n", append([]any{int(time.Since(began).Seconds())}, args...)...)
}
