package bot

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"
)

// The bounds of what is remembered of the last messages, so that a card number
// is known that comes in pieces.
const (
	maxPieces  = 3                // messages of one person
	pieceLasts = 10 * time.Minute // after which one is forgotten
	maxPeople  = 10_000
	maxGroups  = 24 // runs of digits of one message
	maxPiece   = 30 // digits of a run, which is longer than a card with its date and code
)

// recent is what the last messages of each person could be a part of. It is in
// memory alone. With it goes a warning, for no number of four digits is kept anyway;
// and of a secret that only a message of before it tells, one that is no such number:
// a CVV, or a password alone. It is safe for use from several goroutines.
type recent struct {
	mu     sync.Mutex
	people map[string]*list.Element
	order  *list.List // of *person, who wrote longest ago is first
}

// person is who wrote, and the last of it.
type person struct {
	key    string
	pieces []piece
}

// piece is what one message could be a part of.
type piece struct {
	id      string
	at      time.Time
	groups  []group
	asked   bool // it names a secret, so that bare digits behind it are one
	letters bool // of such that can have letters, so that a bare word with digits in it is one
	secret  bool // it was one, and ends what was before
}

func newRecent() *recent { return &recent{people: map[string]*list.Element{}, order: list.New()} }

// completes remembers a message. shown is what may be kept in place of one that
// is a secret, or completes one that the messages before it began; "" where it
// does neither. near says whether a secret was spoken of just before. A message
// that comes again is the same one, and stands where it stood: what came behind it
// is remembered too.
func (r *recent) completes(m Message, secret bool, now time.Time) (shown string, near bool) {
	folded := spelled(fold(m.Text))
	says := named(folded)
	p := piece{id: m.ID, at: now, groups: few(digitGroups(folded)), asked: says.asked, letters: says.letters, secret: secret}
	bare, lone := isBare(folded), isLone(folded)
	if digits(p.groups) < minSecret { // an answer to a menu must be no piece of a card by chance
		p.groups = nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	who := r.person(m.Number + "/" + m.Person)
	before, behind := who.pieces, []piece(nil)
	if i := slices.IndexFunc(before, func(x piece) bool { return x.id == m.ID }); i >= 0 {
		p.secret = p.secret || before[i].secret
		before, behind = before[:i], before[i+1:]
	}
	before, behind = young(before, now), young(behind, now)
	who.pieces = slices.Concat(before, []piece{p}, behind)
	at := &who.pieces[len(before)]
	near = slices.ContainsFunc(before, func(x piece) bool { return x.secret || x.asked })
	if i := lastSecret(before); i >= 0 {
		if bare && i == len(before)-1 { // its code, or its date
			at.secret, shown = true, shownOther
		}
		before = before[i+1:]
	}
	if n := len(before); n > 0 && (before[n-1].asked && bare || before[n-1].letters && lone) {
		at.secret, shown = true, shownOther
	}
	for i := range before {
		if joins(before[i:], p) {
			at.secret, shown = true, shownCard
		}
	}
	if at.secret && shown == "" {
		shown = shownCard
	}
	if len(who.pieces) > maxPieces {
		who.pieces = slices.Clone(who.pieces[len(who.pieces)-maxPieces:])
	}
	return shown, near
}

// young are those of some pieces that are not forgotten yet.
func young(pieces []piece, now time.Time) []piece {
	return slices.DeleteFunc(slices.Clone(pieces), func(x piece) bool { return now.Sub(x.at) >= pieceLasts })
}

// joins says whether the digits of messages, one behind the other, are a card
// number that ends in the last of them.
func joins(before []piece, last piece) bool {
	var all []group
	add := func(groups []group, joined bool) {
		for i, g := range groups {
			g.joins = g.joins || joined && i == 0 && len(all) > 0
			all = append(all, g)
		}
	}
	for _, p := range before {
		add(p.groups, true)
	}
	from := len(all)
	add(last.groups, true)
	return from < len(all) && from > 0 && card(all, from)
}

// few bounds the runs of digits that are remembered; the last ones are nearest
// to what follows.
func few(groups []group) []group {
	groups = slices.Clone(groups[max(0, len(groups)-maxGroups):])
	for i := range groups {
		if len(groups[i].digits) > maxPiece {
			groups[i].digits = groups[i].digits[:maxPiece] // too long for any card, as before
		}
	}
	return groups
}

// isBare says whether a folded text is little more than three to eight digits,
// as a PIN or a one-time code is.
func isBare(folded string) bool {
	digits, others := 0, 0
	for _, w := range pieces(folded) {
		if isDigits(w.text) {
			digits += len(w.text)
		} else {
			others++
		}
	}
	return digits >= minSecret && digits <= 8 && others <= 3
}

// digits counts the digits of groups.
func digits(groups []group) int {
	n := 0
	for _, g := range groups {
		n += len(g.digits)
	}
	return n
}

// isLone says whether a folded text is one word with letters and digits in it, as
// a password is.
func isLone(folded string) bool {
	words := strings.Fields(folded)
	return len(words) == 1 && isMixed(words[0])
}

func lastSecret(pieces []piece) int {
	for i, p := range slices.Backward(pieces) {
		if p.secret {
			return i
		}
	}
	return -1
}

// person finds who wrote, as the one who wrote last. The caller holds mu.
func (r *recent) person(key string) *person {
	if e, found := r.people[key]; found {
		r.order.MoveToBack(e)
		return e.Value.(*person) //nolint:errcheck // nothing else is in the list
	}
	p := &person{key: key}
	r.people[key] = r.order.PushBack(p)
	return p
}

// forget drops what is too old, and who wrote longest ago where there are too
// many. The caller holds mu.
func (r *recent) forget(now time.Time) {
	for e := r.order.Front(); e != nil; e = r.order.Front() {
		p := e.Value.(*person) //nolint:errcheck // nothing else is in the list
		old := len(p.pieces) == 0 || now.Sub(p.pieces[len(p.pieces)-1].at) >= pieceLasts
		if !old && r.order.Len() < maxPeople {
			break
		}
		r.order.Remove(e)
		delete(r.people, p.key)
	}
}
