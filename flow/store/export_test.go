package store

import "context"

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

// Bounds that tests reach for.
const (
	BatchSize   = batchSize
	QueueLength = queueLength
)

// Count reads one number.
func (r Reader) Count(ctx context.Context, query string, args ...any) (n int, err error) {
	_, err = r.run.one(ctx, query, args, &n)
	return n, err
}
