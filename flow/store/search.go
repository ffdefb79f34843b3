package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	// searchProjects is how many projects an operator's search goes through, one by
	// one if they are few: then the newest of all are exactly known.
	searchProjects = 1000
	fewProjects    = 64
	// searchWords is how many words of a project's names the beginning of one is
	// looked for as.
	searchWords = 20
)

// SearchFilter is what sessions are searched by. Zero fields do not narrow.
type SearchFilter struct {
	flow.Search

	Project flow.ProjectID // "" for all of them
	Status  flow.SessionStatus
	Before  flow.SessionID // only older sessions
	Limit   int

	projects []flow.ProjectID // all there are, where they are few and none is named
	words    []string         // of the project's names, that begin as the longest that was asked for
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
	if f, err = r.resolved(ctx, f); err != nil {
		return nil, false, err
	}
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
	ids := slices.Sorted(maps.Keys(by))
	slices.Reverse(ids)
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

// resolved is a search that knows which projects and words there are.
func (r Reader) resolved(ctx context.Context, f SearchFilter) (SearchFilter, error) {
	if len(f.Keys) == 0 || f.Keys[0].Kind == flow.ByID {
		return f, nil
	}
	if f.Project == "" {
		list, err := r.texts(ctx, projectsSQL+strconv.Itoa(fewProjects+1), nil)
		if err != nil {
			return f, fmt.Errorf("list the projects to search: %w", err)
		}
		if len(list) <= fewProjects {
			for _, p := range list {
				f.projects = append(f.projects, flow.ProjectID(p))
			}
		}
		return f, nil
	}
	for _, k := range f.Keys {
		if k.Kind != flow.ByName {
			continue
		}
		first, project := longest(k.Words), string(f.Project)
		var err error
		if f.words, err = r.texts(ctx, wordsSQL, []any{project, first, first + last, project, first + last, searchWords}); err != nil {
			return f, fmt.Errorf("look names up: %w", err)
		}
	}
	return f, nil
}

// last is behind every text that begins as what stands before it.
const last = "\U0010FFFF"

// wordsSQL finds the words of a project's names that begin in one way, one after
// the other by their index: never all names.
const wordsSQL = `WITH RECURSIVE v (word) AS (SELECT MIN(word) FROM names WHERE project = ? AND word >= ? AND word < ?
 UNION ALL SELECT (SELECT MIN(n.word) FROM names n WHERE n.project = ? AND n.word > v.word AND n.word < ?) FROM v WHERE v.word IS NOT NULL)
 SELECT word FROM v WHERE word IS NOT NULL LIMIT ?`

// texts reads one column.
func (r Reader) texts(ctx context.Context, query string, args []any) ([]string, error) {
	var list []string
	err := r.run.each(ctx, query, args, func(scan scanner) error {
		var text string
		err := scan(&text)
		list = append(list, text)
		return err
	})
	return list, err
}

// each is a search of each project by itself, where they are few.
func (f SearchFilter) each() []SearchFilter {
	if len(f.projects) == 0 {
		return []SearchFilter{f}
	}
	list := make([]SearchFilter, 0, len(f.projects))
	for _, p := range f.projects {
		one := f
		one.Project, one.projects = p, nil
		list = append(list, one)
	}
	return list
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
