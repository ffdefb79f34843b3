package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// Payer is what one environment keeps of one person: of whoever has a telephone
// number, and, where it is given, an e-mail address; or of whoever is known by an
// e-mail address alone.
type Payer struct {
	Phone    flow.Phone
	Email    string
	Chats    []store.ChatRow
	Sessions []flow.Session  // made for them, or for nobody by number and spoken of in their chats alone
	Beside   []flow.Session  // made for somebody else, and spoken of in their chats
	Numbered []flow.Session  // of the address alone: made for a telephone number as well, or spoken of by one
	Left     []store.ChatRow // of the address alone: of whoever speaks of other sessions too, which stay as they are
}

// FindPayer looks for a person; one that nothing is kept of has no chats and no
// sessions. By an e-mail address alone nothing is theirs that a telephone number
// stands for too: merchants may use one address for many payers.
func FindPayer(ctx context.Context, r store.Reader, phone flow.Phone, email string) (Payer, error) {
	p := Payer{Phone: phone, Email: strings.ToLower(email)}
	var err error
	if p.Chats, err = r.ChatsOfPhone(ctx, phone); err != nil {
		return p, err
	}
	if p.Sessions, err = r.SessionsOfPayer(ctx, phone, p.Email); err != nil {
		return p, err
	}
	if phone == "" {
		if err := p.addressAlone(ctx, r); err != nil {
			return p, err
		}
	}
	known := map[flow.SessionID]bool{}
	for _, s := range p.Sessions {
		known[s.ID] = true
	}
	for _, c := range p.Chats {
		watched, err := r.Watched(ctx, c.ID)
		if err != nil {
			return p, err
		}
		for _, s := range watched {
			if known[s.ID] {
				continue
			}
			known[s.ID] = true
			alone, err := p.alone(ctx, r, s)
			if err != nil {
				return p, err
			}
			if alone {
				p.Sessions = append(p.Sessions, s)
			} else {
				p.Beside = append(p.Beside, s)
			}
		}
	}
	return p, nil
}

// addressAlone sets aside what is not of an e-mail address alone, and adds the chats
// of whoever spoke of its sessions, and of nothing else on any of our numbers.
func (p *Payer) addressAlone(ctx context.Context, r store.Reader) error {
	all, own := p.Sessions, map[flow.SessionID]bool{}
	p.Sessions = nil
	people := map[string][]store.ChatRow{}
	for _, s := range all {
		watchers, err := r.Watchers(ctx, s.ID)
		if err != nil {
			return err
		}
		numbered, of := s.CustomerPhone != "", map[string][]store.ChatRow{}
		for _, c := range watchers {
			if Forgotten(c.Person) {
				continue
			}
			if of[c.Person], err = r.ChatsOfPerson(ctx, c.Person); err != nil {
				return err
			}
			numbered = numbered || slices.ContainsFunc(of[c.Person], func(c store.ChatRow) bool { return c.Phone != "" })
		}
		if numbered {
			p.Numbered = append(p.Numbered, s)
			continue
		}
		p.Sessions, own[s.ID] = append(p.Sessions, s), true
		maps.Copy(people, of)
	}
	for _, person := range slices.Sorted(maps.Keys(people)) {
		foreign := false
		for _, c := range people[person] {
			watched, err := r.Watched(ctx, c.ID)
			if err != nil {
				return err
			}
			foreign = foreign || slices.ContainsFunc(watched, func(s flow.Session) bool { return !own[s.ID] && !Forgotten(s.CustomerName) })
		}
		if foreign {
			p.Left = append(p.Left, people[person]...)
		} else {
			p.Chats = append(p.Chats, people[person]...)
		}
	}
	return nil
}

// alone says whether a session that was made for nobody by telephone number was
// spoken of in the payer's own chats alone: then it is theirs.
func (p Payer) alone(ctx context.Context, r store.Reader, s flow.Session) (bool, error) {
	if s.CustomerPhone != "" || Forgotten(s.CustomerName) {
		return false, nil
	}
	chats, err := r.Watchers(ctx, s.ID)
	return !slices.ContainsFunc(chats, func(c store.ChatRow) bool {
		return !slices.ContainsFunc(p.Chats, func(own store.ChatRow) bool { return own.ID == c.ID })
	}), err
}

