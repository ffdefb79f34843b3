package console

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"till/flow"
)

// The bounds of a file of rows.
const (
	maxCSV   = 10_000 // rows
	csvBatch = 200    // that are read at once
	csvLife  = 60 * time.Second
)

// formula is the beginning of what a spreadsheet takes for one, in a cell or in
// what it takes for the next one: many cut at semicolons, whatever stands in quotes,
// and some read the wide signs of East Asia like the narrow ones.
var formula = regexp.MustCompile(`(^|[;\t\r\n])([\s\p{Z}]*[=+@＝＋－＠-])`)

// negative is a number below zero: a sheet must add it up, and it is no formula.
var negative = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?$`)

// cell is a text as it may stand in a file that a spreadsheet opens: one that would
// be taken for a formula is quoted, so that nobody's name runs in somebody's
// spreadsheet (OWASP, CSV Injection).
func cell(s string) string {
	if negative.MatchString(s) {
		return s
	}
	s = formula.ReplaceAllString(string(seen([]byte(strings.ToValidUTF8(s, "")))), "$1'$2")
	if strings.TrimSpace(s) != s {
		return "'" + s
	}
	return s
}

// cut says in the first column of the last row that there are more.
func cut(columns int) []string {
	row := make([]string, columns)
	row[0] = fmt.Sprintf("cut after %d rows: narrow the search, or read all over REST", maxCSV)
	return row
}

// ofOne refuses a file of what is listed of one project alone where none is chosen: with
// its heads and no rows it would look as if there were nothing.
func (v *visit) ofOne(what string) error {
	if v.project.ID != "" {
		return nil
	}
	return flow.Refuse(flow.CodeInvalidField, "Choose a project above to have a file of its %s.", what)
}

// inPages reads rows for a file a page at a time: read gives those before a row, with the
// id of the last of them where more follow.
func inPages(read func(ctx context.Context, before string, most int) (rows [][]string, last string, err error)) func(context.Context, int) ([][]string, error) {
	before, ended := "", false
	return func(ctx context.Context, most int) (rows [][]string, err error) {
		if ended {
			return nil, nil
		}
		rows, before, err = read(ctx, before, most)
		ended = before == ""
		return rows, err
	}
}

// lastOf is the id of the last row of a page, "" where no more follow.
func lastOf[ID ~string](more bool, id ID) string {
	if !more {
		return ""
	}
	return string(id)
}

// csv answers with a file of rows as they are read. next gives the next of them,
// at most so many, and none at the end; it is called after the handler returned,
// and must touch nothing of the request but what it took before. A file that could
// not be read to its end breaks off, so that nobody takes a part for the whole.
func (v *visit) csv(name string, head []string, next func(ctx context.Context, most int) ([][]string, error)) error {
	c, account := v.console, cmp.Or(v.who.Account, string(v.who.Role))
	v.http.Set("Content-Type", "text/csv; charset=utf-8")
	if v.bodiless() {
		return nil
	}
	if !c.streams.takes(account) {
		return flow.Refuse(flow.CodeRateLimited, "Too many files and live pages are open. Try again in a moment.")
	}
	v.http.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	v.http.Status(http.StatusOK)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), csvLife)
	conn := v.http.Context().Conn()
	v.http.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer c.streams.gives(account)
		defer cancel()
		grace := func() { _ = conn.SetWriteDeadline(c.cfg.Real().Add(writeGrace)) } // the server's own bound is for whole answers
		grace()
		if err := rows(ctx, w, head, next, grace); err != nil {
			level := slog.LevelInfo // whoever asked for it left
			if errors.Is(err, errRows) {
				level = slog.LevelError
			}
			c.cfg.Log.LogAttrs(ctx, level, "file of rows broke off", slog.String("file", name), slog.String("error", err.Error()))
			_ = conn.Close()
		}
	})
	return nil
}

// errRows says that rows could not be read: of a file that breaks off for it we are to
// blame, and of any other whoever did not take it.
var errRows = errors.New("the rows cannot be read")

// rows writes a file of rows.
func rows(ctx context.Context, w *bufio.Writer, head []string, next func(context.Context, int) ([][]string, error), grace func()) (err error) {
	defer func() {
		if crash := recover(); crash != nil { // nothing else is around it that would keep the program up
			err = fmt.Errorf("%w: panic: %v\n%s", errRows, crash, debug.Stack())
		}
	}()
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	if err := out.Write(head); err != nil {
		return err
	}
	for written := 0; ; {
		batch, err := next(ctx, csvBatch)
		if err != nil {
			return fmt.Errorf("%w: %w", errRows, err)
		}
		for _, row := range batch {
			if written++; written > maxCSV {
				return errors.Join(out.Write(cut(len(head))), flushed(out))
			}
			for i := range row {
				row[i] = cell(row[i])
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		grace()
		if err := errors.Join(flushed(out), w.Flush()); err != nil || len(batch) == 0 {
			return err
		}
	}
}

func flushed(w *csv.Writer) error {
	w.Flush()
	return w.Error()
}

// kobo and major are an amount in a file: whole kobo, and naira with two decimals.
func kobo(k flow.Kobo) string { return k.Minor() }

func major(k flow.Kobo) string {
	sign := ""
	if k < 0 {
		sign, k = "-", -k
	}
	return fmt.Sprintf("%s%d.%02d", sign, k/100, k%100)
}

// stamp is a time in a file, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() || t.UnixMilli() == 0 {
		return ""
	}
	return flow.Stamp(t)
}
