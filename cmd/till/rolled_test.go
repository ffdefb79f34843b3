package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// A newer program is started beside one that runs, and changes the database under it.
// The older one says so where those ask who send it work, in its log too, and what to
// do; until then it said that it was ready, and failed at what it could not read.
func TestOneThatANewerTillHasOvertakenSaysSo(t *testing.T) {
	saysOnceChanged(t, "rolled", "INSERT INTO live.schema_version (version) VALUES (9999)",
		"A newer Till has changed the database: stop this process, and start that one in its place.")
}

// A schema is dropped under a process that runs: it answers nothing of that environment
// any more, and said that it was ready.
func TestOneWhoseSchemaIsGoneSaysSo(t *testing.T) {
	saysOnceChanged(t, "dropped", "DROP SCHEMA live CASCADE", "A schema is gone from the database, or may not be read: till doctor says what mends it.")
}

// saysOnceChanged has a process run on a database of its own, and holds that once that is
// changed under it, it is not ready, and says why, in its log too.
func saysOnceChanged(t *testing.T, name, change, why string) {
	t.Helper()
	o := newOutside(t)
	address := ownDatabase(t, name)
	o.env = append(o.env, "TILL_DATABASE_URL="+address)
	x, m := running(t, o)
	waitReady(m)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), change)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	m.until("it is not ready any more", func() bool {
		status, out, err := m.try(http.MethodGet, "/readyz", nil)
		return status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(out, err), why)
	})
	m.until("the log says so", func() bool { return strings.Contains(x.p.Said(), why) })
}

// The key that seals secrets is changed by a start beside a process that runs on with the
// one before. That reads no secret any more, so that it can tell no merchant of money: it
// is not ready, and says why.
func TestOneWhoseSealingKeyWasChangedSaysSo(t *testing.T) {
	o := newOutside(t)
	o.env = append(o.env, "TILL_DATABASE_URL="+ownDatabase(t, "rekeyed"), "TILL_SECRETS_KEY="+aSecretsKey)
	x, m := running(t, o)
	waitReady(m)
	changed := append(slices.Clone(o.env), "TILL_SECRETS_KEY="+strings.Replace(aSecretsKey, "1a", "2b", 1), "TILL_SECRETS_KEY_OLD="+aSecretsKey)
	addr := tilltest.FreePort(t)
	second := start(t, t.TempDir(), changed, "dev", "--http-addr", addr)
	const why = "Secrets were sealed with another key meanwhile: start this process again with the new TILL_SECRETS_KEY."
	m.until("it is not ready any more", func() bool {
		status, out, err := m.try(http.MethodGet, "/readyz", nil)
		return status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(out, err), why)
	})
	m.until("the log says so", func() bool { return strings.Contains(x.p.Said(), why) })
	m.until("the one with the new key serves", func() bool {
		out, err := second.Beside("health", "--http-addr", addr)
		return err == nil && !strings.Contains(out, "sealing")
	})
}
