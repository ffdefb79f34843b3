package main

import (
	"database/sql"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
)

// Who copies the files of a program that was killed, and not what SQLite keeps beside
// them, has databases that are there and in which nothing is. The books are not begun
// anew in one of those, as they are not in one that is gone.
func TestADatabaseThatLostItsLogIsNotBegunAnew(t *testing.T) {
	k := keeper{t, t.TempDir()}
	p := tilltest.Start(t, k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off")
	p.Line("/phone$")
	p.Kill()
	for _, name := range []string{"test", "live", "accounts"} {
		k.must(exec.CommandContext(t.Context(), "cp", "-a", k.at("data"), k.at(name)).Run())
		for _, file := range []string{".db-wal", ".db-shm"} {
			k.must(os.Remove(k.at(name + "/" + name + file)))
		}
		for _, command := range []string{"migrate --dry-run", "migrate"} {
			k.fails(exitFailed, command+" --data-dir "+name, "till: "+name+".db in "+name+" is empty or gone", "nothing was begun anew")
		}
		k.fails(exitFailed, "dev --http-addr 127.0.0.1:0 --metrics-addr off --data-dir "+name, "till: "+name+".db in "+name+" is empty or gone", "nothing was begun anew", "till restore FILE")
	}
	k.must(os.Remove(k.at("live/live.db"))) // and one that is gone altogether
	k.fails(exitFailed, "migrate --data-dir live", "till: live.db in live is empty or gone", "till restore FILE")
	again := tilltest.Start(t, k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off")
	again.Line("/phone$") // whose log is there has lost nothing
}

// A schema of PostgreSQL that was dropped, or that a dump did not bring back, is not
// begun anew either.
func TestASchemaThatIsGoneIsNotBegunAnew(t *testing.T) {
	t.Parallel() // it mostly waits
	url := ownDatabase(t, "lost")
	k := keeper{t, t.TempDir()}
	p := tilltest.Start(t, k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off", "--database-url", url)
	p.Line("/phone$")
	p.End(syscall.SIGTERM)
	db, err := sql.Open("pgx", url)
	k.must(err)
	t.Cleanup(func() { _ = db.Close() })
	for _, name := range []string{"test", "live", "accounts"} {
		for _, stmt := range []string{"ALTER SCHEMA " + name + " RENAME TO aside", "CREATE SCHEMA " + name} {
			_, err := db.ExecContext(t.Context(), stmt)
			k.must(err)
		}
		for _, command := range []string{"migrate --dry-run", "migrate", "dev --http-addr 127.0.0.1:0 --metrics-addr off"} {
			k.fails(exitFailed, command+" --database-url "+url, "till: the schema "+name+" in PostgreSQL is empty or gone", "nothing was begun anew", "till restore till.dump")
		}
		for _, stmt := range []string{"DROP SCHEMA " + name, "ALTER SCHEMA aside RENAME TO " + name} {
			_, err := db.ExecContext(t.Context(), stmt)
			k.must(err)
		}
	}
	again := tilltest.Start(t, k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off", "--database-url", url)
	again.Line("/phone$")
}
