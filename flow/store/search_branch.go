package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
)

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
			out = append(f.indexed(out, k, `i.customer_phone = ? AND i.customer_phone <> ''`, k.Value),
				f.among(k, `SELECT w.session AS id FROM chats c CROSS JOIN watches w WHERE c.phone = ? AND c.phone <> '' AND w.chat = c.id`+
					f.window(`w.session`)+` ORDER BY w.session DESC LIMIT `+strconv.Itoa(searchDeep), append([]any{k.Value}, f.windowArgs()...)...))
		case flow.ByAccount:
			out = append(out, f.among(k, `SELECT session AS id FROM attempts WHERE account_number = ? AND account_number <> '' ORDER BY id DESC LIMIT `+strconv.Itoa(searchDeep), k.Value))
		case flow.ByAmount:
			out = append(f.indexed(out, flow.SearchKey{Kind: k.Kind}, `i.amount = ?`, int64(k.Amount)), f.paid(k))
		case flow.ByEmail:
			out = f.indexed(out, k, `i.customer_email = ?`, k.Value)
		case flow.ByName:
			out = f.names(out, k)
			if k.Amount > 0 {
				out = append(out, f.paidBy(k))
			}
		case flow.ByReference:
			for _, as := range spellings(k.Value) {
				out = f.indexed(out, k, `i.reference = ? AND i.reference <> ''`, as)
			}
			out = append(out,
				f.among(k, `SELECT session AS id FROM attempts WHERE reference = ?`, k.Value),
				f.among(k, `SELECT session AS id FROM payments WHERE rail_transaction_id = ?`, k.Value),
				f.among(k, `SELECT session AS id FROM refunds WHERE rail_transaction_id = ? AND rail_transaction_id <> ''`, k.Value),
				f.among(k, `SELECT session AS id FROM payments WHERE nip_session = ? AND nip_session <> '' ORDER BY id DESC LIMIT `+strconv.Itoa(searchDeep), k.Value))
		}
	}
	if len(out) == 0 {
		out = append(out, f.newest())
	}
	return out
}

// spellings are how a merchant may have written a reference that was heard on the
// phone, or that a keyboard began with a capital letter: no reference holds a space,
// or a #; one that is copied from a message comes with what stood around it. Words
// without a digit are a name.
func spellings(reference string) (list []string) {
	words := strings.Fields(strings.ReplaceAll(reference, "#", " "))
	if n := len(words); n > 1 && slices.Contains([]string{"ref", "ref:", "reference", "reference:"}, strings.ToLower(words[0])) {
		words = words[1:]
	}
	as := []string{strings.Join(words, "-"), strings.Join(words, "")}
	if plain := strings.Trim(as[0], `"'.,`); len(words) == 1 && plain != "" {
		as[1] = plain
	}
	if len(words) == 0 || len(words) > 1 && !strings.ContainsAny(reference, "0123456789") {
		return nil
	}
	for _, one := range as {
		list = append(list, strings.ToLower(one), one, strings.ToUpper(one))
	}
	slices.Sort(list)
	return slices.Compact(list)
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
		flow.PrefixChat:      `SELECT session AS id FROM watches WHERE chat = ? ORDER BY session DESC LIMIT ` + strconv.Itoa(searchDeep),
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
	return `(` + projectsSQL + strconv.Itoa(searchProjects) + `) p`, nil
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
		return strconv.Itoa(f.Limit + 1)
	}
	return strconv.Itoa(searchDeep)
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
		k.Kind, `SELECT DISTINCT s.id FROM (` + query + `) AS c CROSS JOIN sessions s WHERE s.id = c.id` + where + more + ` ORDER BY s.id DESC LIMIT ` + strconv.Itoa(f.Limit+1),
		append(args, values...), nil,
	}
}

// indexed adds the search by an index over project, something and id. Over many
// projects the newest are only known once all are in order.
func (f SearchFilter) indexed(out []branch, k flow.SearchKey, where string, value any) []branch {
	for _, one := range f.each() {
		from, args := one.scope()
		args = append(args, value)
		args = append(args, one.windowArgs()...)
		inner := `SELECT i.id FROM ` + from + ` CROSS JOIN sessions i WHERE i.project = p.project AND ` + where + one.window(`i.id`)
		if one.Project == "" {
			inner = `SELECT id FROM (` + inner + ` LIMIT ` + strconv.Itoa(searchWide) + `) AS w ORDER BY id DESC LIMIT ` + one.deep(k)
		} else {
			inner += ` ORDER BY i.id DESC LIMIT ` + one.deep(k)
		}
		out = append(out, one.kept(k, inner, args))
	}
	return out
}

