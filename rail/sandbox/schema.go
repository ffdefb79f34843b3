package sandbox

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
)

//go:embed schema.sql
var schema string

//go:embed upgrade.sql
var upgrade string

// moveOver takes the movements of older books over.
const moveOver = `INSERT INTO movements (seq, id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip,
	reason, reverses, collects) SELECT seq, id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason,
	reverses, '' FROM movements_before; DROP TABLE movements_before`

// prepare makes the tables that are missing, and brings older books to what they
// are now, in one transaction.
func prepare(ctx context.Context, db *sql.DB) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("prepare the books: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	old, err := older(ctx, conn)
	if err != nil {
		return err
	}
	if !old {
		_, err = conn.ExecContext(ctx, schema)
		return wrap("prepare the books", err)
	}
	// Renaming must leave alone what other tables say of this one, and these are
	// not heeded within a transaction.
	if _, err := conn.ExecContext(ctx, `PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON`); err != nil {
		return fmt.Errorf("prepare the books: %w", err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("prepare the books: %w", err)
	}
	for _, script := range []string{upgrade, schema, moveOver} {
		if _, err := tx.ExecContext(ctx, script); err != nil {
			return errors.Join(fmt.Errorf("bring older books up to date: %w", err), tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("bring older books up to date: %w", err)
	}
	_, err = conn.ExecContext(ctx, `PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON`)
	return wrap("prepare the books", err)
}

// older says whether the books are of a bank that sent nothing out.
func older(ctx context.Context, conn *sql.Conn) (bool, error) {
	var columns, known int
	err := conn.QueryRowContext(ctx, `SELECT count(*), count(CASE name WHEN 'collects' THEN 1 END) FROM pragma_table_info('movements')`).Scan(&columns, &known)
	return columns > 0 && known == 0, wrap("prepare the books", err)
}
