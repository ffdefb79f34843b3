package replay

import (
	"fmt"
	"slices"
	"time"

	"till/flow"
)

// Moment is a conversation as it stood after one line of its log.
type Moment struct {
	Seq     int64
	At      time.Time
	Chat    flow.Chat
	Why     string         // the rule that matched last
	Live    []flow.Attempt // instructions that could be paid then, as far as this chat knew
	Screen  []Shown        // what the payer had on the screen, oldest first
	Pending []Shown        // what was decided to be said and had not left yet
	Due     time.Time      // when a timer would have fired next, zero for never
}

// maxScreen is how many messages a screen holds that a replay shows.
const maxScreen = 20

// At is a conversation as it stood after the line seq of its log. Errors: the
// recording has no such line, or cannot be read.
func At(r Recording, seq int64) (Moment, error) {
	i := slices.IndexFunc(r.Lines, func(l Line) bool { return l.Seq == seq })
	if i < 0 {
		var first, last int64 // a part begins where another's payment ends, and lacks what is of that
		if n := len(r.Lines); n > 0 {
			first, last = r.Lines[0].Seq, r.Lines[n-1].Seq
		}
		return Moment{}, fmt.Errorf("line %d: the log of chat %s has lines %d to %d", seq, r.Chat, first, last)
	}
	r.Lines = r.Lines[:i+1]
	m := Moment{Seq: seq, At: r.Lines[i].At}
	turns, err := r.turns()
	if err != nil {
		return m, err
	}
	became := r.became()
	attempts := map[flow.AttemptID]flow.Attempt{}
	for _, t := range turns {
		for _, shown := range t.shown(became) {
			switch shown.State {
			case "":
				m.Pending = append(m.Pending, shown)
			case Failed:
			default:
				m.Screen = append(m.Screen, shown)
			}
		}
		for _, co := range t.in.Checkouts {
			for _, a := range co.Attempts {
				attempts[a.ID] = a
			}
		}
		for _, e := range t.out.Effects {
			if a, ok := attempts[e.Attempt]; ok && e.Kind == flow.DoSupersede {
				a.Status = flow.AttemptSuperseded
				attempts[a.ID] = a
			}
		}
		m.Chat, m.Why = t.out.Chat, t.out.Why
	}
	for _, a := range attempts {
		if a.Live(m.At) && a.Instructions != nil {
			m.Live = append(m.Live, a)
		}
	}
	slices.SortFunc(m.Live, func(a, b flow.Attempt) int { return a.CreatedAt.Compare(b.CreatedAt) })
	m.Screen = m.Screen[max(0, len(m.Screen)-maxScreen):]
	m.Due, _ = m.Chat.Due()
	return m, nil
}

// became is what became of each message of ours, by its id.
func (r Recording) became() map[string]string {
	last := map[string]string{}
	for _, l := range r.Lines {
		if slices.Contains([]string{Sent, Delivered, Read, Failed}, l.Kind) {
			last[l.Message] = l.Kind
		}
	}
	return last
}
