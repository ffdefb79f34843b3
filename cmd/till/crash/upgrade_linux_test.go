package crash

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// takenBack says how the newest steps of the databases are taken back, so that what a
// program under load has kept is again as the version before left it. Who adds a step
// says it here, too.
var takenBack = map[string][]string{
	"accounts/0009_settings.sql":        {"ALTER TABLE projects DROP COLUMN settings"},
	"accounts/0008_filters.sql":         {"DROP INDEX audit_of_actor", "DROP INDEX audit_of_time", "DROP TABLE filters"},
	"checkout/0032_refund_transfer.sql": {"DROP INDEX refund_transfer"},
	"checkout/0031_pace.sql":            {"ALTER TABLE endpoints DROP COLUMN max_per_second"},
	"checkout/0030_answers.sql":         {"DROP INDEX delivery_answered"},
	"checkout/0029_nip.sql":             {"DROP INDEX payment_nip"},
	"checkout/0028_money_held.sql": {
		"ALTER TABLE switches RENAME TO switches_after", // so that PostgreSQL names what it checks as it did before
		"CREATE TABLE switches (kind TEXT NOT NULL CHECK (kind IN ('number', 'method', 'merchant')), name TEXT NOT NULL, state TEXT NOT NULL CHECK (state <> ''), PRIMARY KEY (kind, name))",
		"INSERT INTO switches SELECT kind, name, state FROM switches_after", "DROP TABLE switches_after",
	},
	"checkout/0027_person.sql":    {"DROP INDEX chat_person"},
	"checkout/0026_retention.sql": {"ALTER TABLE chats DROP COLUMN worn"},
	"checkout/0025_lists.sql":     {"DROP INDEX session_status"},
	"checkout/0024_stories.sql":   {"DROP INDEX log_session", "CREATE INDEX log_session ON log (session) WHERE session <> ''"},
}

// database is one of Till's three.
type database struct{ name, schema string }

func databases() []database {
	return []database{{"accounts", "accounts"}, {"test", "checkout"}, {"live", "checkout"}}
}

// steps are the steps of the database in their order: the version is how many of them
// were made.
func (d database) steps(tb testing.TB) []string {
	tb.Helper()
	root := filepath.Join("..", "..", "..", "flow", "store", "migration")
	files, err := filepath.Glob(filepath.Join(root, d.schema, "*.sql"))
	must(tb, err)
	slices.Sort(files)
	for i, file := range files {
		files[i] = d.schema + "/" + filepath.Base(file)
	}
	return files
}

// opened opens a database that no Till has open, in a data dir.
func (w *world) opened(d database, data string) *sql.DB {
	w.tb.Helper()
	driver, at := "sqlite", "file:"+filepath.Join(data, d.name+".db")
	for _, setting := range w.env {
		if url, on := strings.CutPrefix(setting, "TILL_DATABASE_URL="); on {
			driver, at = "pgx", url+"&search_path="+d.name
		}
	}
	db, err := sql.Open(driver, at)
	must(w.tb, err)
	return db
}

// takeBack makes of the databases what the version before would have kept.
func (w *world) takeBack() {
	w.tb.Helper()
	for _, d := range databases() {
		steps := d.steps(w.tb)
		if newest := steps[len(steps)-1]; takenBack[newest] == nil {
			w.tb.Fatalf("say how %s is taken back", newest)
		}
		db := w.opened(d, w.data)
		for version := w.version(db); takenBack[steps[version-1]] != nil; version-- {
			for _, stmt := range append(slices.Clone(takenBack[steps[version-1]]), fmt.Sprintf("DELETE FROM schema_version WHERE version = %d", version)) {
				if _, err := db.ExecContext(context.Background(), stmt); err != nil {
					w.tb.Fatalf("take back %s: %s: %v", steps[version-1], stmt, err)
				}
			}
		}
		must(w.tb, db.Close())
	}
}

// version is the version that a database has.
func (w *world) version(db *sql.DB) (version int) {
	w.tb.Helper()
	must(w.tb, db.QueryRowContext(context.Background(), "SELECT MAX(version) FROM schema_version").Scan(&version))
	return version
}

