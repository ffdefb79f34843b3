package store

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Ahead reads at once what a transaction will read one after the other: ask calls
// the methods of a Reader as they will be called, and what it makes of their
// answers, which are empty, does not count. On PostgreSQL all of it is then asked
// with one round trip; SQLite is no further away than the memory, and is not asked
// twice. What was read ahead holds until the transaction writes something.
func (t *Tx) Ahead(ctx context.Context, ask func(r Reader)) error {
	p, ok := t.run.statements.(*pipe)
	if !ok {
		return nil
	}
	asked := new(asking)
	ask(Reader{run: runner{statements: asked, dialect: t.run.dialect, bound: t.run.bound, keys: t.run.keys}})
	return p.ahead(ctx, asked.questions)
}

// question is a query and its arguments.
type question struct {
	query string
	args  []any
}

// asking notes what it is asked and knows nothing.
type asking struct{ questions []question }

var errAsksOnly = errors.New("a statement that writes is not read ahead")

func (a *asking) run(context.Context, string, []any) (int64, error) { return 0, errAsksOnly }
func (a *asking) put(context.Context, string, []any) error          { return errAsksOnly }

func (a *asking) each(_ context.Context, query string, args []any, _ func(scanner) error) error {
	a.questions = append(a.questions, question{query, args})
	return nil
}

// answer is a question and the rows that answer it.
type answer struct {
	question

	columns []pgconn.FieldDescription
	rows    [][][]byte
}

// ahead sends questions, together with what is owed, and keeps their answers.
func (p *pipe) ahead(ctx context.Context, questions []question) error {
	early := make([]answer, 0, len(questions))
	err := p.send(ctx, func(b *pgx.Batch) {
		for _, q := range questions {
			b.Queue(q.query, q.args...)
		}
	}, func(results pgx.BatchResults) error {
		for _, q := range questions {
			rows, err := results.Query()
			a := answer{question: q}
			err = answered(rows, err, func(rows pgx.Rows) error {
				for rows.Next() {
					var row [][]byte
					for _, value := range rows.RawValues() { // valid until the next row
						if value != nil {
							value = append(make([]byte, 0, len(value)), value...)
						}
						row = append(row, value)
					}
					a.rows = append(a.rows, row)
				}
				a.columns = append(a.columns, rows.FieldDescriptions()...)
				return nil
			})
			if err != nil {
				return err
			}
			early = append(early, a)
		}
		return nil
	})
	p.early = early
	return err
}

// known finds what was read ahead.
func (p *pipe) known(query string, args []any) (answer, bool) {
	for _, a := range p.early {
		if a.query == query && slices.Equal(a.args, args) { // of one query all are of one kind, and have an order
			return a, true
		}
	}
	return answer{}, false
}

// read scans the rows of an answer.
func (p *pipe) read(a answer, scan func(scanner) error) error {
	types := p.conn.TypeMap()
	for _, row := range a.rows {
		err := scan(func(dest ...any) error { return pgx.ScanRow(types, a.columns, row, dest...) })
		if err != nil {
			return err
		}
	}
	return nil
}
