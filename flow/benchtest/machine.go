package benchtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Machine says what is measured on.
func Machine(tb testing.TB) string {
	tb.Helper()
	ram := "?"
	if fields := strings.Fields(lineOf("/proc/meminfo", "MemTotal:")); len(fields) > 1 {
		var kib float64
		_, _ = fmt.Sscan(fields[1], &kib)
		ram = fmt.Sprintf("%.0f GiB", kib/(1<<20))
	}
	_, model, _ := strings.Cut(lineOf("/proc/cpuinfo", "model name"), ":")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(load), " ")
	dir := tb.TempDir()
	return fmt.Sprintf("%d CPUs (%s), %s RAM, %s, %s %s, %s, one fsync p50 %.2f ms, load average at the start %s",
		runtime.NumCPU(), strings.TrimSpace(model), ram, fileSystem(dir), runtime.GOOS, strings.TrimSpace(string(kernel)), runtime.Version(), fsync(tb, dir), busy)
}

func lineOf(file, begins string) string {
	text, _ := os.ReadFile(file) //nolint:gosec // of the kernel
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begins) {
			return line
		}
	}
	return ""
}

// fsync is the median time of one durable write, in milliseconds.
func fsync(tb testing.TB, dir string) float64 {
	tb.Helper()
	f, err := os.Create(filepath.Join(dir, "fsync")) //nolint:gosec // in a directory of the test
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var took []time.Duration
	for range 200 {
		began := time.Now() //nolint:forbidigo // the real clock is what is measured
		_, _ = f.Write(make([]byte, 4096))
		_ = f.Sync()
		took = append(took, time.Since(began)) //nolint:forbidigo // as above
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}
