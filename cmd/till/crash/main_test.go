package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow/store/storetest"
)

// program is the binary that is tried: TILL_BIN, or built once for this run.
var program = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // one build for all tests
	if bin := os.Getenv("TILL_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	dir, err := os.MkdirTemp("", "till-crash-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "till")
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, "till/cmd/till")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := storetest.Around(m).Run()
	if bin, err := program(); err == nil && os.Getenv("TILL_BIN") == "" {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// need skips a test whose service is not installed, and fails it where
// TILL_TEST_REQUIRE says that it must be.
func need(tb testing.TB, service, command string) string {
	tb.Helper()
	path, err := exec.LookPath(command)
	if err == nil {
		return path
	}
	if strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), service) {
		tb.Fatalf("%s is required here and not installed", service)
	}
	tb.Skipf("skipped: %s is not installed (%s)", service, command)
	return ""
}

// began is when this run began.
var began = time.Now() //nolint:gochecknoglobals // of the whole run

// progress tells whoever waits where a long run stands.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4ds  "+format+"\n", append([]any{int(time.Since(began).Seconds())}, args...)...)
}
