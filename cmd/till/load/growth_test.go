//go:build linux

package load

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // fills the files
)

// grown is a world whose file holds so many sessions.
type grown struct {
	*world

	n            int
	ready        time.Duration
	create, read times // of each round the median
}

// growth measures what the number of sessions in the file costs: the start, a
// page of the list, and create and read beside the same with few. The worlds run
// beside each other and are asked in turns, so that what else the machine does
// hits all alike.
func growth(b *testing.B, t *table) {
	b.Helper()
	var all []*grown
	for _, n := range []int{size(10_000, 1_000), size(1_000_000, 20_000), size(5_000_000, 60_000)} {
		began := time.Now()
		g := grow(b, n)
		progress("  %d sessions in %s, ready in %s", n, time.Since(began).Round(time.Second), g.ready.Round(time.Millisecond))
		all = append(all, g)
	}
	middle := all[1]
	t.Judge(fmt.Sprintf("start with %d sessions: ready after", middle.n), fmt.Sprintf("%.2f s", middle.ready.Seconds()),
		fmt.Sprintf("%.2f s with %d", all[0].ready.Seconds(), all[0].n), "≤ 2 s", middle.ready <= 2*time.Second)
	for _, list := range []struct{ name, query string }{{"", ""}, {" of a status that none has", "&status=PROCESSING"}, {" of the last few paid", "&status=PAID"}, {" of an e-mail address", "&customerEmail=payer77@example.com"}} {
		few, many := all[0].list(b, list.query), middle.list(b, list.query)
		t.Judge(fmt.Sprintf("a page of the list%s, %d sessions", list.name, middle.n), fmt.Sprintf("p50 %s, p99 %s", ms(many.at(0.5)), ms(many.at(0.99))),
			fmt.Sprintf("p50 %s with %d", ms(few.at(0.5)), all[0].n), "p99 ≤ 50 ms", many.at(0.99) <= 50)
	}
	for range size(15, 5) {
		for _, g := range all {
			_, took, err := closed(8, time.Duration(size(1000, 300))*time.Millisecond, func(i int) error {
				_, _, err := g.open(context.Background(), i, "headless")
				return err
			})
			must(b, err)
			g.create = append(g.create, time.Duration(took.at(0.5)*float64(time.Millisecond)))
			_, took, err = closed(8, time.Duration(size(1000, 300))*time.Millisecond, func(int) error {
				return g.call(context.Background(), http.MethodGet, g.url("/v1/whatsapp/checkout/sessions/"+seeded(1+rand.IntN(g.n))), g.keys[0], nil, nil) // any will do
			})
			must(b, err)
			g.read = append(g.read, time.Duration(took.at(0.5)*float64(time.Millisecond)))
		}
	}
	few := all[0]
	for _, g := range all[1:] {
		for _, of := range []struct {
			name      string
			few, many times
		}{{"create", few.create, g.create}, {"read", few.read, g.read}} {
			factor := of.many.at(0.5) / of.few.at(0.5)
			t.Judge(fmt.Sprintf("%s p50 at %d sessions, 8 connections", of.name, g.n), fmt.Sprintf("%s: %.2f ×", ms(of.many.at(0.5)), factor),
				fmt.Sprintf("%s with %d", ms(of.few.at(0.5)), few.n), "≤ 1.5 ×", factor <= 1.5)
		}
	}
	last := all[len(all)-1]
	t.Add(fmt.Sprintf("RSS with %d sessions, of which heap", last.n), mib(last.till.rss())+", "+mib(last.till.heap()), fmt.Sprintf("%s with %d", mib(few.till.rss()), few.n))
	for _, g := range all {
		g.till.End(syscall.SIGTERM)
	}
}

// grow makes a world, fills its file and starts it again.
func grow(b *testing.B, n int) *grown {
	b.Helper()
	w := prepare(b, settings{limit: 1_000_000})
	w.start()
	w.signUp(0)
	if _, _, err := w.open(context.Background(), 0, "headless"); err != nil {
		b.Fatal(err)
	}
	w.till.End(syscall.SIGTERM)
	w.fill(b, n)
	g := &grown{world: w, n: n}
	g.ready = w.start()
	return g
}

// seeded is the id of the i-th session that fill makes.
func seeded(i int) string { return fmt.Sprintf("wsp_sess_01%024d", i) }

// fill copies the one session that there is, with what was kept of it, so many
// times: as sessions that are over, of a hundred thousand payers, with amounts of
// all sizes; each hundredth was paid long ago.
func (w *world) fill(b *testing.B, n int) {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "data", "test.db"))
	must(b, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	do := func(query string) {
		b.Helper()
		if _, err := db.ExecContext(b.Context(), query); err != nil {
			b.Fatalf("%v: %s", err, query)
		}
	}
	for _, pragma := range []string{"journal_mode=OFF", "synchronous=OFF", "cache_size=-800000", "temp_store=MEMORY", "foreign_keys=OFF"} {
		do("PRAGMA " + pragma)
	}
	do("BEGIN")
	w.copies(b, db, "sessions", n, map[string]string{
		"id": "'wsp_sess_01' || printf('%024d', i)", "reference": "'seed-' || i", "charge": "''", "entry_code": "''",
		"customer_email": "'payer' || (i * 7919 % 100000) || '@example.com'", "amount": "100000 + i * 104729 % 1000 * 100",
		"status": "iif(i % 100 = 0 AND i < 10000, 'PAID', 'EXPIRED')", "swept": "1",
		"paid_at":     "iif(i % 100 = 0 AND i < 10000, created_at, 0)",
		"amount_paid": "iif(i % 100 = 0 AND i < 10000, 100000 + i * 104729 % 1000 * 100, 0)",
	})
	w.copies(b, db, "events", n, map[string]string{
		"id": "'wsp_evt_01' || printf('%024d', i)", "session": "'wsp_sess_01' || printf('%024d', i)", "created_at": "created_at - 90000000 + i % 80000000",
	})
	do("COMMIT")
	do("PRAGMA journal_mode=WAL")
}

// copies copies the first row of a table, with other values for some columns. A
// table without a row keeps none.
func (w *world) copies(b *testing.B, db *sql.DB, table string, n int, other map[string]string) {
	b.Helper()
	rows, err := db.QueryContext(b.Context(), "SELECT name FROM pragma_table_info(?)", table)
	must(b, err)
	defer rows.Close()
	var names, values []string
	for rows.Next() {
		var name string
		must(b, rows.Scan(&name))
		value := other[name]
		if value == "" {
			value = "first." + name
		}
		names, values = append(names, name), append(values, value)
	}
	must(b, rows.Err())
	for _, query := range []string{
		"CREATE TEMP TABLE first AS SELECT * FROM main." + table + " LIMIT 1",
		fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO main.%s (%s) SELECT %s FROM n CROSS JOIN first",
			n, table, strings.Join(names, ", "), strings.Join(values, ", ")),
		"DROP TABLE temp.first",
	} {
		if _, err := db.ExecContext(b.Context(), query); err != nil {
			b.Fatalf("%v: %s", err, query)
		}
	}
}

// list reads pages of the list.
func (g *grown) list(b *testing.B, query string) times {
	b.Helper()
	var took times
	for range size(300, 100) {
		began := time.Now()
		err := g.call(context.Background(), http.MethodGet, g.url("/v1/whatsapp/checkout/sessions?limit=50"+query), g.keys[0], nil, nil)
		must(b, err)
		took = append(took, time.Since(began))
	}
	return took
}
