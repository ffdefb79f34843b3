package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"till/flow/benchtest"
	"till/flow/store"
	"till/flow/store/lite"
	"till/flow/store/storetest"
)

// onPostgres keeps the databases of a simulation on a PostgreSQL: one with three schemas
// for the template, and one for all processes of a week. A bubble's time stands still
// while the server works.
type onPostgres struct {
	server string // its URL, with %s for the name of a database
	name   string // how the names of its databases begin
}

func newOnPostgres(t *testing.T) *onPostgres {
	t.Helper()
	c := storetest.EmptyPostgres(t, store.Checkout)
	p := &onPostgres{server: strings.Replace(c.URL, "/postgres?", "/%s?", 1), name: c.Name}
	t.Cleanup(func() {
		for _, dir := range []string{beginnings, process} {
			if err := p.do("postgres", "DROP DATABASE IF EXISTS "+p.of(dir)+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// of is the name of the database that stands for a folder.
func (p *onPostgres) of(dir string) string {
	if strings.HasPrefix(dir, process) {
		return p.name + "_week"
	}
	return p.name + "_template"
}

func (p *onPostgres) url(dir string) string { return fmt.Sprintf(p.server, p.of(dir)) }

// do runs statements on a database.
func (p *onPostgres) do(database string, stmts ...string) error {
	db, err := sql.Open("pgx", fmt.Sprintf(p.server, database))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for _, stmt := range stmts {
		if _, failed := db.ExecContext(context.Background(), stmt); failed != nil {
			err = fmt.Errorf("%s: %w", stmt, failed)
			break
		}
	}
	return errors.Join(err, db.Close())
}

func (p *onPostgres) begin(dir, from string) error {
	like := "template0"
	if from != "" {
		like = p.of(from)
	}
	return p.do("postgres", "DROP DATABASE IF EXISTS "+p.of(dir)+" WITH (FORCE)", "CREATE DATABASE "+p.of(dir)+" TEMPLATE "+like)
}

func (p *onPostgres) dies(dir string, end func() error) error {
	err := p.do("postgres", "ALTER DATABASE "+p.of(dir)+" ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+p.of(dir)+"'")
	return errors.Join(err, end(), p.do("postgres", "ALTER DATABASE "+p.of(dir)+" ALLOW_CONNECTIONS true"))
}

// The parts of what the watchers are, and what PostgreSQL says otherwise.
var (
	watcher = regexp.MustCompile(`(?s)^CREATE TRIGGER (\w+) AFTER (\w+) ON (\w+)(?: WHEN (.*?))? BEGIN\s+(.*); END$`)
	seqText = strings.NewReplacer("seq INTEGER", "seq BIGSERIAL")
)

func (p *onPostgres) watch(dir, name string) error {
	stmts := []string{"SET search_path TO " + name}
	for one := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(watchers), ";"), ";\n") {
		m := watcher.FindStringSubmatch(one)
		if m == nil {
			stmts = append(stmts, seqText.Replace(one))
			continue
		}
		when := ""
		if m[4] != "" {
			when = " WHEN (" + m[4] + ")"
		}
		stmts = append(stmts, fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NULL; END $$", m[1], m[5]),
			fmt.Sprintf("CREATE TRIGGER %s AFTER %s ON %s FOR EACH ROW%s EXECUTE FUNCTION %s()", m[1], m[2], m[3], when, m[1]))
	}
	return p.do(p.of(dir), stmts...)
}

func (p *onPostgres) read(dir, name string) (reader, error) {
	db, err := sql.Open("pgx", p.url(dir)+"&search_path="+name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return onServer{db}, nil
}

// onServer reads as lite.Conn does.
type onServer struct{ db *sql.DB }

func (s onServer) Close() error { return s.db.Close() }

func (s onServer) Each(query string, args []any, scan func(lite.Scanner) error) error {
	for n := range args {
		query = strings.Replace(query, "?", "$"+strconv.Itoa(n+1), 1)
	}
	rows, err := s.db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// moment is where a line of a trace tells the time. What nobody waits for is committed 20 ms
// later on SQLite, to go with others, and what follows from it comes that much later.
var moment = regexp.MustCompile(`^( *)d\d+ [\d:.]+ `)

// told is the story of a trace: its steps, and what came of each in no order.
func told(trace string) (story []string) {
	step := 0
	for line := range strings.Lines(trace) {
		effect := strings.HasPrefix(line, " ")
		line = moment.ReplaceAllString(line, "$1")
		if !effect {
			slices.Sort(story[step:])
		}
		if story = append(story, line); !effect {
			step = len(story)
		}
	}
	slices.Sort(story[step:])
	return append(story, "the end\n") // or one that breaks off would be as the other as far as it goes
}

// The same weeks are played on SQLite and on PostgreSQL: every invariant holds on both,
// and both tell the same story, unless a crash cut a write of SQLite in its middle, which
// on PostgreSQL nothing does.
func TestAWeekIsTheSameOnPostgreSQL(t *testing.T) {
	weeks := benchtest.Often(t, "TILL_SIM_POSTGRES", 2)
	templates := []*template{template1(t, nil), template1(t, newOnPostgres(t))}
	same := 0
	for n := range weeks {
		seed := uint64(n + 1)
		var stories [2][]string
		cut := false
		for i, tpl := range templates {
			var trace strings.Builder
			var r Result
			inBubble(func() { r = play{seed: seed, tpl: tpl, out: &trace, goals: newGoals()}.run() })
			if r.Broken != nil {
				t.Fatalf("seed %d on %s: %v\n%s", seed, []string{"SQLite", "PostgreSQL"}[i], r.Broken, strings.Join(r.Last, "\n"))
			}
			stories[i], cut = told(trace.String()), cut || r.cut
		}
		switch {
		case cut:
		case slices.Equal(stories[0], stories[1]):
			same++
		default:
			for i := range min(len(stories[0]), len(stories[1])) {
				if a, b := stories[0][i], stories[1][i]; a != b {
					t.Errorf("seed %d, line %d of %d:\n%s and on PostgreSQL\n%s", seed, i+1, len(stories[0]), a, b)
					break
				}
			}
		}
		if (n+1)%10 == 0 {
			t.Logf("%d of %d weeks, %d of them the same to the line", n+1, weeks, same)
		}
	}
	if same == 0 {
		t.Errorf("none of %d weeks could be compared", weeks)
	}
}
