//go:build unix

package api

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// machine says what was measured on.
func machine(dir string) string {
	model := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s/%s, %d CPUs (%s), %s, one fsync %.2f ms", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, runtime.Version(), fsync(dir))
}

// fsync is the median time of one durable write, in milliseconds.
func fsync(dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0
	}
	defer f.Close()
	var all []time.Duration
	for range 100 {
		began := time.Now()
		_, _ = f.Write(make([]byte, 4096))
		_ = f.Sync()
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

func loadTable(kinds []*load, where string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n%s\n", where)
	fmt.Fprintf(&t, "Servers in one process, Go's HTTP client in another, loopback TCP, keep-alive. Medians of %d interleaved rounds of %v. SQLite, synchronous=FULL.\n\n",
		loadRounds, loadTime)
	t.WriteString("| connections | call                   |  req/s | of echo | p50 ms | p99 ms | p99 of echo | server CPU µs |\n")
	t.WriteString("|------------:|:-----------------------|-------:|--------:|-------:|-------:|------------:|--------------:|\n")
	for _, conns := range loadConns() {
		echo := kinds[0].median(conns)
		for _, k := range kinds {
			m := k.median(conns)
			fmt.Fprintf(&t, "| %11d | %-22s | %6.0f | %7.2f | %6.2f | %6.2f | %11.2f | %13.0f |\n",
				conns, k.name, m.Rate, m.Rate/echo.Rate, m.P50, m.P99, m.P99/echo.P99, m.CPU)
		}
	}
	return t.String() + "\n"
}
