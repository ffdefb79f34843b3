// Package storetest gives tests a database of each kind. It is for tests only.
//
// SQLite is a file in the test's directory. PostgreSQL is the server that
// TILL_TEST_POSTGRES_URL names, or one that is started for the test binary out
// of the installed programs and is gone with it, whichever way the binary ends.
// Where there is neither, the PostgreSQL half of a test is skipped, unless
// TILL_TEST_REQUIRE says "postgres".
//
// A package that uses it says so in its TestMain:
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
// or, beside another guard, goleak.VerifyTestMain(storetest.Around(m)).
package storetest

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"till/flow/store"
)

// The settings of the environment.
const (
	envURL     = "TILL_TEST_POSTGRES_URL"
	envRequire = "TILL_TEST_REQUIRE"
)

// Main runs a package's tests and ends the process.
func Main(m *testing.M) { os.Exit(Around(m).Run()) }

// Durable starts a PostgreSQL that keeps what is committed through a power cut, as
// a real one does: for measurements. Call it before the first Postgres. The error
// says why there is none.
func Durable() error {
	shared.mu.Lock()
	shared.fsync = "on"
	shared.mu.Unlock()
	_, err := shared.start()
	return err
}

// Runner runs a package's tests and then stops what they started.
type Runner struct{ m *testing.M }

// Around makes a Runner.
func Around(m *testing.M) Runner {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.watched = true
	return Runner{m}
}

// Run runs the tests and returns the exit code.
func (r Runner) Run() int {
	code := r.m.Run()
	if err := shared.stop(); err != nil {
		_, _ = os.Stderr.WriteString("stop PostgreSQL: " + err.Error() + "\n")
		return max(code, 1)
	}
	return code
}

// Each runs a test on a fresh database of each kind, which is closed after it.
func Each(t *testing.T, schema store.Schema, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	EachConfig(t, schema, func(t *testing.T, c store.Config) {
		t.Helper()
		test(t, Open(t, c))
	})
}

// EachConfig runs a test with a place for a database of each kind, for tests
// that open it themselves, again or from another process. With -short it is one of
// them: half of the tests have the one, half the other, and each always the same.
func EachConfig(t *testing.T, schema store.Schema, test func(t *testing.T, c store.Config)) {
	t.Helper()
	each(t, schema, SQLite, Postgres, test)
}

// EachEmpty is EachConfig with a place where nothing is yet, for tests of what a first
// start does.
func EachEmpty(t *testing.T, schema store.Schema, test func(t *testing.T, c store.Config)) {
	t.Helper()
	each(t, schema, EmptySQLite, EmptyPostgres, test)
}

func each(t *testing.T, schema store.Schema, sqlite, postgres func(testing.TB, store.Schema) store.Config, test func(t *testing.T, c store.Config)) {
	t.Helper()
	kinds := []func(){
		func() { t.Run("sqlite", func(t *testing.T) { test(t, sqlite(t, schema)) }) },
		func() { t.Run("postgres", func(t *testing.T) { test(t, postgres(t, schema)) }) },
	}
	if testing.Short() {
		one := crc32.ChecksumIEEE([]byte(t.Name())) % 2
		kinds = kinds[one : one+1]
	}
	for _, run := range kinds {
		run()
	}
}

// Open opens a database and closes it after the test.
func Open(tb testing.TB, c store.Config) *store.DB {
	tb.Helper()
	db, err := store.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close the database: %v", err)
		}
	})
	return db
}

// SQLite is a place for a SQLite file, which is there as a first start leaves it: to
// copy one takes a tenth of the time that its migrations take.
func SQLite(tb testing.TB, schema store.Schema) store.Config {
	tb.Helper()
	c := EmptySQLite(tb, schema)
	if err := os.WriteFile(fileOf(c), begun.of(tb, schema), 0o600); err != nil {
		tb.Fatal(err)
	}
	return c
}

// EmptySQLite is a place for a SQLite file.
func EmptySQLite(tb testing.TB, schema store.Schema) store.Config {
	tb.Helper()
	return store.Config{Schema: schema, Dir: tb.TempDir(), Name: string(schema), Keys: Keys(tb)}
}

func fileOf(c store.Config) string { return filepath.Join(c.Dir, c.Name+".db") }

// begun are the SQLite files that tests begin with.
var begun firsts

// firsts are SQLite files as a first start leaves them.
type firsts struct {
	mu    sync.Mutex
	files map[store.Schema][]byte
}

// of is the file of a schema, which is made when it is first asked for.
func (f *firsts) of(tb testing.TB, schema store.Schema) []byte {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if file, there := f.files[schema]; there {
		return file
	}
	c := EmptySQLite(tb, schema)
	begin(tb, c)
	file, err := os.ReadFile(fileOf(c))
	if err != nil {
		tb.Fatal(err)
	}
	if f.files == nil {
		f.files = map[store.Schema][]byte{}
	}
	f.files[schema] = file
	return file
}

// begin starts with an empty place, and ends.
func begin(tb testing.TB, c store.Config) {
	tb.Helper()
	db, err := store.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

// Keys are what tests seal with: each has the same key, so that a database can be
// opened by another test process.
func Keys(tb testing.TB) *store.Keyring {
	tb.Helper()
	keys, err := store.NewKeyring(random, store.SealingKey{1: 0x5e, 31: 0xa1})
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}
