package hooks_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// proxy is nobody. The standard library reads it from the environment once, at
// the first request of a program, so it stands there before any test.
const proxy = "http://127.0.0.1:1"

func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if err := os.Setenv(name, proxy); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}
