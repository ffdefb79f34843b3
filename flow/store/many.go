package store

import (
	"iter"
	"strings"
)

// part is a part of a long list of ids, as parameters of a statement.
type part struct {
	marks string // what stands in IN (…)
	args  []any  // the ids, as lay lays them
	ids   []string
	size  int // how many parameters; 0: the whole list is one
}

// parts cuts a list of ids into parts. PostgreSQL takes a whole list as one
// parameter. For SQLite a part has as many parameters as one of few sizes, so that
// a statement is prepared for each of those and not for each number there is:
// where it is larger than what is left, its rest names nothing.
func (r runner) parts(ids []string) iter.Seq[part] {
	if r.dialect == postgresDialect {
		return func(yield func(part) bool) {
			if len(ids) > 0 {
				p := part{marks: "SELECT UNNEST(CAST(? AS TEXT[]))", ids: ids}
				p.args = p.lay(ids)
				yield(p)
			}
		}
	}
	return func(yield func(part) bool) {
		for len(ids) > 0 {
			size := 512
			for _, s := range []int{64, 8, 1} {
				if len(ids) <= s {
					size = s
				}
			}
			p := part{marks: strings.Repeat("?, ", size-1) + "?", size: size, ids: ids[:min(size, len(ids))]}
			p.args = p.lay(p.ids)
			if ids = ids[len(p.ids):]; !yield(p) {
				return
			}
		}
	}
}

// lay lays the ids of a part, or what goes with each of them, as parameters of its
// marks.
func (p part) lay(list []string) []any {
	if p.size == 0 {
		return []any{list}
	}
	args := make([]any, p.size)
	for i := range args {
		args[i] = ""
		if i < len(list) {
			args[i] = list[i]
		}
	}
	return args
}

// args lays parameters and lists of them in a row.
func args(each ...any) []any {
	var all []any
	for _, one := range each {
		if list, ok := one.([]any); ok {
			all = append(all, list...)
			continue
		}
		all = append(all, one)
	}
	return all
}
