package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What each schema is made of: a line for each table, with its columns, and for each kind
// of guard of one of the databases, with their names. A test holds them to what the
// migrations make.
//
//go:embed shape
var shapes embed.FS

// ErrStrange says that a database is not what its version says that it is: it was made
// by a program in the middle of its development, or a part of it was taken away, or did
// not come back with a dump.
var ErrStrange = errors.New("the data is of no Till that was ever given out")

// Each part of a schema is a column behind its table's name, or a guard behind its kind:
// without a unique index money could come twice, without a trigger the ledger could be
// changed, and nothing else would ever say so. An index that only makes reading faster is
// none of them: it is whoever runs the database who may choose those.
const (
	sqliteShapeSQL = `SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'
 UNION ALL SELECT 'unique index ' || i.name FROM sqlite_master m, pragma_index_list(m.name) i WHERE m.type = 'table' AND i."unique" AND i.origin = 'c'
 UNION ALL SELECT 'trigger ' || name FROM sqlite_master WHERE type = 'trigger'`
	postgresShapeSQL = `SELECT c.relname || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
 UNION ALL SELECT 'unique index ' || c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND i.indisunique AND i.indisvalid
 UNION ALL SELECT CASE contype WHEN 'c' THEN 'check ' ELSE 'foreign key ' END || conname FROM pg_constraint WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND contype IN ('c', 'f')
 UNION ALL SELECT 'trigger ' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')`
)

// Lacks names the parts that a database of today's version should have and has not, nil
// where there is none. What it has besides is whoever put it there's.
func (r Reader) Lacks(ctx context.Context, s Schema) (lacks []string, err error) {
	text, err := shapes.ReadFile("shape/" + string(s) + ".txt")
	if err != nil {
		return nil, err
	}
	has, err := r.parts(ctx)
	if err != nil {
		return nil, fmt.Errorf("look what it is made of: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		of, names, _ := strings.Cut(strings.TrimSpace(line), ": ")
		database, kind, guards := strings.Cut(of, " ")
		switch {
		case !guards:
			of += "."
		case database != r.database():
			continue
		default:
			of = kind + " "
		}
		for name := range strings.FieldsSeq(names) {
			if !has[of+name] {
				lacks = append(lacks, of+name)
			}
		}
	}
	slices.Sort(lacks)
	return lacks, nil
}

// database is the kind of database that is read, as lines of a shape name it.
func (r Reader) database() string {
	if r.run.dialect == postgresDialect {
		return "postgres"
	}
	return "sqlite"
}

// parts are those of all tables of a database.
func (r Reader) parts(ctx context.Context) (map[string]bool, error) {
	query := sqliteShapeSQL
	if r.run.dialect == postgresDialect {
		query = postgresShapeSQL
	}
	has := map[string]bool{}
	err := r.run.each(ctx, query, nil, func(scan scanner) error {
		var part string
		err := scan(&part)
		has[part] = true
		return err
	})
	return has, err
}

// known refuses a database of today's version that lacks something, or was made under
// another name.
func (d *DB) known(ctx context.Context, c Config) error {
	r := Reader{run: runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect}}
	lacks, err := r.Lacks(ctx, c.Schema)
	if err == nil && len(lacks) > 0 {
		err = fmt.Errorf("%w: it lacks %s", ErrStrange, strings.Join(lacks[:min(len(lacks), maxFaults)], ", "))
	}
	if err != nil {
		return err
	}
	return d.named(ctx, c)
}
