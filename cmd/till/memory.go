package main

import (
	"os"
	"runtime/debug"
)

// A server that keeps little in memory would tidy it up a hundred times a
// second under load; it may keep more of what is over before it does. The
// bound holds that back where much is kept.
const (
	gcPercent   = 400
	memoryLimit = 512 << 20
)

// spare sets that, unless whoever runs the program has set it.
func spare() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
