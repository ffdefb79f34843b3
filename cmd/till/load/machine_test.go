//go:build linux

package load

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine says what was measured on.
func machine(tb testing.TB) string {
	tb.Helper()
	ram := "?"
	if fields := strings.Fields(lineOf("/proc/meminfo", "MemTotal:")); len(fields) > 1 {
		var kib float64
		_, _ = fmt.Sscan(fields[1], &kib)
		ram = fmt.Sprintf("%.0f GiB", kib/(1<<20))
	}
	_, model, _ := strings.Cut(lineOf("/proc/cpuinfo", "model name"), ":")
	load, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(load), " ")
	dir := tb.TempDir()
	return fmt.Sprintf("%d CPUs (%s), %s RAM, %s, Linux %s, %s, one fsync p50 %.2f ms, load average at the start %s",
		runtime.NumCPU(), strings.TrimSpace(model), ram, fileSystem(dir), kernel(), runtime.Version(), fsync(dir), busy)
}

func lineOf(file, begins string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begins) {
			return line
		}
	}
	return ""
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown file system"
	}
	names := map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x794C7630: "overlayfs"}
	if name, ok := names[s.Type]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", s.Type)
}

// fsync is the median time of one durable write, in milliseconds.
func fsync(dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0
	}
	defer f.Close()
	var took times
	for range 200 {
		began := time.Now()
		_, _ = f.Write(make([]byte, 4096))
		_ = f.Sync()
		took = append(took, time.Since(began))
	}
	return took.at(0.5)
}