// Who is the payer as the audit log names them: not by the whole of what they are
// known by.
func (p Payer) Who() string {
	if p.Phone == "" {
		return flow.Address(p.Email).String()
	}
	return p.Phone.String()
}

// Unsettled lists what of a payer's is not over now: until it is, they cannot be
// forgotten, for nobody could pay it out or answer for it.
func (p Payer) Unsettled(ctx context.Context, r store.Reader, now time.Time) ([]store.Unsettled, error) {
	var list []store.Unsettled
	for _, s := range slices.Concat(p.Sessions, p.Beside) {
		open, err := r.UnsettledOf(ctx, s.ID, now)
		if err != nil {
			return nil, err
		}
		list = append(list, open...)
	}
	for _, c := range p.Chats {
		if c.Desk.State != "" {
			list = append(list, store.Unsettled{What: "chat", ID: string(c.ID)})
		}
	}
	return list, nil
}

// The bounds of what is told of one payer.
const (
	maxSaidTold   = 10_000
	maxPayerNotes = 1000
)

// PayerRecord is all that one environment keeps of a payer, for them to read.
type PayerRecord struct {
	Sessions []PayerSession `json:"sessions"`
	Chats    []PayerChat    `json:"chats"`
}

// PayerSession is a session with what hangs on it.
type PayerSession struct {
	Session  flow.SessionRecord   `json:"session"`
	Merchant string               `json:"merchant"`
	Attempts []flow.Instructions  `json:"instructions"`
	Declined []string             `json:"declined"` // why an attempt came to nothing, as the bank said
	Payments []flow.PaymentRecord `json:"payments"`
	Refunds  []flow.RefundRecord  `json:"refunds"`
	Events   []json.RawMessage    `json:"events"` // what the merchant was told
	Answers  []PayerAnswer        `json:"answers"`
	Notes    []PayerNote          `json:"notes"` // of supporters
}

// PayerAnswer is what a merchant's server answered to an event.
type PayerAnswer struct {
	At     string       `json:"at"`
	Event  flow.EventID `json:"event"`
	Status int          `json:"status"`
	Body   string       `json:"body"`
}

// PayerNote is what a supporter wrote down.
type PayerNote struct {
	At   string `json:"at"`
	Text string `json:"text"`
}

// PayerChat is a chat with one of our numbers: who we think they are, and every
// line that is kept.
type PayerChat struct {
	ID     flow.ChatID `json:"id"`
	Number string      `json:"number"`
	Person string      `json:"person"` // WhatsApp's lasting id of them
	Phone  string      `json:"phone"`
	Name   string      `json:"name"`
	Lines  []PayerLine `json:"lines"`
	Said   []PayerSaid `json:"said"` // by Till
}

// PayerLine is a line of a chat's log.
type PayerLine struct {
	At      string          `json:"at"`
	Kind    string          `json:"kind"`
	Session flow.SessionID  `json:"session,omitempty"`
	Data    json.RawMessage `json:"data"`
}

// PayerSaid is a message of ours.
type PayerSaid struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	State string `json:"state"`
}

// Record reads all that is kept of a payer. Of sessions that were made for
// somebody else it tells what was spoken in the payer's own chats, and no more, and of
// none who somebody else is that paid.
func (p Payer) Record(ctx context.Context, r store.Reader, around flow.Surroundings) (PayerRecord, error) {
	out := PayerRecord{Sessions: []PayerSession{}, Chats: []PayerChat{}}
	others, err := p.othersWhoPaid(ctx, r)
	if err != nil {
		return out, err
	}
	for _, s := range p.Sessions {
		one, err := recordPayerSession(ctx, r, s, around, others)
		if err != nil {
			return out, err
		}
		out.Sessions = append(out.Sessions, one)
	}
	for _, c := range p.Chats {
		lines, err := r.Lines(ctx, string(c.ID))
		if err != nil {
			return out, err
		}
		said, err := r.SaysOf(ctx, c.ID, maxSaidTold)
		if err != nil {
			return out, err
		}
		chat := PayerChat{ID: c.ID, Number: c.Number, Person: c.Person, Phone: string(c.Phone), Name: c.Name, Lines: []PayerLine{}, Said: []PayerSaid{}}
		for _, l := range lines {
			chat.Lines = append(chat.Lines, PayerLine{At: flow.Stamp(l.At), Kind: l.Kind, Session: l.Session, Data: json.RawMessage(others.json(string(l.Data)))})
		}
		for _, one := range said {
			chat.Said = append(chat.Said, PayerSaid{ID: one.ID, Text: one.Text, State: one.State})
		}
		out.Chats = append(out.Chats, chat)
	}
	return out, nil
}

