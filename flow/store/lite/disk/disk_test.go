package disk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"till/flow/store/lite"
)

func fresh(t *testing.T) *Disk {
	t.Helper()
	d, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func connect(t *testing.T, d *Disk, name string, pragmas ...string) *lite.Conn {
	t.Helper()
	c, err := lite.Open("file:"+name+"?vfs="+d.Name(), pragmas...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func exec(t *testing.T, c *lite.Conn, query string, args ...any) {
	t.Helper()
	if _, err := c.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func one[T any](t *testing.T, c *lite.Conn, query string) (is T) {
	t.Helper()
	if err := c.Each(query, nil, func(s lite.Scanner) error { return s(&is) }); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return is
}

func end(t *testing.T, conns ...*lite.Conn) {
	t.Helper()
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A file holds what was written last, and after a power cut what was synced: all of
// it, with any part of what came after, and nothing else.
func TestAFileIsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		dice := rand.New(rand.NewPCG(seed, 1))
		f, now, synced := &file{}, []byte{}, []byte{}
		var states [][]byte // what there was after each change since it was synced
		for range 40 {
			switch at := dice.IntN(3 * chunk); dice.IntN(6) {
			case 0:
				f.sync()
				synced, states = bytes.Clone(now), nil
				continue
			case 1:
				f.truncate(int64(at))
				now = append(now[:min(at, len(now))], make([]byte, max(at-len(now), 0))...)
			default:
				p := make([]byte, 1+dice.IntN(chunk))
				for i := range p {
					p[i] = byte(dice.Uint32())
				}
				f.write(p, int64(at))
				now = append(now, make([]byte, max(at+len(p)-len(now), 0))...)
				copy(now[at:], p)
			}
			states = append(states, bytes.Clone(now))
		}
		holds := func(f *file) []byte {
			p := make([]byte, f.size)
			f.read(p, 0)
			return p
		}
		if !bytes.Equal(holds(f), now) {
			t.Fatalf("seed %d: the file is not what was written", seed)
		}
		if !bytes.Equal(holds(f.found(nil)), now) || !bytes.Equal(holds(f.found(func() bool { return true })), now) {
			t.Errorf("seed %d: all was kept, and is not found", seed)
		}
		if !bytes.Equal(holds(f.found(func() bool { return false })), synced) {
			t.Errorf("seed %d: nothing was kept, and what was synced is not found", seed)
		}
		other, size := f.found(nil), len(now)
		other.write([]byte("of the copy alone"), int64(dice.IntN(size+1)))
		other.truncate(int64(dice.IntN(size + 1)))
		if !bytes.Equal(holds(f), now) {
			t.Errorf("seed %d: what is done to a copy is done to the file", seed)
		}
		other = f.found(nil)
		f.write([]byte("of the file alone"), int64(dice.IntN(size+1)))
		f.truncate(int64(dice.IntN(size + 1)))
		if !bytes.Equal(holds(other), now) {
			t.Errorf("seed %d: what is done to the file is done to a copy", seed)
		}
		f = other
		for n := range states { // the first n+1 changes were kept
			i := -1
			if got := holds(f.found(func() bool { i++; return i <= n })); !bytes.Equal(got, states[n]) {
				t.Errorf("seed %d: of %d changes the first %d were kept, and something else is found", seed, len(states), n+1)
			}
		}
	}
}

// cutAlways writes while the power goes at every moment, and says how often what was
// answered was gone afterwards. Whatever is found must be sound, and no more than what
// was begun.
func cutAlways(t *testing.T, seed uint64, pragmas ...string) (cuts, lost int) {
	t.Helper()
	d, dice := fresh(t), rand.New(rand.NewPCG(seed, 2))
	c := connect(t, d, "live/db", append([]string{"page_size(1024)"}, pragmas...)...)
	exec(t, c, "CREATE TABLE t (id INTEGER PRIMARY KEY, what TEXT) STRICT")
	answered := 0
	type cut struct{ dir, answered int }
	var all []cut
	d.changed = func(string) {
		if dice.IntN(12) != 0 {
			return
		}
		all = append(all, cut{len(all), answered})
		d.copyAll("live/", fmt.Sprintf("found %d/", len(all)-1), func() bool { return dice.IntN(2) == 0 })
	}
	const most = 60
	for id := 1; id <= most; id++ {
		exec(t, c, "BEGIN IMMEDIATE")
		exec(t, c, "INSERT INTO t (id, what) VALUES (?, ?)", id, strings.Repeat("x", dice.IntN(3000)))
		if id%3 == 0 {
			exec(t, c, "UPDATE t SET what = what || 'y' WHERE id % 5 = ?", dice.IntN(5))
		}
		exec(t, c, "COMMIT")
		answered = id
		if id%17 == 0 {
			if _, err := c.Rewind(0); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.changed = func(string) {}
	end(t, c)
	for _, cut := range all {
		c := connect(t, d, fmt.Sprintf("found %d/db", cut.dir), pragmas...)
		if sound := one[string](t, c, "PRAGMA integrity_check"); sound != "ok" {
			t.Fatalf("seed %d, cut %d: %s", seed, cut.dir, sound)
		}
		n, last := 0, 0
		if one[int](t, c, "SELECT count(*) FROM sqlite_master") == 1 { // the table itself was kept
			n, last = one[int](t, c, "SELECT count(*) FROM t"), one[int](t, c, "SELECT coalesce(max(id), 0) FROM t")
		}
		if n != last || n > cut.answered+1 {
			t.Fatalf("seed %d, cut %d: %d rows up to %d are found, and %d were answered", seed, cut.dir, n, last, cut.answered)
		}
		if n < cut.answered {
			lost++
		}
		end(t, c)
	}
	return len(all), lost
}

// What SQLite answered that it keeps is found after the power went at any moment,
// whatever became of what was not synced by then; but not where it does not wait for
// the disk.
func TestWhatWasCommittedSurvivesAPowerCut(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"WAL", "DELETE"} {
		for seed := range uint64(6) {
			if cuts, lost := cutAlways(t, seed, "journal_mode("+mode+")", "synchronous(FULL)"); lost > 0 || cuts < 20 {
				t.Errorf("%s, seed %d: after %d of %d cuts something is lost", mode, seed, lost, cuts)
			}
		}
	}
	if cuts, lost := cutAlways(t, 1, "journal_mode(WAL)", "synchronous(NORMAL)"); lost == 0 {
		t.Errorf("nothing is lost after %d cuts, though nobody waits for the disk", cuts)
	}
}

// Connections see one another's locks, and read what was committed while others write.
func TestConnectionsShareTheDisk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"WAL", "DELETE"} {
		d := fresh(t)
		a, b := connect(t, d, "db", "journal_mode("+mode+")"), connect(t, d, "db", "mmap_size(1000000)")
		exec(t, a, "CREATE TABLE t (n INTEGER)")
		exec(t, a, "INSERT INTO t VALUES (1)")
		exec(t, a, "BEGIN IMMEDIATE")
		exec(t, a, "INSERT INTO t VALUES (2)")
		if _, err := b.Exec("BEGIN IMMEDIATE"); err == nil {
			t.Errorf("%s: two write at once", mode)
		}
		if n := one[int](t, b, "SELECT count(*) FROM t"); n != 1 {
			t.Errorf("%s: %d rows are read, and one is committed", mode, n)
		}
		exec(t, b, "BEGIN")
		before := one[int](t, b, "SELECT count(*) FROM t")
		_, err := a.Exec("COMMIT")
		if (err == nil) != (mode == "WAL") {
			t.Errorf("%s: a commit while somebody reads: %v", mode, err)
		}
		if n := one[int](t, b, "SELECT count(*) FROM t"); n != before {
			t.Errorf("%s: %d rows in one transaction, and then %d", mode, before, n)
		}
		exec(t, b, "COMMIT")
		if err != nil {
			exec(t, a, "COMMIT")
		}
		if n := one[int](t, b, "SELECT count(*) FROM t"); n != 2 {
			t.Errorf("%s: %d rows of 2", mode, n)
		}
		if err := d.Close(); err == nil {
			t.Errorf("%s: it is closed while it is in use", mode)
		}
		end(t, b, a)
		if _, there := d.Read(nil, "db"); !there {
			t.Errorf("%s: the file is gone", mode)
		}
		if _, there := d.Read(nil, "db-wal"); there {
			t.Errorf("%s: the last who closes it leaves its log", mode)
		}
		d.Remove("db")
		if _, there := d.Read(nil, "db"); there {
			t.Errorf("%s: the file is still there", mode)
		}
	}
}
