package doctor_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"till/cmd/till/doctor"
	"till/config"
	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o077) // as the program has it
	os.Exit(storetest.Around(m).Run())
}

// stage is a Till that is well, until something is done to it.
type stage struct {
	t   *testing.T
	dir string
	cfg doctor.Config
}

var schemas = map[string]store.Schema{"test": store.Checkout, "live": store.Checkout, "accounts": store.Accounts}

func well(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: filepath.Join(t.TempDir(), "data")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name := range schemas {
		s.with(name, func(*store.DB) {})
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	s.cfg = doctor.Config{
		Settings: config.Settings{
			HTTPAddr: ln.Addr().String(), DataDir: s.dir, WhatsAppNetwork: "local", WhatsAppSends: 20, WhatsAppChats: 6, WhatsAppNumbers: 1,
			RateLimitTest: 50, RateLimitLive: 100, WebhookLoopback: true,
		},
		Now:     time.Now,
		Disk:    func(string) (uint64, uint64, error) { return 50 << 30, 100 << 30, nil },
		Sync:    quick,
		Files:   func() (uint64, error) { return 65536, nil },
		Resolve: func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil },
	}
	s.number(flow.NumberLive)
	return s
}

// with opens a database of the stage, as a start of Till does.
func (s *stage) with(name string, do func(*store.DB)) {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), store.Config{Schema: schemas[name], Dir: s.dir, Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	do(db)
	if err := db.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// number has a number stand in a state, run by a process that lives.
func (s *stage) number(state flow.NumberState) { s.numberIn(1, "2348012345678", state) }

// numberIn has a number of ours stand in a place, linked to a phone.
func (s *stage) numberIn(slot int, digits string, state flow.NumberState) {
	s.t.Helper()
	s.numberAs(flow.Number{Slot: slot, Digits: digits, State: state})
}

// numberAs has a number of ours stand as it says, from now on.
func (s *stage) numberAs(n flow.Number) {
	s.t.Helper()
	s.with("test", func(db *store.DB) {
		now := time.Now()
		n.Since, n.PhoneSeen, n.Holder, n.Token, n.HeldUntil = now, now, "me", now.UnixNano(), now.Add(time.Hour)
		err := db.Update(s.t.Context(), func(tx *store.Tx) error {
			err := tx.AddNumber(s.t.Context(), n.Slot, now)
			_, taken := tx.TakeNumber(s.t.Context(), n, "", now)
			_, kept := tx.ReportNumber(s.t.Context(), n)
			return errors.Join(err, taken, kept)
		})
		if err != nil {
			s.t.Fatal(err)
		}
	})
}

// found is what a check finds, the gravest of it.
func (s *stage) found(check string) doctor.Finding {
	s.t.Helper()
	var worst doctor.Finding
	for _, f := range doctor.Run(s.t.Context(), s.cfg, nil) {
		if f.Check == check && (worst.Check == "" || doctor.Worst([]doctor.Finding{worst, f}) != worst.State) {
			worst = f
		}
	}
	if worst.Check == "" {
		s.t.Fatalf("nothing was found by the check %s", check)
	}
	return worst
}

// sh runs the command of a fix, without the words behind it.
func (s *stage) sh(fix string) {
	s.t.Helper()
	command, _, _ := strings.Cut(fix, "   (")
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", command)
	cmd.Dir = filepath.Dir(s.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func (s *stage) file(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// fault is something that goes wrong, how it is told, and what its fix does.
type fault struct {
	name, check string
	breaks      func(s *stage)
	state       doctor.State
	what, fix   string // expressions
	mends       func(s *stage, fix string)
}

// quick is a disk that nobody else keeps busy, as the machine's own may be.
func quick(string) (time.Duration, error) { return time.Millisecond, nil }

// Each fault is staged: its cause is named, its fix is told, and once that is
// done the doctor sees nothing any more.
func TestTheDoctorNamesTheCauseAndTheFix(t *testing.T) {
	for _, f := range slices.Concat(faultsOfThePlace(), faultsOfTheKeys(), faultsOutside()) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := well(t)
			if got := s.found(f.check); got.State != doctor.OK {
				t.Fatalf("before the fault: %+v", got)
			}
			f.breaks(s)
			got := s.found(f.check)
			if got.State != f.state || !regexp.MustCompile(f.what).MatchString(got.What) || !regexp.MustCompile(f.fix).MatchString(got.Fix) {
				t.Fatalf("found %+v, want %s, %q, %q", got, f.state, f.what, f.fix)
			}
			f.mends(s, got.Fix)
			if got := s.found(f.check); got.State != doctor.OK {
				t.Errorf("after the fix: %+v", got)
			}
		})
	}
}

func faultsOfThePlace() []fault {
	return []fault{
		{
			name: "others can read the data", check: "file-modes", state: doctor.Fail, what: `Others on this machine can read 1 of the files .*live\.db`, fix: `^chmod -R go-rwx `,
			breaks: func(s *stage) { s.must(os.Chmod(s.file("live.db"), 0o644)) }, mends: (*stage).sh,
		},
		{
			name: "the disk is full", check: "disk", state: doctor.Fail, what: `is full: 100\.0 MB of 100\.0 GB are free`, fix: `^du -xh .* make room`,
			breaks: func(s *stage) {
				s.cfg.Disk = func(string) (uint64, uint64, error) { return 100 << 20, 100 << 30, nil }
			},
			mends: func(s *stage, _ string) {
				s.cfg.Disk = func(string) (uint64, uint64, error) { return 20 << 30, 100 << 30, nil }
			},
		},
		{
			name: "the disk is small", check: "disk", state: doctor.Fail, what: `has too little room: 300\.0 kB of 300\.0 kB are free`, fix: `^df -h .* larger disk`,
			breaks: func(s *stage) {
				s.cfg.Disk = func(string) (uint64, uint64, error) { return 300 << 10, 300 << 10, nil }
			},
			mends: func(s *stage, _ string) {
				s.cfg.Disk = func(string) (uint64, uint64, error) { return 20 << 30, 100 << 30, nil }
			},
		},
		{
			name: "the disk is slow", check: "disk", state: doctor.Warn, what: `takes 80ms to keep a small file`, fix: `^iostat`,
			breaks: func(s *stage) {
				s.cfg.Sync = func(string) (time.Duration, error) { return 80 * time.Millisecond, nil }
			},
			mends: func(s *stage, _ string) { s.cfg.Sync = quick },
		},
		{
			name: "another user's data", check: "disk", state: doctor.Fail, what: `Nothing can be written to the data dir .*permission denied`, fix: `^ls -ld \S+data   \(then run this as the owner of the folder`,
			breaks: func(s *stage) {
				s.cfg.Sync = func(string) (time.Duration, error) {
					return 0, &fs.PathError{Op: "open", Path: s.file("doctor-1"), Err: syscall.EACCES}
				}
			},
			mends: func(s *stage, fix string) {
				s.sh(fix)
				s.cfg.Sync = quick
			},
		},
		{
			name: "the disk is mounted read-only", check: "disk", state: doctor.Fail, what: `Nothing can be written to the data dir .*read-only`, fix: `^findmnt -T \S+data   \(its disk is mounted read-only`,
			breaks: func(s *stage) {
				s.cfg.Sync = func(string) (time.Duration, error) {
					return 0, &fs.PathError{Op: "open", Path: s.file("doctor-1"), Err: syscall.EROFS}
				}
			},
			mends: func(s *stage, _ string) { s.cfg.Sync = quick },
		},
		{
			name: "the disk takes no more files", check: "disk", state: doctor.Fail, what: `Nothing can be written to the data dir .*no space left`, fix: `^df -h \S+data && df -i \S+data   \(room or files have run out`,
			breaks: func(s *stage) {
				s.cfg.Sync = func(string) (time.Duration, error) {
					return 0, &fs.PathError{Op: "open", Path: s.file("doctor-1"), Err: syscall.ENOSPC}
				}
			},
			mends: func(s *stage, fix string) {
				s.sh(fix)
				s.cfg.Sync = quick
			},
		},
		{
			name: "the log cannot be written", check: "disk", state: doctor.Warn, what: `The log cannot be kept in the data dir, .*till\.log`, fix: `^ls -ld \S+data \S+data/logs/till\.log   \(`,
			breaks: func(s *stage) { s.must(os.MkdirAll(s.file("logs/till.log"), 0o700)) },
			mends:  func(s *stage, _ string) { s.must(os.RemoveAll(s.file("logs"))) },
		},
		{
			name: "the lock cannot be opened", check: "data-dir", state: doctor.Fail, what: `The data dir cannot be used from here: .*lock`, fix: `^ls -ld \S+data \S+data/lock   \(`,
			breaks: func(s *stage) { s.must(os.Mkdir(s.file("lock"), 0o700)) },
			mends:  func(s *stage, _ string) { s.must(os.Remove(s.file("lock"))) },
		},
		{
			name: "the key is there and cannot be read", check: "sealing-key", state: doctor.Fail, what: `key that secrets are sealed with cannot be read: .*secrets\.key`, fix: `^ls -ld \S+data \S+data/secrets\.key   \(then run this as the owner`,
			breaks: func(s *stage) { s.must(os.Symlink("secrets.key", s.file("secrets.key"))) },
			mends:  func(s *stage, _ string) { s.must(os.Remove(s.file("secrets.key"))) },
		},
		{
			name: "few files may be open", check: "open-files", state: doctor.Warn, what: `have 256 files`, fix: `^ulimit -n 65536`,
			breaks: func(s *stage) { s.cfg.Files = func() (uint64, error) { return 256, nil } },
			mends:  func(s *stage, _ string) { s.cfg.Files = func() (uint64, error) { return 65536, nil } },
		},
		{
			name: "the port is another program's", check: "port", state: doctor.Fail, what: `is used by another program`, fix: `^till serve --http-addr 127\.0\.0\.1:\d+`,
			breaks: func(s *stage) {
				other := httptest.NewServer(http.NotFoundHandler())
				s.t.Cleanup(other.Close)
				s.cfg.HTTPAddr = other.Listener.Addr().String()
			},
			mends: func(s *stage, fix string) {
				s.cfg.HTTPAddr = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(fix)
			},
		},
		{
			name: "the port is a Till's with other data", check: "port", state: doctor.Fail, what: `Another Till answers .* with another data dir`, fix: `^till serve --http-addr 127`,
			breaks: func(s *stage) {
				other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":{"alive":true}}`)) }))
				s.t.Cleanup(other.Close)
				s.cfg.HTTPAddr = other.Listener.Addr().String()
			},
			mends: func(s *stage, fix string) {
				s.cfg.HTTPAddr = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(fix)
			},
		},
		{
			name: "another process uses the data", check: "data-dir", state: doctor.Warn, what: `Another process \(\d+\) uses the data dir .* no Till answers`, fix: `^kill \d+`,
			breaks: func(s *stage) {
				other := exec.CommandContext(s.t.Context(), "flock", "-o", s.file("lock"), "sh", "-c", "echo $PPID >"+s.file("lock")+"; echo held; exec sleep 600")
				out, err := other.StdoutPipe()
				s.must(err)
				other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				s.must(other.Start())
				s.t.Cleanup(func() { _ = syscall.Kill(-other.Process.Pid, syscall.SIGKILL); _ = other.Wait() })
				_, err = out.Read(make([]byte, 5)) // until it holds it
				s.must(err)
			},
			mends: func(s *stage, fix string) {
				s.sh(fix)
				lock, err := os.OpenFile(s.file("lock"), os.O_RDWR, 0)
				s.must(err)
				s.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)) // once it has ended
				s.must(lock.Close())
			},
		},
		{
			name: "a database is damaged", check: "database", state: doctor.Fail, what: `live\.db (is damaged|cannot be read): .*malformed`, fix: `^till restore BACKUP --yes`,
			breaks: func(s *stage) {
				s.must(os.Rename(s.file("live.db"), s.file("kept")))
				text, err := os.ReadFile(s.file("kept"))
				s.must(err)
				for i := 3 * 4096; i < 12*4096; i++ {
					text[i] ^= 0x5a
				}
				s.must(os.WriteFile(s.file("live.db"), text, 0o600))
			},
			mends: func(s *stage, _ string) { s.must(os.Rename(s.file("kept"), s.file("live.db"))) },
		},
		{
			name: "a database is no database", check: "database", state: doctor.Fail, what: `accounts\.db cannot be read`, fix: `^till restore `,
			breaks: func(s *stage) {
				s.must(os.Rename(s.file("accounts.db"), s.file("kept")))
				s.must(os.WriteFile(s.file("accounts.db"), []byte(strings.Repeat("not a database\n", 1000)), 0o600))
			},
			mends: func(s *stage, _ string) { s.must(os.Rename(s.file("kept"), s.file("accounts.db"))) },
		},
		{
			name: "a database cannot be opened", check: "database", state: doctor.Fail, what: `The database test\.db cannot be opened: .*says nothing of what is in it`, fix: `^ls -ld \S+data \S+data/test\.db\*; findmnt -T \S+data   \(run till doctor as the owner`,
			// SQLite opens no folder, whoever it is run by.
			breaks: func(s *stage) { s.must(os.Mkdir(s.file("test.db-wal"), 0o700)) },
			mends:  func(s *stage, _ string) { s.must(os.Remove(s.file("test.db-wal"))) },
		},
		{
			name: "a database is missing", check: "database", state: doctor.Fail, what: `Of the 3 databases in .*, 1 are missing`, fix: `^till restore .*   \(where the first start did not end well, start it again`,
			breaks: func(s *stage) { s.must(os.Rename(s.file("live.db"), s.file("kept"))) },
			mends:  func(s *stage, _ string) { s.must(os.Rename(s.file("kept"), s.file("live.db"))) },
		},
		{
			name: "the data is of a newer Till", check: "database", state: doctor.Fail, what: `live\.db is of a newer Till \(schema 999, this program knows \d+\)`, fix: `^till version .*install the newer`,
			breaks: func(s *stage) { s.exec("live", "INSERT INTO schema_version (version) VALUES (999)") },
			mends:  func(s *stage, _ string) { s.exec("live", "DELETE FROM schema_version WHERE version = 999") },
		},
		{
			name: "the log grew", check: "database", state: doctor.Warn, what: `The log of test\.db has grown to 256\.0 MB`, fix: `^till migrate `,
			breaks: func(s *stage) {
				s.must(os.WriteFile(s.file("test.db-wal"), nil, 0o600))
				s.must(os.Truncate(s.file("test.db-wal"), 256<<20))
			},
			mends: func(s *stage, _ string) { s.with("test", func(*store.DB) {}) }, // as migrate opens it
		},
		{
			name: "the clock was set back", check: "clock", state: doctor.Fail, what: `was set back: .*\.db was written (3h0m0s|2h59m\d\ds) in the future`, fix: `timedatectl set-ntp true`,
			breaks: func(s *stage) { s.cfg.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) } },
			mends:  func(s *stage, _ string) { s.cfg.Now = time.Now },
		},
		{
			name: "backups are old", check: "backups", state: doctor.Fail, what: `The last backup is 9 days old`, fix: `^till backup `,
			breaks: func(s *stage) {
				s.must(doctor.NoteBackup(s.dir, doctor.Backup{At: time.Now().Add(-9 * 24 * time.Hour), File: s.file("live.db")}))
			},
			mends: func(s *stage, _ string) {
				s.must(doctor.NoteBackup(s.dir, doctor.Backup{At: time.Now(), File: s.file("live.db")}))
			},
		},
	}
}

