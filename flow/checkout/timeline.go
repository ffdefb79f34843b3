package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// Moment is one line of a session's story: when, who, what, and why.
type Moment struct {
	At   time.Time
	Who  string // payer, till, bank, merchant, clock
	What string
	Why  string
	Told string          // the same in a sentence, for somebody who knows none of our words; "" where there is none
	Line string          // its number in the log, where it has one
	Took time.Duration   // that it lasted; 0 where that is not known
	Raw  json.RawMessage // what is kept of it, nil where there is no more than the rest; without the payer's phone
}

// The bounds of a story: whoever writes on and on, or asks for one event again and
// again, makes it no longer. What is left out is said in its place.
const (
	maxLinesTold = 2000 // of the log: the newest
	maxTriesTold = 500  // of webhooks: the newest
)

// Timeline tells what happened in a session, in the order of time: the chat, the
// calls to the bank and its notices, money, and webhooks. Of what is told from the
// log and of the tries of webhooks it tells the newest. An unknown session is a
// resource_not_found.
func Timeline(ctx context.Context, r store.Reader, id flow.SessionID) ([]Moment, error) {
	session, err := r.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	lines, err := r.NewestLines(ctx, id, maxLinesTold+1)
	if err != nil {
		return nil, err
	}
	attempts, err := r.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	refunds, err := r.Refunds(ctx, store.RefundFilter{Project: session.Project, Session: id, Limit: maxNotes})
	if err != nil {
		return nil, err
	}
	own := sameProject(ctx, r, session)
	for i, l := range lines {
		if lines[i].Data, err = replay.Private(l.Kind, l.Data, own); err != nil {
			return nil, fmt.Errorf("tell line %d of %s: %w", l.Seq, l.Stream, err)
		}
	}
	told := newTeller(attempts, refunds, lines)
	story := []Moment{opened(session)}
	if len(lines) > maxLinesTold {
		lines = lines[1:]
		story = append(story, leftOut(lines[0].At, "lines of the log", maxLinesTold))
	}
	story = append(story, tellLog(lines, told, named(lines))...)
	money, err := tellMoney(ctx, r, session, attempts, refunds)
	if err != nil {
		return nil, err
	}
	story = append(story, money...)
	tries, err := r.Tries(ctx, id, maxTriesTold+1)
	if err != nil {
		return nil, err
	}
	if len(tries) > maxTriesTold {
		tries = tries[1:]
		story = append(story, leftOut(tries[0].At, "tries of webhooks", maxTriesTold))
	}
	story = append(story, tellTries(tries)...)
	slices.SortStableFunc(story, func(a, b Moment) int { return a.At.Compare(b.At) })
	end, err := lastly(ctx, r, session, latest(story))
	return append(story, end...), err
}

// lastly is what a story ends with: who of its payers was forgotten since, and how things
// stand.
func lastly(ctx context.Context, r store.Reader, session flow.Session, at time.Time) ([]Moment, error) {
	gone, err := tellForgotten(ctx, r, session.ID, at)
	if err != nil {
		return nil, err
	}
	end, err := standing(ctx, r, session, at)
	return append(gone, end), err
}

// standing tells how a session stands at the end of its story. One that is paid stays
// so: what of that is gone since is said with it.
func standing(ctx context.Context, r store.Reader, s flow.Session, at time.Time) (Moment, error) {
	m := Moment{At: at, Who: "till", What: fmt.Sprintf("session %s: %s of %s paid", s.Status, s.AmountPaid.Naira(), s.Amount.Naira()), Told: endTold(s)}
	if s.Status != flow.SessionPaid {
		return m, nil
	}
	payments, err := r.Payments(ctx, s.ID)
	back, taken := flow.Gone(s, payments)
	if back > 0 {
		m.What += fmt.Sprintf(", %s of it sent back", back.Naira())
		m.Told += fmt.Sprintf(" %s of it went back to who paid it, or is on its way.", back.Naira())
	}
	if bounced := flow.Bounced(payments); bounced > 0 {
		m.What += fmt.Sprintf(", %s of what was sent came back", bounced.Naira())
		m.Told += fmt.Sprintf(" %s that was sent back did not arrive, and is with us again.", bounced.Naira())
	}
	if taken > 0 {
		m.What += fmt.Sprintf(", %s taken back by the bank", taken.Naira())
		m.Told += fmt.Sprintf(" The bank took %s back.", taken.Naira())
	}
	return m, err
}

// hostOf is where a webhook was sent to, as everybody may read it who sees its session:
// in what stands behind that some keep a secret.
func hostOf(t store.Tried) string { return cmp.Or(flow.HostOf(t.URL), t.URL) }

