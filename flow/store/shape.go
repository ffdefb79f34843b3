package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What each schema is made of: a line for each table, with its columns. A test holds
// them to what the migrations make.
//
//go:embed shape
var shapes embed.FS

// ErrStrange says that a database is not what its version says that it is: it was made
// by a program in the middle of its development, or a part of it was taken away.
var ErrStrange = errors.New("the data is of no Till that was ever given out")

const (
	sqliteShapeSQL   = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
	postgresShapeSQL = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
)

// Lacks names the columns that a database of today's version should have and has not,
// nil where there is none. What it has besides is whoever put it there's.
func (r Reader) Lacks(ctx context.Context, s Schema) (lacks []string, err error) {
	text, err := shapes.ReadFile("shape/" + string(s) + ".txt")
	if err != nil {
		return nil, err
	}
	has, err := r.columns(ctx)
	if err != nil {
		return nil, fmt.Errorf("look which columns there are: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		table, columns, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for column := range strings.FieldsSeq(columns) {
			if name := table + "." + column; !has[name] {
				lacks = append(lacks, name)
			}
		}
	}
	slices.Sort(lacks)
	return lacks, nil
}

// columns are those of all tables, each behind its table's name.
func (r Reader) columns(ctx context.Context) (map[string]bool, error) {
	query := sqliteShapeSQL
	if r.run.dialect == postgresDialect {
		query = postgresShapeSQL
	}
	has := map[string]bool{}
	err := r.run.each(ctx, query, nil, func(scan scanner) error {
		var table, column string
		err := scan(&table, &column)
		has[table+"."+column] = true
		return err
	})
	return has, err
}

// known refuses a database of today's version that lacks something.
func (d *DB) known(ctx context.Context, s Schema) error {
	r := Reader{run: runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect}}
	lacks, err := r.Lacks(ctx, s)
	if err == nil && len(lacks) > 0 {
		err = fmt.Errorf("%w: it lacks %s", ErrStrange, strings.Join(lacks[:min(len(lacks), maxFaults)], ", "))
	}
	return err
}