// A backup that cannot be noted, as on a full disk, leaves the note of the one before.
func TestABackupThatCannotBeNotedLeavesTheNoteOfTheLastOne(t *testing.T) {
	s := well(t)
	s.must(doctor.NoteBackup(s.dir, doctor.Backup{At: time.Now(), File: s.file("live.db")}))
	s.must(os.MkdirAll(s.file(".till-last-backup.json"), 0o700)) // where the next one would be written
	if err := doctor.NoteBackup(s.dir, doctor.Backup{At: time.Now(), File: s.file("test.db")}); err == nil {
		t.Error("it says nothing")
	}
	text, err := os.ReadFile(s.file("last-backup.json"))
	if err != nil || !strings.Contains(string(text), s.file("live.db")+`"`) {
		t.Errorf("it is now %s (%v)", text, err)
	}
}

// A note of the last backup that cannot be understood is not told as if there was none,
// nor as one that is three hundred years old.
func TestADamagedNoteOfTheLastBackupIsNotToldAsNone(t *testing.T) {
	for _, text := range []string{"", "{", "{}", `{"at":"2026-11-22T01:00:00Z"}`, "null"} {
		s := well(t)
		s.must(os.WriteFile(s.file("last-backup.json"), []byte(text), 0o600))
		f := s.found("backups")
		if f.State != doctor.Warn || !strings.Contains(f.What, "last-backup.json in "+s.dir+", where that is noted, is damaged") || !strings.Contains(f.Fix, "&& till backup ") {
			t.Errorf("of %q it says %+v", text, f)
		}
		s.must(os.Remove(s.file("live.db")))
		if f := s.found("database"); !strings.HasPrefix(f.Fix, "till restore BACKUP ") {
			t.Errorf("of %q it names as the last: %s", text, f.Fix)
		}
	}
}

