package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// Exec runs a statement of a test inside a transaction, for what the package
// itself never does.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) error {
	_, err := t.run.exec(ctx, query, args...)
	return err
}

// Exec tries to write where only reading is allowed.
func (r Reader) Exec(ctx context.Context, query string, args ...any) error {
	_, err := r.run.exec(ctx, query, args...)
	return err
}

// Postgres says which database this is.
func (d *DB) Postgres() bool { return d.dialect == postgresDialect }

// BatchSize is a bound that tests reach for.
const BatchSize = batchSize

// Count reads one number.
func (r Reader) Count(ctx context.Context, query string, args ...any) (n int, err error) {
	_, err = r.run.one(ctx, query, args, &n)
	return n, err
}

// Moment reads one time.
func (r Reader) Moment(ctx context.Context, query string, args ...any) (time.Time, error) {
	var ms int64
	_, err := r.run.one(ctx, query, args, &ms)
	return flow.FromMillis(ms), err
}

// Plans are how SQLite goes about the queries of a search.
func (r Reader) Plans(ctx context.Context, f SearchFilter) ([]string, error) {
	var plans []string
	f, err := r.resolved(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, b := range f.branches() {
		plan, err := r.Plan(ctx, b.query, b.args...)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// QueuePlan is how SQLite reads a queue.
func (r Reader) QueuePlan(ctx context.Context, f QueueFilter) (plan string, err error) {
	query, args := f.query()
	return r.Plan(ctx, "SELECT * FROM ("+query+") AS w WHERE w.place > ? ORDER BY w.place LIMIT 10", append(args, "")...)
}

// ChatPlans are how SQLite finds what payers wait for.
func (r Reader) ChatPlans(ctx context.Context) (outbox, called string, err error) {
	if outbox, err = r.Plan(ctx, outboxSQL, 1, 3); err == nil {
		called, err = r.Plan(ctx, calledSQL)
	}
	return outbox, called, err
}

// HeldBackPlan is how SQLite finds what is held for longest.
func (r Reader) HeldBackPlan(ctx context.Context) (string, error) { return r.Plan(ctx, heldBackSQL, 1) }

// SettledPlan is how SQLite finds the settlements of a session.
func (r Reader) SettledPlan(ctx context.Context) (string, error) { return r.Plan(ctx, settledSQL, "") }

// Plan is how SQLite goes about a query.
func (r Reader) Plan(ctx context.Context, query string, args ...any) (plan string, err error) {
	err = r.run.each(ctx, "EXPLAIN QUERY PLAN "+query, args, func(scan scanner) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		plan += detail + "\n"
		return err
	})
	return plan, err
}

// RepeatedSteps are, of each rule, the steps of its plan on SQLite that are done
// again for each row of another step.
func (r Reader) RepeatedSteps(ctx context.Context) (map[string][]string, error) {
	all := map[string][]string{}
	for _, rule := range append(ledgerRules(), rowRules(Checkout)...) {
		within := map[int]bool{}
		err := r.run.each(ctx, "EXPLAIN QUERY PLAN "+rule.faults, slices.Repeat([]any{""}, strings.Count(rule.faults, "?")), func(scan scanner) error {
			var id, parent, unused int
			var detail string
			err := scan(&id, &parent, &unused, &detail)
			if within[parent] {
				all[rule.Name] = append(all[rule.Name], detail)
			}
			within[id] = within[parent] || strings.HasPrefix(detail, "CORRELATED")
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ListPlan is how SQLite goes about a list of sessions.
func (r Reader) ListPlan(ctx context.Context, f SessionFilter) (string, error) {
	query, args := f.query()
	return r.Plan(ctx, query, args...)
}

// OfProjectPlan is how SQLite goes about one row of a project by its id.
func (r Reader) OfProjectPlan(ctx context.Context, table string) (string, error) {
	return r.Plan(ctx, `SELECT * FROM `+table+r.run.ofProject(), "wsp_prj_1", "id")
}

// ClaimPlan is how PostgreSQL goes about the claim of some deliveries.
func (t *Tx) ClaimPlan(ctx context.Context, ids []string) (plan string, err error) {
	for part := range t.run.parts(ids) {
		query := "EXPLAIN " + strings.Replace(claimManySQL, "{{ids}}", part.marks, 1)
		err = t.run.each(ctx, query, args(int64(0), "", part.args, int64(never)), func(scan scanner) error {
			var line string
			err := scan(&line)
			plan += line + "\n"
			return err
		})
	}
	return plan, err
}

// PartOf is how many rows of a table a rule is checked in at once.
const PartOf = partOf

// LedgerRules are the names of the rules that LedgerFaults knows.
func LedgerRules() []string {
	var names []string
	for _, rule := range ledgerRules() {
		names = append(names, rule.Name)
	}
	return names
}

// Parts are what a database is made of, in the lines of a shape, and how lines about its
// own kind begin.
func (r Reader) Parts(ctx context.Context) (lines map[string][]string, own string, err error) {
	has, err := r.parts(ctx)
	own, lines = r.database()+" ", map[string][]string{}
	for _, part := range slices.Sorted(maps.Keys(has)) {
		of, name, _ := strings.Cut(part, ".")
		if i := strings.LastIndex(part, " "); i > 0 {
			of, name = own+part[:i], part[i+1:]
		}
		lines[of] = append(lines[of], name)
	}
	return lines, own, err
}
