package crash

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
)

// order is what the system calls of a process say of the order in which it wrote,
// synced and answered.
type order struct {
	answered int      // 2xx about a session
	synced   int      // of them after what they are about was on the disk
	early    []string // the others
}

// The lines of strace -f that are looked at: a call with its end, its beginning
// alone, and its end alone.
var (
	sessionID = regexp.MustCompile(`wsp_sess_[0-9a-z]{26}`)
	begun     = regexp.MustCompile(`^(?:\[pid +)?(\d+)\]? +(pwrite64|fdatasync|fsync|write|sendto|writev)\((\d+)`)
	resumed   = regexp.MustCompile(`^(?:\[pid +)?(\d+)\]? +<\.\.\. (fdatasync|fsync) resumed>.*= 0$`)
	created   = regexp.MustCompile(`HTTP/1\.1 201 .*?(wsp_sess_[0-9a-z]{26})`)
)

// ordered reads what strace wrote: the first write to a file that holds a session,
// then a sync of that file that begins after it and ends, then the answer.
func ordered(trace io.Reader) (out order, err error) {
	type syncing struct {
		line int
		fd   string
	}
	wrote := map[string]syncing{} // by session: where it was written first
	onDisk := map[string]bool{}
	under := map[string]syncing{} // by thread: the sync that it waits for
	done := func(s syncing) {
		for id, w := range wrote {
			if w.fd == s.fd && w.line < s.line {
				onDisk[id] = true
				delete(wrote, id)
			}
		}
	}
	scan := bufio.NewScanner(trace)
	scan.Buffer(make([]byte, 1<<20), 1<<20)
	for n := 0; scan.Scan(); n++ {
		line := scan.Text()
		if m := resumed.FindStringSubmatch(line); m != nil {
			done(under[m[1]])
			continue
		}
		m := begun.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch m[2] {
		case "fdatasync", "fsync":
			if under[m[1]] = (syncing{n, m[3]}); strings.HasSuffix(line, "= 0") {
				done(under[m[1]])
			}
		case "pwrite64":
			for _, id := range sessionID.FindAllString(line, -1) {
				if _, again := wrote[id]; !again && !onDisk[id] {
					wrote[id] = syncing{n, m[3]}
				}
			}
		default:
			if answer := created.FindStringSubmatch(line); answer != nil {
				out.answered++
				if onDisk[answer[1]] {
					out.synced++
				} else {
					out.early = append(out.early, answer[1])
				}
			}
		}
	}
	return out, scan.Err()
}

// watched opens so many sessions while strace looks on.
func watched(tb testing.TB, sessions int) order {
	tb.Helper()
	strace := tilltest.Need(tb, "strace", "strace")
	w := newWorld(tb)
	file := filepath.Join(w.outside, "trace")
	p := tilltest.StartOther(tb, w.outside, nil, strace, "-f", "-p", strconv.Itoa(w.p.PID()), "-o", file, "-s", "16384",
		"-e", "trace=pwrite64,fdatasync,fsync,write,writev,sendto")
	w.until("strace looks on", func() bool { return strings.Contains(p.Said(), "attached") })
	list := make([]int, sessions)
	for n := range list {
		list[n] = n
	}
	each(list, func(n int) {
		key := fmt.Sprint("order-", n)
		if r, err := w.surely(key, sessionsPath, object{"amount": 500_000, "customerEmail": "bola@example.com", "reference": key}); err != nil || r.status != 201 {
			w.wrong("lost", "%s: %d %s (%v)", key, r.status, r.body, err)
		}
	})
	p.End(syscall.SIGINT) // it lets go of Till
	w.verdict()
	trace, err := os.Open(file)
	must(tb, err)
	defer trace.Close()
	out, err := ordered(trace)
	must(tb, err)
	if out.answered < sessions || len(out.early) > 0 {
		tb.Errorf("of %d answers %d were seen, and %d of them came before what they are about was on the disk: %v", sessions, out.answered, len(out.early), out.early)
	}
	return out
}

func TestNothingIsAnsweredBeforeItIsOnTheDisk(t *testing.T) { watched(t, 10) }

// What is looked for is found: answers before the sync, after the sync of another
// file, and while the sync is under way.
func TestAnAnswerBeforeTheSyncIsFound(t *testing.T) {
	const id = "wsp_sess_01k9z3m5x8v2c7n4b6t1q0w9ef"
	write := `101 pwrite64(7, "..` + id + `..", 4096, 8192) = 4096` + "\n"
	answer := `102 write(9, "HTTP/1.1 201 Created\r\n\r\n{\"id\":\"` + id + `\"}", 120) = 120` + "\n"
	for what, one := range map[string]struct {
		trace  string
		synced int
	}{
		"after":              {write + "101 fdatasync(7) = 0\n" + answer, 1},
		"after, in two":      {write + "101 fdatasync(7 <unfinished ...>\n101 <... fdatasync resumed>) = 0\n" + answer, 1},
		"no sync":            {write + answer, 0},
		"no write":           {"101 fdatasync(7) = 0\n" + answer, 0},
		"before the write":   {"101 fdatasync(7) = 0\n" + write + answer, 0},
		"of another file":    {write + "101 fdatasync(8) = 0\n" + answer, 0},
		"while it is synced": {write + "101 fdatasync(7 <unfinished ...>\n" + answer + "101 <... fdatasync resumed>) = 0\n", 0},
		"the sync failed":    {write + "101 fdatasync(7) = -1 EIO (Input/output error)\n" + answer, 0},
	} {
		if got, err := ordered(strings.NewReader(one.trace)); err != nil || got.answered != 1 || got.synced != one.synced || len(got.early) != 1-one.synced {
			t.Errorf("%s: %+v %v", what, got, err)
		}
	}
}

// BenchmarkFaultOrder looks on while five hundred sessions are opened.
func BenchmarkFaultOrder(b *testing.B) {
	out := watched(b, 500)
	fmt.Printf("%d answers of 201, %d of them after fdatasync of what they are about, %d before\n", out.answered, out.synced, len(out.early))
}
