package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Access is what a role may do with a schema of PostgreSQL.
type Access struct {
	Role, Database string
	// Made says that something was made in the schema.
	Made bool
	// ReadOnly says that nobody may write now, whatever the role.
	ReadOnly bool
	// Lacks is what the role would have to be granted to work with it, as GRANT says it;
	// "" for nothing.
	Lacks string
}

const schemaRightsSQL = `SELECT current_user, current_database(), CASE current_setting('transaction_read_only') WHEN 'on' THEN 1 ELSE 0 END,
 CASE WHEN has_database_privilege(current_database(), 'CREATE') THEN 1 ELSE 0 END, (SELECT COUNT(*) FROM pg_namespace WHERE nspname = ?),
 (SELECT COUNT(*) FROM pg_namespace WHERE nspname = ? AND has_schema_privilege(oid, 'USAGE')), (SELECT COUNT(*) FROM pg_tables WHERE schemaname = ? AND tablename = 'schema_version')`

const tablesBarredSQL = `SELECT COUNT(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = ? AND relkind IN ('r', 'p')
 AND NOT (has_table_privilege(pg_class.oid, 'SELECT') AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE') AND has_table_privilege(pg_class.oid, 'DELETE'))`

// AccessTo looks what the role of a PostgreSQL address may do, without doing any of it.
func AccessTo(ctx context.Context, c Config) (a Access, err error) {
	db, err := dialled(c)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	run := runner{statements: sqlStatements{sqlRunner: db}, dialect: postgresDialect}
	name := strings.ToLower(c.Name)
	only, creates, there, used, made, barred := 0, 0, 0, 0, 0, 0
	if _, err := run.one(ctx, schemaRightsSQL, []any{name, name, name}, &a.Role, &a.Database, &only, &creates, &there, &used, &made); err != nil {
		return a, fmt.Errorf("reach the database: %w", err)
	}
	if _, err := run.one(ctx, tablesBarredSQL, []any{name}, &barred); err != nil {
		return a, fmt.Errorf("reach the database: %w", err)
	}
	a.Made, a.ReadOnly = made > 0, only > 0
	switch {
	case there == 0 && creates == 0:
		a.Lacks = fmt.Sprintf(`CREATE ON DATABASE "%s"`, a.Database)
	case there > 0 && used == 0:
		a.Lacks = "USAGE, CREATE ON SCHEMA " + name
	case barred > 0:
		a.Lacks = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name
	}
	return a, nil
}
