package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// Who is told to end says so in words, and takes what was not looked at for no proof:
// a verification went on to its end, unheard, and of a large database that is long.
func TestWhatIsStoppedSaysSoAndProvesNothing(t *testing.T) {
	k := newKeeper(t, "data")
	t.Chdir(k.dir)
	k.does("backup", "whole.tar.gz")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{
		{"verify"}, {"verify", "whole.tar.gz"}, {"backup", "half.tar.gz"}, {"restore", "whole.tar.gz", "--data-dir", "other"}, {"migrate"}, {"ledger", "check"},
	} {
		var out, errs bytes.Buffer
		code := run(stopped, args, &out, &errs)
		if said := errs.String(); code != exitFailed || !strings.Contains(said, "stopped by a signal before it was done\n") || strings.Contains(said, "context") {
			t.Errorf("till %s: it ended with %d and said %q", strings.Join(args, " "), code, said)
		}
		if strings.Count(out.String(), "\n") > 1 {
			t.Errorf("till %s: it went on:\n%s", strings.Join(args, " "), &out)
		}
	}
	for _, name := range []string{"half.tar.gz", "other"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}