// kept are those of an index whose rows are as they must be.
func (f SearchFilter) kept(k flow.SearchKey, inner string, args []any) branch {
	more, values := f.holds(k)
	if more == "" {
		return branch{k.Kind, inner, args, nil}
	}
	return branch{
		k.Kind, `SELECT s.id FROM (` + inner + `) AS c CROSS JOIN sessions s WHERE s.id = c.id` + more + ` ORDER BY s.id DESC LIMIT ` + strconv.Itoa(f.Limit+1),
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
	most := searchDeep
	if f.Status == "" && f.Before == "" && f.From.IsZero() || k.Kind == flow.ByName { // a session may have been paid several times
		most = 8 * (f.Limit + 1)
	}
	return f.among(flow.SearchKey{Kind: k.Kind},
		`SELECT i.session AS id FROM `+from+` CROSS JOIN payments i`+where+` ORDER BY i.id DESC LIMIT `+strconv.Itoa(most), args...)
}

// paidBy is paid of customers with a name.
func (f SearchFilter) paidBy(k flow.SearchKey) branch {
	b := f.paid(k)
	b.kind, b.others = k.Kind, k.Words
	b.query = strings.Replace(b.query, `SELECT DISTINCT s.id FROM`, `SELECT DISTINCT s.id, s.customer_name FROM`, 1)
	b.query = strings.TrimSuffix(b.query, ` LIMIT `+strconv.Itoa(f.Limit+1))
	return b
}

// names adds the search by a name: by the longest of its words as a whole word and
// as the beginning of one.
func (f SearchFilter) names(out []branch, k flow.SearchKey) []branch {
	first := longest(k.Words)
	if f.Project != "" {
		for _, w := range f.words {
			out = append(out, f.named(k, w, searchWide/len(f.words)))
		}
		return out
	}
	for _, one := range f.each() {
		if one.Project != "" {
			out = append(out, one.named(k, first, searchWide/len(f.projects)))
		}
	}
	return append(out, f.begun(k))
}

// named finds sessions by a whole word of a name, newest first. The other words
// and the amount are judged by what stands beside it, of so many rows at most.
func (f SearchFilter) named(k flow.SearchKey, word string, most int) branch {
	args := append([]any{string(f.Project), word}, f.windowArgs()...)
	inner := `SELECT i.session AS id, i.name, i.amount FROM names i WHERE i.project = ? AND i.word = ?` + f.window(`i.session`) + ` ORDER BY i.session DESC LIMIT `
	where, values := beside(k)
	key := flow.SearchKey{Kind: k.Kind}
	if where == "" {
		return f.kept(key, `SELECT w.id FROM (`+inner+f.deep(key)+`) AS w`, args)
	}
	return f.kept(key, `SELECT w.id FROM (`+inner+strconv.Itoa(most)+`) AS w WHERE `+where+` ORDER BY w.id DESC LIMIT `+f.deep(key), append(args, values...))
}

// begun finds sessions of any project by the beginning of a word.
func (f SearchFilter) begun(k flow.SearchKey) branch {
	from, args := f.scope()
	first := longest(k.Words)
	inner := `SELECT i.session AS id, i.name, i.amount FROM ` + from + ` CROSS JOIN names i WHERE i.project = p.project AND i.word >= ? AND i.word < ?` +
		f.window(`i.session`) + ` LIMIT ` + strconv.Itoa(searchWide)
	args = append(append(args, first, first+last), f.windowArgs()...)
	where, values := beside(k)
	if where != "" {
		where = ` WHERE ` + where
	}
	key := flow.SearchKey{Kind: k.Kind}
	return f.kept(key, `SELECT DISTINCT w.id FROM (`+inner+`) AS w`+where+` ORDER BY w.id DESC LIMIT `+f.deep(key), append(args, values...))
}

// beside is what else must hold of a name's row, over w.
func beside(k flow.SearchKey) (string, []any) {
	var parts []string
	var args []any
	first := longest(k.Words)
	for _, w := range k.Words {
		if w != first {
			parts, args = append(parts, `w.name LIKE ?`), append(args, "% "+w+"%")
		}
	}
	if k.Amount > 0 {
		parts, args = append(parts, `w.amount = ?`), append(args, int64(k.Amount))
	}
	return strings.Join(parts, ` AND `), args
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