// behind is how many steps the databases lack. It looks at copies of the files: to open
// those themselves would put in order what a kill has left.
func (w *world) behind() (steps int) {
	w.tb.Helper()
	dir := w.tb.TempDir()
	for _, d := range databases() {
		for _, beside := range []string{".db", ".db-wal"} {
			text, err := os.ReadFile(filepath.Join(w.data, d.name+beside))
			if !errors.Is(err, fs.ErrNotExist) {
				must(w.tb, cmp.Or(err, os.WriteFile(filepath.Join(dir, d.name+beside), text, 0o600)))
			}
		}
		db := w.opened(d, dir)
		steps += len(d.steps(w.tb)) - w.version(db)
		must(w.tb, db.Close())
	}
	return steps
}

// upgrades counts at what an upgrade was when it was killed.
type upgrades struct {
	strace  string
	calls   string // that are counted until the kill
	most    int    // of them
	first   int    // kills before the first step of any database
	between int    // kills between two steps, or in one of them
}

// mostToLose is how much is acknowledged at most between two upgrades.
const mostToLose = 100

// kill takes Till back by a version and kills the start that brings it on, at a write
// or sync of its own, until one was killed before it was done.
func (u *upgrades) kill(s *shop, _ int, random *rand.Rand, _ *sweep) {
	w := s.w
	enough := len(w.journal.of("call")) + 1 + random.IntN(mostToLose)
	w.until("there is something to lose", func() bool { return len(w.journal.of("call")) >= enough })
	w.p.Kill()
	w.proofs.Wait() // it reads what is taken back now
	w.takeBack()
	all := w.behind()
	for most := u.most; most > 0; most = most * 3 / 4 {
		w.p = tilltest.StartOther(w.tb, w.dir, quiet(w.env), u.strace, "-D", "-f", "-o", os.DevNull,
			"-e", "trace="+u.calls, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", u.calls, 1+random.IntN(most)), tilltest.Program(w.tb), "dev", "--http-addr", w.addr)
		ended := func() bool {
			select {
			case <-w.p.Ended():
				return true
			default:
				return false
			}
		}
		if !await.Within(tilltest.Patience, func() bool { return ended() || w.ready() }) {
			w.tb.Fatalf("a start does not come to its end; Till said:\n%s", w.p.Said())
		}
		w.p.Kill()
		switch left := w.behind(); left {
		case 0: // it came too late
			w.takeBack()
			continue
		case all:
			u.first++
		default:
			u.between++
		}
		return
	}
	w.tb.Fatalf("no start was killed before it was done; Till said:\n%s", w.p.Said())
}

// onFiles and onServer kill upgrades of each kind of database.
func onFiles(strace string) *upgrades {
	return &upgrades{strace: strace, calls: "pwrite64,fsync,fdatasync,ftruncate,renameat,renameat2,rename,unlink,unlinkat", most: 400}
}

func onServer(strace string) *upgrades { return &upgrades{strace: strace, calls: "write", most: 400} }

func TestAnUpgradeThatIsKilledIsResumed(t *testing.T) {
	strace := tilltest.Need(t, "strace", "strace")
	t.Run("SQLite", func(t *testing.T) { swept(t, "SQLite", 2, 1, onFiles(strace).kill) })
	t.Run("PostgreSQL", func(t *testing.T) {
		u := onServer(strace)
		u.most = 50 // so early that one start is enough
		swept(t, "PostgreSQL", 1, 1, u.kill, "TILL_DATABASE_URL="+ownDatabase(t, "upgrade"))
	})
}

// BenchmarkFaultUpgrade kills upgrades of what works fifty times on each kind of
// database, and looks for what is lost or doubled.
func BenchmarkFaultUpgrade(b *testing.B) {
	kills := asked(b, "TILL_UPGRADE_KILLS", 50, 1, 10_000)
	seed := uint64(time.Now().UnixNano())
	progress("%d kills in an upgrade on each kind of database, seed %d", kills, seed)
	strace := tilltest.Need(b, "strace", "strace")
	rows, of := make([]sweep, 2), []*upgrades{onFiles(strace), onServer(strace)}
	var group sync.WaitGroup
	group.Go(func() { rows[0] = swept(b, "SQLite", kills, seed, of[0].kill) })
	group.Go(func() {
		rows[1] = swept(b, "PostgreSQL", kills, seed+1, of[1].kill, "TILL_DATABASE_URL="+ownDatabase(b, "upgrade"))
	})
	group.Wait()
	if rows[0].on == "" || rows[1].on == "" {
		b.FailNow() // one of them did not come to its end, and said why
	}
	table(rows)
	for i, u := range of {
		fmt.Printf("%s: %d kills before the first step, %d between the first and the last\n", rows[i].on, u.first, u.between)
	}
}
