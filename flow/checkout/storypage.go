package checkout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// StoryPlace is where a page of a story begins: at a time, behind so many moments of
// that time.
type StoryPlace struct {
	At    time.Time
	Moved int
}

// String is the place as a cursor holds it.
func (p StoryPlace) String() string { return fmt.Sprintf("%d/%d", flow.Millis(p.At), p.Moved) }

// maxSameTime bounds how many moments of one time a cursor can be behind.
const maxSameTime = 1_000_000

// ParseStoryPlace reads a place; false for what is none.
func ParseStoryPlace(text string) (StoryPlace, bool) {
	at, moved, found := strings.Cut(text, "/")
	ms, bad := strconv.ParseInt(at, 10, 64)
	n, worse := strconv.Atoi(moved)
	ok := found && bad == nil && worse == nil && ms > 0 && ms < 1<<53 && n >= 0 && n <= maxSameTime
	return StoryPlace{At: flow.FromMillis(ms), Moved: n}, ok
}

// StoryPage tells a part of what Timeline tells, the oldest first and nothing left
// out: at most limit moments from a place on, zero for the beginning. next is where
// the next page begins, zero at the end. What comes in later than its time says may
// be in none of the pages that were read before. Errors: resource_not_found.
func StoryPage(ctx context.Context, r store.Reader, id flow.SessionID, from StoryPlace, limit int) (page []Moment, next StoryPlace, err error) {
	session, err := r.Session(ctx, id)
	if err != nil {
		return nil, next, err
	}
	s := pager{r: r, session: session, from: from.At}
	if err := s.few(ctx); err != nil {
		return nil, next, err
	}
	want := from.Moved + limit + 1
	var story []Moment
	whole := false
	for read := want; len(story) < want && !whole; read *= 2 { // moments of one time are told once all of them are read
		if story, whole, err = s.read(ctx, read); err != nil {
			return nil, next, err
		}
	}
	if whole {
		end, err := lastly(ctx, r, session, latest(story))
		if err != nil {
			return nil, next, err
		}
		story = append(story, end...)
	}
	story = story[min(from.Moved, len(story)):]
	if len(story) <= limit {
		return story, next, nil
	}
	page = story[:limit]
	next.At = page[limit-1].At
	if next.At.Equal(from.At) {
		next.Moved = from.Moved
	}
	for _, m := range slices.Backward(page) {
		if !m.At.Equal(next.At) {
			break
		}
		next.Moved++
	}
	return page, next, nil
}

// pager reads a session's story from a time on.
type pager struct {
	r       store.Reader
	session flow.Session
	from    time.Time
	money   []Moment // what is told of its payments: there are few
	opened  []Moment
	told    teller
	names   names
}

// few reads what there is little of.
func (s *pager) few(ctx context.Context) error {
	attempts, err := s.r.Attempts(ctx, s.session.ID)
	if err != nil {
		return err
	}
	refunds, err := s.r.Refunds(ctx, store.RefundFilter{Project: s.session.Project, Session: s.session.ID, Limit: maxNotes})
	if err != nil {
		return err
	}
	if s.money, err = tellMoney(ctx, s.r, s.session, attempts, refunds); err != nil {
		return err
	}
	spoke, err := s.r.Spoke(ctx, s.session.ID)
	if err != nil {
		return err
	}
	s.names = names{}
	for i, stream := range spoke {
		s.names[stream] = i + 1
	}
	before := func(m Moment) bool { return m.At.Before(s.from) }
	s.opened = slices.DeleteFunc([]Moment{opened(s.session)}, before)
	s.money = slices.DeleteFunc(s.money, before)
	s.told = newTeller(attempts, nil, nil)
	return nil
}

// read reads so much of the log and of the tries of webhooks, and tells what of the
// story is whole by that; all says that it is all there is.
func (s *pager) read(ctx context.Context, limit int) (story []Moment, all bool, err error) {
	lines, err := s.r.LinesFrom(ctx, s.session.ID, s.from, limit)
	if err != nil {
		return nil, false, err
	}
	own := sameProject(ctx, s.r, s.session)
	for i, l := range lines {
		if lines[i].Data, err = replay.Private(l.Kind, l.Data, own); err != nil {
			return nil, false, fmt.Errorf("tell line %d of %s: %w", l.Seq, l.Stream, err)
		}
	}
	tries, err := s.r.TriesFrom(ctx, s.session.ID, s.from, limit)
	if err != nil {
		return nil, false, err
	}
	story = slices.Concat(s.opened, tellLog(lines, s.told, s.names), s.money, tellTries(tries))
	slices.SortStableFunc(story, func(a, b Moment) int { return a.At.Compare(b.At) })
	var until time.Time // from here on, more may follow
	if len(lines) == limit {
		until = lines[limit-1].At
	}
	if len(tries) == limit && (until.IsZero() || tries[limit-1].At.Before(until)) {
		until = tries[limit-1].At
	}
	if until.IsZero() {
		return story, true, nil
	}
	return slices.DeleteFunc(story, func(m Moment) bool { return !m.At.Before(until) }), false, nil
}