// tellTries tells tries of webhooks.
func tellTries(tries []store.Tried) []Moment {
	story := make([]Moment, 0, len(tries))
	for _, t := range tries {
		outcome := fmt.Sprintf("answered %d", t.Status)
		if t.Status == 0 {
			outcome = "no answer: " + t.Reason
		}
		story = append(story, Moment{At: t.At, Who: "webhook", What: fmt.Sprintf("%s to %s, try %d, %s", t.Kind, hostOf(t), t.N, outcome), Why: string(t.Event), Told: triedTold(t), Took: t.Took, Raw: raw(tried{t.Delivery, t.Status, t.Reason, string(t.Body)})})
	}
	return story
}

// tellLog tells the lines of the log, each fact once: it stands in the log of
// every chat that watches.
func tellLog(lines []store.Line, told teller, names names) []Moment {
	var story []Moment
	streams := map[string]string{}
	for _, l := range lines {
		if !ofChat(l.Kind) {
			fact := fmt.Sprintf("%d %s %s", l.At.UnixMilli(), l.Kind, l.Data)
			if first, told := streams[fact]; told && first != l.Stream {
				continue
			}
			streams[fact] = l.Stream
		}
		for i, m := range tellLine(l) {
			if m.Told = bubble(m); i == 0 {
				m.Told = told.line(l)
			}
			story = append(story, names.of(l, m))
		}
	}
	return story
}

// sameProject says of a session whether it is of another one's project: a payer
// speaks of several merchants' payments in one chat, and what a decision depended
// on holds all of them.
func sameProject(ctx context.Context, r store.Reader, session flow.Session) replay.Owned {
	known := map[flow.SessionID]bool{session.ID: true}
	return func(id flow.SessionID) bool {
		own, asked := known[id]
		if !asked {
			other, err := r.Session(ctx, id)
			own = err == nil && other.Project == session.Project // what cannot be read is nobody's
			known[id] = own
		}
		return own
	}
}

// leftOut says that a story does not tell what was before a time.
func leftOut(at time.Time, what string, told int) Moment {
	why := fmt.Sprintf("a story tells the newest %d", told)
	return Moment{At: at, Who: "till", What: "older " + what + " are left out", Why: why, Told: fmt.Sprintf("Older %s are left out: %s.", what, why)}
}

// names tell the payers of one session apart, where there are several: by the
// order in which they came.
type names map[string]int

func named(lines []store.Line) names {
	n := names{}
	for _, l := range lines {
		if _, known := n[l.Stream]; !known && l.Kind == replay.Heard {
			n[l.Stream] = len(n) + 1
		}
	}
	return n
}

// of is a moment with the number of the payer whose chat it is of.
func (n names) of(l store.Line, m Moment) Moment {
	if number := n[l.Stream]; len(n) > 1 && number > 0 && ofChat(l.Kind) {
		m.Who = fmt.Sprintf("%s %d", m.Who, number)
	}
	return m
}

// opened tells how a session began, which its row holds.
func opened(s flow.Session) Moment {
	why := fmt.Sprintf("amountMinor:%s,expiresAt:%s,mode:%s", s.Amount.Minor(), flow.Stamp(s.ExpiresAt), s.Mode)
	return Moment{At: s.CreatedAt, Who: "till", What: "opened", Why: why, Told: openedTold(s)}
}

// ofChat says whether a kind of line is about one chat alone.
func ofChat(kind string) bool {
	return slices.Contains([]string{replay.Heard, replay.News, replay.Decided}, kind) || ofMessage(kind)
}

// ofMessage says whether a kind of line is about what became of a message of ours.
func ofMessage(kind string) bool {
	return slices.Contains([]string{replay.Sent, replay.Delivered, replay.Read, replay.Failed}, kind)
}

func latest(story []Moment) time.Time {
	if len(story) == 0 {
		return time.Time{}
	}
	return story[len(story)-1].At
}

// tellLine tells one line of the log, by its number.
func tellLine(l store.Line) []Moment {
	told := toldOf(l)
	for i := range told {
		told[i].Line = strconv.FormatInt(l.Seq, 10)
	}
	told[0].Raw, told[0].Took = masked(l), lasted(l)
	return told
}

// tried is what is kept of one try of a webhook.
type tried struct {
	Delivery string `json:"delivery"`
	Status   int    `json:"status"`
	Reason   string `json:"reason,omitempty"`
	Answer   string `json:"answer"`
}

// raw is a value as JSON, nil where it cannot be.
func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}

// lasted is how long a call to the bank took.
func lasted(l store.Line) time.Duration {
	var call railLine
	if l.Kind != "rail.answer" || json.Unmarshal(l.Data, &call) != nil {
		return 0
	}
	return max(time.Duration(call.Millis)*time.Millisecond, time.Microsecond)
}

// masked is what a line of the log keeps, with the middle of the payer's phone
// hidden.
func masked(l store.Line) json.RawMessage {
	if l.Kind != replay.Decided {
		return l.Data
	}
	var d replay.Outcome
	if json.Unmarshal(l.Data, &d) != nil {
		return nil
	}
	d.Chat.Person, d.Chat.Phone = "", flow.Phone(d.Chat.Phone.String())
	return raw(d)
}
