package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// A server that keeps little in memory would tidy it up a hundred times a
// second under load; it may keep more of what is over before it does. The
// bound holds that back where much is kept.
const (
	gcPercent   = 400
	memoryLimit = 512 << 20
)

// moreProcs is by how much there are more places to run Go code than CPUs. The
// one writer of a database gives its place up at every fsync; when the disk has
// answered it would wait in line behind whatever handlers were let in
// meanwhile, and with it everybody whose commit it is. With a place to spare
// the operating system lets it go on at once.
const moreProcs = 2

// spare gives back what only the start needed, and sets that, unless whoever runs
// the program has set it.
func spare() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + moreProcs)
	}
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
