package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// The bounds of a search.
const (
	// searchDeep is how many of the newest rows that one meaning leads to are
	// looked at where something else must hold of them too.
	searchDeep = 1000
	// searchWide is how many rows of a range are put in order: of the beginning of
	// a name, or of an amount in all projects.
	searchWide = 20_000
	// searchProjects is how many projects an operator's search goes through.
	searchProjects = 1000
)

// SearchFilter is what sessions are searched by. Zero fields do not narrow.
type SearchFilter struct {
	flow.Search

	Project flow.ProjectID // "" for all of them
	Status  flow.SessionStatus
	Before  flow.SessionID // only older sessions
	Limit   int
}

// Found is a session that a search found, and by which meanings of what was
// searched for.
type Found struct {
	Session flow.Session
	By      []flow.SearchKind
}

// Search finds sessions, newest first; more says whether older ones follow. Each
// meaning is one query over an index, whose work is bounded whatever is kept.
func (r Reader) Search(ctx context.Context, f SearchFilter) (list []Found, more bool, err error) {
	by := map[flow.SessionID][]flow.SearchKind{}
	for _, b := range f.branches() {
		ids, err := r.ids(ctx, b)
		if err != nil {
			return nil, false, fmt.Errorf("search by %s: %w", b.kind, err)
		}
		for _, id := range ids {
			if !slices.Contains(by[id], b.kind) {
				by[id] = append(by[id], b.kind)
			}
		}
	}
	ids := make([]flow.SessionID, 0, len(by))
	for id := range by {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b flow.SessionID) int { return strings.Compare(string(b), string(a)) })
	if more = len(ids) > f.Limit; more {
		ids = ids[:f.Limit]
	}
	if len(ids) == 0 {
		return nil, false, nil
	}
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		args = append(args, string(id))
	}
	sessions, err := r.sessions(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id IN (`+marks(len(ids))+`) ORDER BY id DESC`, args)
	for _, s := range sessions {
		list = append(list, Found{Session: s, By: by[s.ID]})
	}
	return list, more, err
}

// ids runs the query of a branch.
func (r Reader) ids(ctx context.Context, b branch) ([]flow.SessionID, error) {
	var list []flow.SessionID
	err := r.run.each(ctx, b.query, b.args, func(scan scanner) error {
		var id flow.SessionID
		name := ""
		into := []any{&id}
		if len(b.others) > 0 {
			into = append(into, &name)
		}
		if err := scan(into...); err != nil {
			return err
		}
		words := flow.NameWords(name)
		for _, o := range b.others {
			if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, o) }) {
				return nil
			}
		}
		list = append(list, id)
		return nil
	})
	return list, err
}

// branch is the query for one meaning: it gives ids of sessions.
type branch struct {
	kind   flow.SearchKind
	query  string
	args   []any
	others []string // beginnings of words that the customer's name must have, which the query gives too
}

// newestKind is the meaning of a search without a word: what is newest.
const newestKind flow.SearchKind = "newest"

// branches are the queries of a search.
func (f SearchFilter) branches() []branch {
	var out []branch
	for _, k := range f.Keys {
		switch k.Kind {
		case flow.ByID:
			out = append(out, f.byID(k.Value))
		case flow.ByEntryCode:
			out = append(out, f.among(k, `SELECT id FROM sessions WHERE entry_code = ? AND entry_code <> ''`, k.Value))
		case flow.ByPhone:
			out = append(out, f.indexed(k, `i.customer_phone = ? AND i.customer_phone <> ''`, k.Value),
				f.among(k, `SELECT w.session AS id FROM chats c CROSS JOIN watches w WHERE c.phone = ? AND c.phone <> '' AND w.chat = c.id`+
					f.window(`w.session`)+` ORDER BY w.session DESC LIMIT `+itoa(searchDeep), append([]any{k.Value}, f.windowArgs()...)...))
		case flow.ByAccount:
			out = append(out, f.among(k, `SELECT session AS id FROM attempts WHERE account_number = ? AND account_number <> '' ORDER BY id DESC LIMIT `+itoa(searchDeep), k.Value))
		case flow.ByAmount:
			out = append(out, f.indexed(flow.SearchKey{Kind: k.Kind}, `i.amount = ?`, int64(k.Amount)), f.paid(k))
		case flow.ByEmail:
			out = append(out, f.indexed(k, `i.customer_email = ?`, k.Value))
		case flow.ByName:
			out = append(out, f.named(k, true), f.named(k, false))
			if k.Amount > 0 {
				out = append(out, f.paidBy(k))
			}
		case flow.ByReference:
			out = append(out, f.indexed(k, `i.reference = ? AND i.reference <> ''`, k.Value),
				f.among(k, `SELECT session AS id FROM attempts WHERE reference = ?`, k.Value),
				f.among(k, `SELECT session AS id FROM payments WHERE rail_transaction_id = ?`, k.Value))
		}
	}
	if len(out) == 0 {
		out = append(out, f.newest())
	}
	return out
}

// byID finds the session of any id of ours.
func (f SearchFilter) byID(id string) branch {
	k := flow.SearchKey{Kind: flow.ByID}
	for prefix, query := range map[string]string{
		flow.PrefixReference: `SELECT session AS id FROM attempts WHERE reference = ?`,
		flow.PrefixAttempt:   `SELECT session AS id FROM attempts WHERE id = ?`,
		flow.PrefixPayment:   `SELECT session AS id FROM payments WHERE id = ?`,
		flow.PrefixCharge:    `SELECT id FROM sessions WHERE charge = ? AND charge <> ''`,
		flow.PrefixRefund:    `SELECT session AS id FROM refunds WHERE id = ?`,
		flow.PrefixEvent:     `SELECT session AS id FROM events WHERE id = ?`,
		flow.PrefixChat:      `SELECT session AS id FROM watches WHERE chat = ? ORDER BY session DESC LIMIT ` + itoa(searchDeep),
	} {
		if strings.HasPrefix(id, prefix) {
			return f.among(k, query, id)
		}
	}
	return f.among(k, `SELECT id FROM sessions WHERE id = ?`, id)
}

// projectsSQL are the projects that a search goes through, found one after the
// other by the index of sessions: never all sessions.
const projectsSQL = `WITH RECURSIVE p (project) AS (SELECT MIN(project) FROM sessions
 UNION ALL SELECT (SELECT MIN(s.project) FROM sessions s WHERE s.project > p.project) FROM p WHERE p.project IS NOT NULL)
 SELECT project FROM p WHERE project IS NOT NULL LIMIT `

// scope are the projects that a search is of, as a table p.
func (f SearchFilter) scope() (string, []any) {
	if f.Project != "" {
		return `(SELECT CAST(? AS TEXT) AS project) p`, []any{string(f.Project)}
	}
	return `(` + projectsSQL + itoa(searchProjects) + `) p`, nil
}

// window is the condition that a session is of the time that is looked at: ids
// begin with when they were made.
func (f SearchFilter) window(id string) string {
	where := ``
	if !f.From.IsZero() {
		where += ` AND ` + id + ` >= ?`
	}
	if _, bound := f.end(); bound {
		where += ` AND ` + id + ` < ?`
	}
	return where
}

func (f SearchFilter) windowArgs() []any {
	var args []any
	if !f.From.IsZero() {
		args = append(args, flow.FirstID(flow.PrefixSession, f.From))
	}
	if end, bound := f.end(); bound {
		args = append(args, end)
	}
	return args
}

// end is the id that all that is looked for is before.
func (f SearchFilter) end() (string, bool) {
	end := string(f.Before)
	if !f.Until.IsZero() {
		if until := flow.FirstID(flow.PrefixSession, f.Until); end == "" || until < end {
			end = until
		}
	}
	return end, end != ""
}

// holds is the condition on a session that no index answers, over s.
func (f SearchFilter) holds(k flow.SearchKey) (string, []any) {
	where, args := ``, []any(nil)
	if f.Status != "" {
		where, args = where+` AND s.status = ?`, append(args, string(f.Status))
	}
	if k.Amount > 0 {
		where, args = where+` AND (s.amount = ? OR s.amount_paid = ?)`, append(args, int64(k.Amount), int64(k.Amount))
	}
	return where, args
}

// deep is how many rows of an index are looked at: no more than are shown, where
// nothing else must hold of them.
func (f SearchFilter) deep(k flow.SearchKey) string {
	if f.Status == "" && k.Amount == 0 {
		return itoa(f.Limit + 1)
	}
	return itoa(searchDeep)
}

// among finds the sessions that a query over other rows leads to, if they are of
// the project.
func (f SearchFilter) among(k flow.SearchKey, query string, args ...any) branch {
	where := f.window(`s.id`)
	args = append(args, f.windowArgs()...)
	if f.Project != "" {
		where, args = where+` AND s.project = ?`, append(args, string(f.Project))
	}
	more, values := f.holds(k)
	return branch{
		k.Kind, `SELECT DISTINCT s.id FROM (` + query + `) AS c CROSS JOIN sessions s WHERE s.id = c.id` + where + more + ` ORDER BY s.id DESC LIMIT ` + itoa(f.Limit+1),
		append(args, values...), nil,
	}
}

// indexed finds sessions by an index over project, something and id. Over all
// projects the newest of them are only known once all are in order.
func (f SearchFilter) indexed(k flow.SearchKey, where string, value any) branch {
	from, args := f.scope()
	args = append(args, value)
	args = append(args, f.windowArgs()...)
	inner := `SELECT i.id FROM ` + from + ` CROSS JOIN sessions i WHERE i.project = p.project AND ` + where + f.window(`i.id`)
	if f.Project == "" {
		inner = `SELECT id FROM (` + inner + ` LIMIT ` + itoa(searchWide) + `) AS w`
		inner += ` ORDER BY id DESC LIMIT ` + f.deep(k)
	} else {
		inner += ` ORDER BY i.id DESC LIMIT ` + f.deep(k)
	}
	return f.kept(k, inner, args)
}

// kept are those of an index whose rows are as they must be.
func (f SearchFilter) kept(k flow.SearchKey, inner string, args []any) branch {
	more, values := f.holds(k)
	if more == "" {
		return branch{k.Kind, inner, args, nil}
	}
	return branch{
		k.Kind, `SELECT s.id FROM (` + inner + `) AS c CROSS JOIN sessions s WHERE s.id = c.id` + more + ` ORDER BY s.id DESC LIMIT ` + itoa(f.Limit+1),
		append(args, values...), nil,
	}
}

// paidWithin is how long after a session was opened its money may come for a
// search for the day of the session and the amount that came to find it.
const paidWithin = 48 * time.Hour

// paid finds sessions by what came for them, where that is not what was asked
// for.
func (f SearchFilter) paid(k flow.SearchKey) branch {
	from, args := f.scope()
	where, args := ` WHERE i.project = p.project AND i.amount = ? AND i.match_status <> 'MATCHED'`, append(args, int64(k.Amount))
	if !f.From.IsZero() {
		where, args = where+` AND i.id >= ?`, append(args, flow.FirstID(flow.PrefixPayment, f.From))
	}
	if !f.Until.IsZero() {
		where, args = where+` AND i.id < ?`, append(args, flow.FirstID(flow.PrefixPayment, f.Until.Add(paidWithin)))
	}
	return f.among(flow.SearchKey{Kind: k.Kind},
		`SELECT i.session AS id FROM `+from+` CROSS JOIN payments i`+where+` ORDER BY i.id DESC LIMIT `+itoa(searchDeep), args...)
}

// paidBy is paid of customers with a name.
func (f SearchFilter) paidBy(k flow.SearchKey) branch {
	b := f.paid(k)
	b.kind, b.others = k.Kind, k.Words
	b.query = strings.Replace(b.query, `SELECT DISTINCT s.id FROM`, `SELECT DISTINCT s.id, s.customer_name FROM`, 1)
	b.query = strings.TrimSuffix(b.query, ` LIMIT `+itoa(f.Limit+1))
	return b
}

// named finds sessions by the words of a name: by the longest as a whole word,
// newest first, or as the beginning of one. The other words and the amount are
// judged by what stands beside it.
func (f SearchFilter) named(k flow.SearchKey, whole bool) branch {
	from, args := f.scope()
	first := longest(k.Words)
	inner := `SELECT i.session AS id, i.name, i.amount FROM ` + from + ` CROSS JOIN names i WHERE i.project = p.project AND `
	if whole {
		inner += `i.word = ?`
		args = append(args, first)
	} else {
		inner += `i.word >= ? AND i.word < ?`
		args = append(args, first, first+"\U0010FFFF")
	}
	inner += f.window(`i.session`)
	args = append(args, f.windowArgs()...)
	if whole && f.Project != "" {
		inner += ` ORDER BY i.session DESC`
	}
	inner += ` LIMIT ` + itoa(searchWide)
	where := ` WHERE 1 = 1`
	for _, w := range k.Words {
		if w != first {
			where, args = where+` AND w.name LIKE ?`, append(args, "% "+w+"%")
		}
	}
	if k.Amount > 0 {
		where, args = where+` AND w.amount = ?`, append(args, int64(k.Amount))
	}
	named := flow.SearchKey{Kind: k.Kind}
	return f.kept(named, `SELECT DISTINCT w.id FROM (`+inner+`) AS w`+where+` ORDER BY w.id DESC LIMIT `+f.deep(named), args)
}

// longest is the longest of some words: it leads to the fewest names.
func longest(words []string) string {
	first := words[0]
	for _, w := range words {
		if len(w) > len(first) {
			first = w
		}
	}
	return first
}

// newest are the newest sessions. Few are ever PROCESSING: those have an index of
// their own.
func (f SearchFilter) newest() branch {
	where, args := ` WHERE 1 = 1`, []any(nil)
	if f.Status == flow.SessionProcessing {
		where = ` WHERE i.status = 'PROCESSING'`
	}
	if f.Project != "" {
		where, args = where+` AND i.project = ?`, append(args, string(f.Project))
	}
	deep := f.deep(flow.SearchKey{})
	return f.kept(flow.SearchKey{Kind: newestKind}, `SELECT i.id FROM sessions i`+where+f.window(`i.id`)+` ORDER BY i.id DESC LIMIT `+deep, append(args, f.windowArgs()...))
}

func itoa(n int) string { return fmt.Sprint(n) }
