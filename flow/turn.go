package flow

import (
	"slices"
	"time"
)

// Checkout is what a turn must know of a session, at the time of the turn.
//
// It holds nothing of who the customer is: decisions are kept with all that led
// to them, and are told to whoever replays them.
type Checkout struct {
	Session  Session   `json:"session"`
	Attempts []Attempt `json:"attempts,omitempty"` // oldest first
	Payments []Payment `json:"payments,omitempty"` // oldest first
	Offers   []Offer   `json:"offers,omitempty"`
}

// RulesVersion is the version of the rules. It goes up when the same turn comes
// to another decision than before, so that an old log says which rules it was
// made under.
const RulesVersion = 41

// Look is what a turn may know of a session.
func Look(s Session, attempts []Attempt, payments []Payment, offers []Offer) Checkout {
	s.CustomerEmail, s.CustomerPhone, s.CustomerName, s.Metadata, s.CallbackURL = "", "", "", nil, ""
	seen := slices.Clone(payments)
	for i := range seen {
		seen[i].Payer, seen[i].ResolvedBy, seen[i].ResolvedWhy = PaidBy{}, "", ""
	}
	return Checkout{Session: s, Attempts: attempts, Payments: seen, Offers: offers}
}

// attempt finds an attempt of the checkout by its id.
func (c Checkout) attempt(id AttemptID) (Attempt, bool) {
	i := slices.IndexFunc(c.Attempts, func(a Attempt) bool { return a.ID == id })
	if i < 0 {
		return Attempt{}, false
	}
	return c.Attempts[i], true
}

// Turn is one thing that happened in a chat: a payer's message (Heard), or news
// about one of its sessions.
//
// With the chat before it, it is all that a decision depends on: the log keeps
// it, and a replay decides on it again.
type Turn struct {
	Chat      Chat                   `json:"-"`
	Heard     *Intent                `json:"heard,omitempty"`
	News      *News                  `json:"news,omitempty"`
	About     SessionID              `json:"about,omitempty"`     // of News, or of the message that an edit leaves as it was
	ByCode    SessionID              `json:"byCode,omitempty"`    // the session the entry code opens, "" for none
	Off       bool                   `json:"off,omitempty"`       // an operator switched the number off: what is heard is kept, and not answered
	Quoted    SessionID              `json:"quoted,omitempty"`    // the session whose message is answered to, "" for none
	Fades     bool                   `json:"fades,omitempty"`     // the chat's messages disappear
	Wrote     int64                  `json:"wrote,omitempty"`     // ms: when the network took in what was heard, by the clock of Now; 0 where that is not known
	Unread    bool                   `json:"unread,omitempty"`    // our question whether to cancel is not sent yet
	Came      string                 `json:"came,omitempty"`      // what Heard came with, as a picture; nothing is decided by this and what follows
	Edits     string                 `json:"edits,omitempty"`     // the network's id of the message that Heard takes the place of
	Revokes   string                 `json:"revokes,omitempty"`   // likewise of the one that is taken back
	Of        int64                  `json:"of,omitempty"`        // the line of the log that either stands in
	Kin       []ChatID               `json:"kin,omitempty"`       // chats of the same person with our other numbers, that asked for instructions of these sessions
	Checkouts map[SessionID]Checkout `json:"checkouts,omitempty"` // every session that the turn may touch
	Banks     []Bank                 `json:"banks,omitempty"`     // of the USSD menu, in order
	Now       time.Time              `json:"now"`
}

// Touches are the sessions that a turn may touch: whoever takes the turn reads
// them first.
func (t Turn) Touches() []SessionID {
	list := []SessionID{t.Chat.Focus, t.About, t.ByCode, t.Quoted}
	says := t.Heard
	if talk, ok := t.Chat.Talk(t.About); ok && t.News != nil {
		says = talk.Held // the bank's answer has it decided on
	}
	stands := []Chat{t.Chat}
	if t.Quoted != "" { // what is answered to comes into focus first: others are before it then
		moved := t.Chat
		moved.Focus = t.Quoted
		stands = append(stands, moved)
	}
	for _, chat := range stands {
		if parked, ok := chat.parked(); ok {
			list = append(list, parked.Session)
		}
		if settled, ok := chat.settled(); ok && says != nil && (says.Kind == MeansBack || says.Kind == MeansReceipt) {
			list = append(list, settled.Session)
		}
	}
	if t.News != nil && t.News.Kind == NewsTimer {
		for _, talk := range t.Chat.Talks {
			if at, ok := talk.Timers.next(); ok && at <= t.Now.UnixMilli() {
				list = append(list, talk.Session)
			}
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(id SessionID) bool { return id == "" })
}

// EffectKind is what a turn asks the shell to do beside saying something.
type EffectKind string

// The kinds of effect.
const (
	DoOpen      EffectKind = "open"      // begin an attempt (the lazy call)
	DoSupersede EffectKind = "supersede" // end an attempt that was switched away from
	DoCheck     EffectKind = "check"     // ask the bank
	DoCancel    EffectKind = "cancel"    // cancel the session
	DoWatch     EffectKind = "watch"     // this chat observes the session from now on
)

// Effect is something the shell does in the transaction of the turn.
type Effect struct {
	Kind    EffectKind `json:"kind"`
	Session SessionID  `json:"session"`
	Method  Method     `json:"method,omitempty"`
	Attempt AttemptID  `json:"attempt,omitempty"`
}

// Say is one message to the payer: a key of the language pack and what fills
// it. Bubbles of one turn go out in order.
type Say struct {
	Key   string            `json:"key"`
	Lang  Lang              `json:"lang,omitempty"`
	Args  map[string]string `json:"args,omitempty"`
	Brief bool              `json:"brief,omitempty"` // only its first line, which is the news: what it asks for is not to be answered now
}

// Decision is what a turn comes to.
type Decision struct {
	Chat    Chat     `json:"chat"`
	Says    []Say    `json:"says,omitempty"`
	Effects []Effect `json:"effects,omitempty"`
	Why     string   `json:"why"` // the rule that matched, for the support agent
}
