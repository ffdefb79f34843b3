//go:build unix

package checkout_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow/benchtest"
)

// table is what was measured, each figure beside the limit of the same run.
func (h *hookBench) table(b *testing.B) string {
	b.Helper()
	var t strings.Builder
	fmt.Fprintf(&t, "\n%s\n", h.machine(b))
	fmt.Fprintf(&t, "Medians of %d interleaved rounds of %d events, %d bytes each, to %d receivers in another process, loopback TCP, keep-alive; the whole run %.0f s.\n\n",
		h.rounds, h.n, len(h.bare.body), hookDoors, time.Since(h.began).Seconds())
	rows := hookRows{}
	if h.on("rate") {
		for _, p := range hookProducers() {
			rows.add(fmt.Sprintf("H: bare signed POST, %d at once", p), h.perSecond("H %d", p), "", "", true)
		}
	}
	for _, e := range h.engines {
		h.engineRows(&rows, e)
	}
	h.riverRows(&rows)
	rows.Promise("events lost in the whole run", fmt.Sprint(h.lost), "0", h.lost == 0)
	t.WriteString(rows.Text())
	if err := errors.Join(rows.Leave(), rows.Broken()); err != nil {
		b.Error(err)
	}
	if h.on("rate") {
		t.WriteString(hookFootnote)
	}
	for _, n := range h.notes {
		fmt.Fprintln(&t, n)
	}
	for _, e := range h.engines {
		if n := e.rig.busy.Load(); n > 0 {
			fmt.Fprintf(&t, "%s: the store was too busy for %d calls, which were repeated.\n", e.name, n)
		}
	}
	return t.String() + "\n"
}

const hookFootnote = `
C  the bare store: one transaction for a payment's row and its ledger line, the event and a delivery, from so many producers, no rules.
H  the bare POST: net/http and HMAC from the standard library, nothing kept. L = 1/(1/C + 1/H): both live off the same processors.
   On PostgreSQL nothing of Till's is in it: database/sql, one statement after the other, a commit for each, on 32 connections.
E  the same rows as C's, written by Till with the event owed to whoever wants it: until the last delivery is made and kept. The goal is a share of L.
S  a real settlement that nobody is told of: what the bank's message costs by its own rules. L' = 1/(1/S + 1/H).
SE the same, told to an endpoint: from the first message until the last delivery is made and kept.
O  a session is opened, nobody is told; OE: told. OE is the cheapest command that has an event. L" = 1/(1/O + 1/H).
`

// engineRows are the figures of Till on one database.
func (h *hookBench) engineRows(rows *hookRows, e *hookEngine) {
	lite := e.name == "SQLite"
	goal := func(onLite, onPostgres float64) float64 {
		if lite {
			return onLite
		}
		return onPostgres
	}
	for _, p := range hookProducers() {
		if !h.on("rate") {
			break
		}
		of := func(name string) float64 { return h.median("%s %s %d", e.name, name, p) }
		post := h.median("H %d", p)
		limit := func(commit float64) float64 { return 1 / (1/commit + 1/post) }
		name := func(what string) string { return fmt.Sprintf("%s, %d producers: %s", e.name, p, what) }
		rows.add(name("C"), perSecond(of("C")), "", "", true)
		rows.add(name("L"), perSecond(limit(of("C"))), "", "", true)
		share := goal(map[int]float64{16: 0.60, 128: 0.75}[p], map[int]float64{16: 0.65, 128: 0.75}[p])
		rows.atLeast(name("E"), perSecond(of("E")), of("E")/limit(of("C")), "L", share)
		rows.add(name("SE"), perSecond(of("SE")), fmt.Sprintf("%.2f L", of("SE")/limit(of("C"))), "", true)
		rows.add(name("S"), perSecond(of("S")), fmt.Sprintf("%.2f C", of("S")/of("C")), "", true)
		rows.add(name("L', and SE of it"), perSecond(limit(of("S"))), fmt.Sprintf("%.2f L'", of("SE")/limit(of("S"))), "", true)
		rows.add(name("OE"), perSecond(of("OE")), fmt.Sprintf("%.2f L", of("OE")/limit(of("C"))), "", true)
		rows.add(name(`O, and OE of L"`), perSecond(of("O")), fmt.Sprintf(`%.2f L"`, of("OE")/limit(of("O"))), "", true)
	}
	if h.on("drain") && h.on("rate") {
		rows.atLeast(e.name+": drain of a stored backlog", h.perSecond("%s drain", e.name), h.median("%s drain", e.name)/h.median("H 128"), "H", goal(0.65, 0.8))
	}
	if h.on("latency") {
		p50, p99 := h.at(0.5, "%s paced", e.name), h.at(0.99, "%s paced", e.name)
		rows.atMost(fmt.Sprintf("%s: commit to delivered p50, %d/s", e.name, hookPace), millis(p50), p50/h.at(0.5, "bare"), "bare", 4)
		rows.atMost(fmt.Sprintf("%s: commit to delivered p99, %d/s", e.name, hookPace), millis(p99), p99/h.at(0.99, "bare"), "bare", 8)
		rows.add(e.name+": of a bare POST at the same pace", "", fmt.Sprintf("%.1f p50, %.1f p99", p50/h.at(0.5, "bare paced"), p99/h.at(0.99, "bare paced")), "", true)
	}
	if h.on("hang") {
		alone, beside := h.at(0.5, "%s alone", e.name), h.at(0.5, "%s beside", e.name)
		rows.atMost(e.name+": p50 beside an endpoint that hangs", millis(beside), beside/alone, "alone", 2)
		rows.add(e.name+": p99 of the same", millis(h.at(0.99, "%s beside", e.name)),
			fmt.Sprintf("%.1f alone", h.at(0.99, "%s beside", e.name)/h.at(0.99, "%s alone", e.name)), "", true)
	}
	if h.on("held") {
		none, many := h.at(0.5, "%s none held", e.name), h.at(0.5, "%s many held", e.name)
		rows.atMost(fmt.Sprintf("%s: claim of %d beside %d held", e.name, hookClaimed, hookHeld), millis(many), many/none, "none held", 2)
		none, many = h.at(0.5, "%s none held, delivered", e.name), h.at(0.5, "%s many held, delivered", e.name)
		rows.atMost(fmt.Sprintf("%s: commit to delivered p50 beside %d held", e.name, hookHeld), millis(many), many/none, "none held", 2)
	}
	if h.on("kill") {
		lost := h.median("%s killed, lost", e.name)
		rows.Promise(fmt.Sprintf("%s: lost after %d times kill -9", e.name, hookKills),
			fmt.Sprintf("%.0f of %.0f, %.0f came twice", lost, h.median("%s killed, acknowledged", e.name), h.median("%s killed, twice", e.name)), "0 lost", lost == 0)
	}
}

