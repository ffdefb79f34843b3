package benchtest

import (
	"os"
	"strconv"
	"testing"
)

// Often is how often something is done: a few times, unless a variable says more.
func Often(tb testing.TB, variable string, few int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < few {
		tb.Fatalf("%s is %q: give a number from %d", variable, text, few)
	}
	return n
}