func recordPayerSession(ctx context.Context, r store.Reader, s flow.Session, around flow.Surroundings, others *blotter) (PayerSession, error) {
	out := PayerSession{
		Merchant: s.Merchant, Attempts: []flow.Instructions{}, Declined: []string{}, Payments: []flow.PaymentRecord{}, Refunds: []flow.RefundRecord{},
		Events: []json.RawMessage{}, Answers: []PayerAnswer{}, Notes: []PayerNote{},
	}
	attempts, err := r.Attempts(ctx, s.ID)
	if err != nil {
		return out, err
	}
	for _, a := range attempts {
		if a.Instructions != nil {
			out.Attempts = append(out.Attempts, *a.Instructions)
		}
		if a.Reason != "" {
			out.Declined = append(out.Declined, others.text(a.Reason))
		}
	}
	around.ClientSecret = nil // it opens the session, and is not about the payer
	out.Session = flow.RecordSession(s, nil, around)
	payments, err := r.Payments(ctx, s.ID)
	if err != nil {
		return out, err
	}
	for _, p := range payments {
		p.Payer.Name, p.Payer.AccountNumberMasked = others.text(p.Payer.Name), others.text(p.Payer.AccountNumberMasked)
		out.Payments = append(out.Payments, flow.RecordPayment(p))
	}
	refunds, err := r.Refunds(ctx, store.RefundFilter{Project: s.Project, Session: s.ID, Limit: maxPayerNotes})
	if err != nil {
		return out, err
	}
	for _, f := range refunds {
		out.Refunds = append(out.Refunds, flow.RecordRefund(f, around))
	}
	events, err := r.Events(ctx, s.ID)
	if err != nil {
		return out, err
	}
	for _, e := range events {
		out.Events = append(out.Events, json.RawMessage(others.json(string(e.Body))))
	}
	tries, err := r.Tries(ctx, s.ID, maxTriesTold)
	if err != nil {
		return out, err
	}
	for _, t := range tries {
		out.Answers = append(out.Answers, PayerAnswer{At: flow.Stamp(t.At), Event: t.Event, Status: t.Status, Body: others.text(string(t.Body))})
	}
	notes, err := r.Notes(ctx, s.ID, maxPayerNotes)
	for _, n := range notes {
		out.Notes = append(out.Notes, PayerNote{At: flow.Stamp(n.At), Text: n.Text})
	}
	return out, err
}

// prefixForgotten begins what stands for somebody who was forgotten.
const prefixForgotten = "payer_"

// forgottenChars is how long that is: the prefix and a ULID.
const forgottenChars = len(prefixForgotten) + 26

// Forgotten says whether a name, or what a chat knows a person by, stands for
// somebody who was forgotten.
func Forgotten(name string) bool {
	return len(name) == forgottenChars && strings.HasPrefix(name, prefixForgotten) && strings.ToLower(name) == name
}

// forgottenLine tells that the payer of a chat was forgotten.
func forgottenLine(at time.Time, as string) Moment {
	return Moment{
		At: at, Who: "till", What: "the payer was forgotten: " + as, Why: "what they wrote and who they are is gone; what was understood, and money, is not",
		Told: "The payer of this chat was forgotten. What they wrote, and who they are, is gone for good; how it was understood, what was decided and all money stand as they were.",
	}
}

// tellForgotten tells of each of a session's chats whose payer was forgotten that
// they were.
func tellForgotten(ctx context.Context, r store.Reader, id flow.SessionID, at time.Time) ([]Moment, error) {
	rows, err := r.Watchers(ctx, id)
	if err != nil {
		return nil, err
	}
	var story []Moment
	for _, row := range rows {
		if Forgotten(row.Person) {
			story = append(story, forgottenLine(at, row.Person))
		}
	}
	return story, nil
}

// withoutWords is a line without what somebody wrote and who they are.
func withoutWords(l store.Line, who bool) (store.Line, error) {
	data, err := replay.Blot(l.Kind, l.Data, who)
	if err != nil {
		return l, fmt.Errorf("forget what line %d of %s says: %w", l.Seq, l.Stream, err)
	}
	l.Data = data
	return l, nil
}
