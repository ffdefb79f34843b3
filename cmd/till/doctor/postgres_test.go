package doctor_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/cmd/till/doctor"
	"till/config"
	"till/flow/store"
	"till/flow/store/storetest"
)

// server is a PostgreSQL database of its own for a stage that nobody has used, and a
// role that owns nothing in it.
func (s *stage) server(role string) (does func(query string), url string) {
	s.t.Helper()
	at := storetest.EmptyPostgres(s.t, store.Accounts).URL
	ctx := context.Background()
	in := func(url, query string) {
		s.t.Helper()
		db, err := sql.Open("pgx", url)
		s.must(err)
		defer func() { _ = db.Close() }()
		if _, err := db.ExecContext(ctx, query); err != nil {
			s.t.Fatalf("%s: %v", query, err)
		}
	}
	in(at, "CREATE DATABASE "+role)
	in(at, "CREATE ROLE "+role+" LOGIN")
	own := strings.Replace(at, "/postgres?", "/"+role+"?", 1)
	s.t.Cleanup(func() {
		in(own, "DROP OWNED BY "+role)
		in(at, "DROP DATABASE "+role+" WITH (FORCE)")
		in(at, "DROP ROLE "+role)
	})
	s.cfg.DatabaseURL = config.Secret(strings.Replace(own, "user=till", "user="+role, 1))
	return func(query string) { s.t.Helper(); in(own, query) }, own
}

// What a start would fail of is found before it: the role that may not write, a server
// that may only be read, a database that is not there; and a database in which nothing
// was made yet is none of them.
func TestTheDoctorSeesWhetherPostgreSQLTakesAnything(t *testing.T) {
	s := well(t)
	does, owner := s.server("doctored")
	says := func(state doctor.State, what, fix string) {
		t.Helper()
		if got := s.found("database"); got.State != state || !strings.Contains(got.What, what) || !strings.Contains(got.Fix, fix) || (fix == "") != (got.Fix == "") {
			t.Errorf("not %q, %q: %+v", what, fix, got)
		}
	}
	says(doctor.Fail, `it lacks CREATE ON DATABASE "doctored"`, `psql -d doctored -c 'GRANT CREATE ON DATABASE "doctored" TO "doctored"'`)
	does(`GRANT CREATE ON DATABASE doctored TO doctored`)
	says(doctor.OK, "nothing is kept in it yet: the first start makes the schemas", "")

	for name, schema := range schemas {
		db, err := store.Open(t.Context(), store.Config{Schema: schema, URL: owner, Name: name})
		s.must(err)
		s.must(db.Close())
	}
	for name, schema := range schemas { // whoever may not look in it is not told that it is empty
		at := store.Config{Schema: schema, URL: string(s.cfg.DatabaseURL), Name: name}
		if made, err := store.Made(t.Context(), at); err != nil || !made {
			t.Errorf("for a role without rights in %s it was made: %t, %v", name, made, err)
		}
		if _, err := store.Inspect(t.Context(), at, false, time.Now); err == nil || errors.Is(err, store.ErrUnmade) {
			t.Errorf("a look of a role without rights at %s said %v", name, err)
		}
	}
	says(doctor.Fail, "may not write to the schema test: it lacks USAGE, CREATE ON SCHEMA test", "GRANT USAGE, CREATE ON SCHEMA test")
	for name := range schemas {
		does("GRANT USAGE, CREATE ON SCHEMA " + name + " TO doctored")
		does("GRANT SELECT ON ALL TABLES IN SCHEMA " + name + " TO doctored")
	}
	says(doctor.Fail, "it lacks SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA test", "psql -d doctored -c ")
	for name := range schemas {
		does("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name + " TO doctored")
	}
	says(doctor.OK, "its schemas are of this Till", "")
	swap := func() {
		t.Helper()
		for _, move := range []string{"test RENAME TO away", "live RENAME TO test", "away RENAME TO live"} {
			does("ALTER SCHEMA " + move)
		}
	}
	swap()
	says(doctor.Fail, "The schema test was made as live", "put each back in its place")
	swap()
	does("ALTER ROLE doctored SET default_transaction_read_only = on")
	says(doctor.Fail, "may only be read: nothing can be kept", "show default_transaction_read_only")
	does("ALTER ROLE doctored RESET default_transaction_read_only")
	does("ALTER ROLE doctored CONNECTION LIMIT 0")
	says(doctor.Fail, "lets nobody else connect: FATAL: too many connections", "each till serve takes up to 48")
	does("ALTER ROLE doctored CONNECTION LIMIT -1")
	does("DROP SCHEMA live CASCADE")
	says(doctor.Fail, "Of the 3 schemas in PostgreSQL, 1 are missing", "till migrate")
	s.cfg.DatabaseURL = config.Secret(strings.Replace(owner, "/doctored?", "/nowhere?", 1))
	says(doctor.Fail, `database "nowhere" does not exist`, `psql "$TILL_DATABASE_URL" -c 'select 1'`)
}

// cancelRequest is the code of a connection that cancels what another one asked for.
// https://www.postgresql.org/docs/current/protocol-message-formats.html
const cancelRequest = 80877102

// One that accepts and says nothing is waited for once, and not by every further look.
func TestAPostgreSQLThatIsAwayIsAskedNothingMore(t *testing.T) {
	s := well(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	t.Cleanup(func() { _ = ln.Close() })
	var asked atomic.Int32
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			// The driver also has what it waited for in vain cancelled, behind our back and on a
			// connection of its own: that asks for nothing.
			var opening struct{ Length, Code uint32 }
			if err := binary.Read(c, binary.BigEndian, &opening); err == nil && opening.Code != cancelRequest {
				asked.Add(1)
			}
			_ = c.Close() // to end the wait
		}
	}()
	s.cfg.DatabaseURL = config.Secret("postgres://till@" + ln.Addr().String() + "/till?sslmode=disable")
	told := int32(-1)
	doctor.Run(t.Context(), s.cfg, func(f doctor.Finding) {
		if f.Check == "database" {
			told = asked.Load()
		}
	})
	if got := asked.Load(); told < 1 || got != told {
		t.Errorf("it was connected to %d times until that was told, and %d times in all", told, got)
	}
}

// With PostgreSQL processes share a data dir, and no lock says whether any uses it.
func TestASharedDataDirIsNotCalledFree(t *testing.T) {
	s := well(t)
	s.server("sharing")
	s.cfg.BankURL, s.cfg.WhatsAppNetwork = "http://127.0.0.1:1", "whatsapp"
	if got := s.found("data-dir"); got.State != doctor.OK || strings.Contains(got.What, "is free") || !strings.Contains(got.What, "Others may use the data dir") {
		t.Errorf("%+v", got)
	}
}