// exec changes a database behind Till's back.
func (s *stage) exec(name, stmt string) {
	s.t.Helper()
	db, err := sql.Open("sqlite", s.file(name+".db"))
	s.must(err)
	_, err = db.ExecContext(s.t.Context(), stmt)
	s.must(errors.Join(err, db.Close()))
}

// redis is a Redis of this machine, and the setting that leads to it.
func (s *stage) redis() *miniredis.Miniredis {
	s.t.Helper()
	r := miniredis.RunT(s.t)
	s.cfg.RedisURL = config.Secret("redis://" + r.Addr() + "/0")
	return r
}

// What keeps the log of a Till that runs from being written back is mostly another
// program that reads: no restart helps then, and who it is says fuser.
func TestALogThatGrewBesideATillIsToldWithHowToFindWhoReads(t *testing.T) {
	s := well(t)
	s.must(os.WriteFile(s.file("test.db-wal"), nil, 0o600))
	s.must(os.Truncate(s.file("test.db-wal"), 256<<20))
	till := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":{"alive":true}}`)) }))
	defer till.Close()
	s.cfg.HTTPAddr = till.Listener.Addr().String()
	if f := s.found("database"); !strings.HasPrefix(f.Fix, "fuser -v "+s.file("test.db")+" ") || !strings.Contains(f.Fix, "end what has it open beside Till") {
		t.Errorf("it says %+v", f)
	}
}
