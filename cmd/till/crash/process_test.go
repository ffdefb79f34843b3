package crash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// start runs a command of the program in a directory, quietly and without limits.
func start(tb testing.TB, dir string, env []string, args ...string) *tilltest.Process {
	tb.Helper()
	return tilltest.Start(tb, dir, quiet(env), args...)
}

// quiet is an environment in which the program says little and limits nobody.
func quiet(env []string) []string {
	return append([]string{"TILL_LOG_LEVEL=warn", "TILL_RATE_LIMIT_TEST=1000000"}, env...)
}

// keptKey reads the secret key that the first start left.
func keptKey(tb testing.TB, dir string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".env.till"))
	must(tb, err)
	for line := range strings.SplitSeq(string(text), "\n") {
		if key, ok := strings.CutPrefix(line, "TILL_SECRET_KEY="); ok {
			return key
		}
	}
	tb.Fatal("the first start left no secret key")
	return ""
}
