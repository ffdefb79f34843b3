package storetest

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
)

// Postgres is a place in PostgreSQL as a first start leaves it, which is gone after the
// test. On the server that is started for the test binary it is a database of its own: to
// copy one takes a tenth of the time that its migrations take. The test is skipped where
// there is no PostgreSQL.
func Postgres(tb testing.TB, schema store.Schema) store.Config {
	tb.Helper()
	at := serverOf(tb)
	if !shared.ours() { // whose server it is may not let us make databases
		return EmptyPostgres(tb, schema)
	}
	first, name := shared.first(tb, schema), aName(tb)
	tell(tb, at, "CREATE DATABASE "+name+" TEMPLATE "+first)
	tb.Cleanup(func() { tell(tb, at, "DROP DATABASE "+name+" WITH (FORCE)") })
	return database(tb, at, name, schema)
}

// EmptyPostgres is a place in PostgreSQL, which is emptied after the test. The test
// is skipped where there is no PostgreSQL.
func EmptyPostgres(tb testing.TB, schema store.Schema) store.Config {
	tb.Helper()
	at, name := serverOf(tb), aName(tb)
	tb.Cleanup(func() { tell(tb, at, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return store.Config{Schema: schema, URL: at, Name: name, Keys: Keys(tb)}
}

// first is the name of the database that those of a schema are copied from, which is
// made when it is first asked for.
func (s *server) first(tb testing.TB, schema store.Schema) string {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "first_" + string(schema)
	if !s.firsts[schema] {
		tell(tb, s.url, "CREATE DATABASE "+name)
		begin(tb, database(tb, s.url, name, schema))
		s.firsts[schema] = true
	}
	return name
}

// database is a place that has a database of its own.
func database(tb testing.TB, at, name string, schema store.Schema) store.Config {
	tb.Helper()
	u, err := url.Parse(at)
	if err != nil {
		tb.Fatal(err)
	}
	u.Path = "/" + name
	return store.Config{Schema: schema, URL: u.String(), Name: string(schema), Keys: Keys(tb)}
}

// serverOf is the address of the server.
func serverOf(tb testing.TB) string {
	tb.Helper()
	at, err := shared.start()
	if err != nil {
		if strings.Contains(os.Getenv(envRequire), "postgres") {
			tb.Fatalf("PostgreSQL is required (%s) and missing: %v", envRequire, err)
		}
		tb.Skipf("no PostgreSQL: %v; set %s or install it to run this half", err, envURL)
	}
	return at
}

func aName(tb testing.TB) string {
	tb.Helper()
	ids := flow.IDs{Now: now, Rand: random}
	name, err := ids.New("t_")
	if err != nil {
		tb.Fatal(err)
	}
	return name
}

// tell has a server do something, in a test or after it.
func tell(tb testing.TB, at, what string) {
	tb.Helper()
	db, err := sql.Open("pgx", at)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = db.ExecContext(context.WithoutCancel(tb.Context()), what)
	if err := errors.Join(err, db.Close()); err != nil {
		tb.Errorf("%s: %v", what, err)
	}
}