// riverRows are River's figures, and Till's share of them.
func (h *hookBench) riverRows(rows *hookRows) {
	if h.river == nil {
		return
	}
	for _, p := range hookProducers() {
		if !h.on("rate") {
			break
		}
		river := h.median("River %d", p)
		rows.add(fmt.Sprintf("River, PostgreSQL, %d producers", p), perSecond(river),
			fmt.Sprintf("%.2f L", river*(1/h.median("PostgreSQL C %d", p)+1/h.median("H %d", p))), "", true)
		rows.atLeast(fmt.Sprintf("PostgreSQL, %d producers: E of River", p), "", h.median("PostgreSQL E %d", p)/river, "River", 1.3)
		rows.add(fmt.Sprintf("PostgreSQL, %d producers: SE of River", p), "", fmt.Sprintf("%.2f River", h.median("PostgreSQL SE %d", p)/river), "", true)
	}
	if h.on("drain") {
		rows.add("River, PostgreSQL: drain of a stored backlog", h.perSecond("River drain"), fmt.Sprintf("%.2f H", h.median("River drain")/h.median("H 128")), "", true)
	}
}

// hookRows are the lines of the table.
type hookRows struct{ benchtest.Table }

func (r *hookRows) add(what, figure, ratio, goal string, kept bool) {
	if goal == "" {
		r.Add(what, figure, ratio)
		return
	}
	r.Judge(what, figure, ratio, goal, kept)
}

func (r *hookRows) atLeast(what, figure string, ratio float64, of string, goal float64) {
	r.add(what, figure, fmt.Sprintf("%.2f %s", ratio, of), fmt.Sprintf("≥ %.2f", goal), ratio >= goal)
}

func (r *hookRows) atMost(what, figure string, ratio float64, of string, goal float64) {
	r.add(what, figure, fmt.Sprintf("%.2f %s", ratio, of), fmt.Sprintf("≤ %.0f", goal), ratio <= goal)
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }

func millis(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }

func (h *hookBench) perSecond(format string, args ...any) string {
	return perSecond(h.median(format, args...))
}

// machine says what was measured on.
func (h *hookBench) machine(b *testing.B) string {
	b.Helper()
	where := benchtest.Machine(b) + ", SQLite synchronous=FULL"
	if len(h.engines) > 1 {
		var version, fsync string
		db, err := sql.Open("pgx", h.engines[1].place().URL)
		if err == nil {
			err = db.QueryRowContext(b.Context(), "SELECT current_setting('server_version'), current_setting('fsync')").Scan(&version, &fsync)
			_ = db.Close()
		}
		must(b, err)
		where += fmt.Sprintf(", PostgreSQL %s fsync=%s", version, fsync)
	}
	return where
}
