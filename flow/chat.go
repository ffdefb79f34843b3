package flow

import (
	"slices"
	"time"
)

// Chat is one person's chat with one of our numbers: where each of the talks in
// it stands. It is the fold of its log; whoever keeps a copy compares Seq.
//
// The person is known by the network's lasting id (LID). The phone number is an
// attribute of the person and may change.
type Chat struct {
	ID        ChatID    `json:"id"`
	Number    string    `json:"number"` // ours, E.164 digits
	Person    string    `json:"person"` // their LID
	Phone     Phone     `json:"phone"`
	Name      string    `json:"name,omitempty"`
	Seq       int64     `json:"seq"` // of the line of its log that holds this state
	Focus     SessionID `json:"focus,omitempty"`
	Talks     []Talk    `json:"talks,omitempty"`     // newest last
	Strangers int       `json:"strangers,omitempty"` // messages without a session that were answered
	BadCodes  int       `json:"badCodes,omitempty"`
	QuietTo   int64     `json:"quietTo,omitempty"` // ms: a stranger is not answered until then
	DeafTo    int64     `json:"deafTo,omitempty"`  // ms: codes open nothing until then
}

// Talk is where one session stands in a chat.
type Talk struct {
	Session   SessionID `json:"session"`
	State     TalkState `json:"state"`
	Method    Method    `json:"method,omitempty"`    // chosen last
	Attempt   AttemptID `json:"attempt,omitempty"`   // of that method
	Bank      string    `json:"bank,omitempty"`      // ussd: the payer's bank
	From      TalkState `json:"from,omitempty"`      // verifying: where it goes back to
	Then      Then      `json:"then,omitempty"`      // verifying: what follows when there is no money
	Unknown   int       `json:"unknown,omitempty"`   // messages in a row that were not understood
	ConfirmTo int64     `json:"confirmTo,omitempty"` // ms: until then CANCEL cancels
}

// Then is what a payer wanted when the bank had to be asked first.
type Then string

// What can wait for the bank's answer. Money that the bank knows of wins over
// all of them.
const (
	ThenBack   Then = ""       // only asked: "I have paid"
	ThenChoose Then = "choose" // pay another way
	ThenOpen   Then = "open"   // the method in Method
	ThenCancel Then = "cancel"
)

// TalkState is where a talk stands.
type TalkState string

// The states of a talk. Its money has states of its own: a talk only observes.
const (
	Choosing      TalkState = "choosing"
	PickingBank   TalkState = "ussd_bank"
	Opening       TalkState = "opening" // the rail is being asked
	AwaitTransfer TalkState = "await_transfer"
	AwaitUSSD     TalkState = "await_ussd"
	AwaitCard     TalkState = "await_card"
	Verifying     TalkState = "verifying" // the bank is being asked; From remembers
	PartPaid      TalkState = "part_paid"
	Lapsed        TalkState = "expired" // the instructions are over, the session is open
	Paid          TalkState = "paid"
	Review        TalkState = "review" // money that cannot be applied by itself
	Closed        TalkState = "closed"
)

// MaxTalks bounds the talks that a chat remembers; the oldest that is over goes
// first.
const MaxTalks = 20

// talk finds a session's talk in the chat.
func (c Chat) talk(id SessionID) (Talk, bool) {
	i := slices.IndexFunc(c.Talks, func(t Talk) bool { return t.Session == id })
	if i < 0 {
		return Talk{}, false
	}
	return c.Talks[i], true
}

// Talk is where a session stands in the chat, false where it was never opened.
func (c Chat) Talk(id SessionID) (Talk, bool) { return c.talk(id) }

// put is the chat with a talk added or changed.
func (c Chat) put(t Talk) Chat {
	c.Talks = slices.Clone(c.Talks)
	if i := slices.IndexFunc(c.Talks, func(x Talk) bool { return x.Session == t.Session }); i >= 0 {
		c.Talks[i] = t
		return c
	}
	if len(c.Talks) >= MaxTalks {
		over := slices.IndexFunc(c.Talks, func(x Talk) bool { return x.State == Closed || x.State == Paid })
		c.Talks = slices.Delete(c.Talks, max(over, 0), max(over, 0)+1)
	}
	c.Talks = append(c.Talks, t)
	return c
}

// IntentKind is what a payer means.
type IntentKind string

// The kinds of intent, in the order in which one message is read: what stands
// first wins.
const (
	MeansStop     IntentKind = "stop"     // the whole message is a word of STOP: no more reminders
	MeansResume   IntentKind = "resume"   // START: undoes STOP; to whoever is not stopped it is a menu word
	MeansSecret   IntentKind = "secret"   // a card number, PIN, OTP or CVV was typed; it was masked
	MeansCode     IntentKind = "code"     // an entry code: opens its session
	MeansHuman    IntentKind = "human"    // 9: a person, please
	MeansCancel   IntentKind = "cancel"   // digit 0 or the words
	MeansConfirm  IntentKind = "confirm"  // the exact word CANCEL
	MeansMenu     IntentKind = "menu"     // hi, start, menu, help
	MeansLanguage IntentKind = "language" // 8, or a language in Lang
	MeansBack     IntentKind = "back"     // 7: the payment before this one
	MeansReceipt  IntentKind = "receipt"  // the receipt once more
	MeansWho      IntentKind = "who"      // who is this, wrong number, scam?
	MeansMoney    IntentKind = "money"    // refund, where is my money, not received
	MeansMethod   IntentKind = "method"   // a method by digit or word
	MeansMaybe    IntentKind = "maybe"    // what is perhaps the name of Method: to be asked about
	MeansYes      IntentKind = "yes"      // to "did you mean"
	MeansNo       IntentKind = "no"
	MeansBank     IntentKind = "bank"  // a bank out of the USSD menu
	MeansPaid     IntentKind = "paid"  // "I have paid"
	MeansAgain    IntentKind = "again" // send the details again
	MeansOther    IntentKind = "other" // pay another way
	MeansThanks   IntentKind = "thanks"
	MeansAbuse    IntentKind = "abuse"    // an insult; nothing is done about it but counting
	MeansMedia    IntentKind = "media"    // a picture or a document
	MeansUnread   IntentKind = "unread"   // a voice note, video, sticker, place or contact
	MeansCall     IntentKind = "call"     // a call, which was rejected
	MeansNote     IntentKind = "note"     // a reaction, an edit of what was consumed, a message taken back: kept, not answered
	MeansTakeover IntentKind = "takeover" // somebody typed on the phone of our own number
	MeansNothing  IntentKind = "unknown"
)

// Intent is a payer's message as it was understood. Text is kept for the log
// with secrets masked: no run of four digits or more is in it.
type Intent struct {
	Kind   IntentKind `json:"kind"`
	Method Method     `json:"method,omitempty"`
	Bank   string     `json:"bank,omitempty"` // bank code
	Code   string     `json:"code,omitempty"` // entry code, eight characters
	Lang   Lang       `json:"lang,omitempty"`
	Text   string     `json:"text,omitempty"`
	By     int        `json:"by,omitempty"` // version of the reading, see bot.Reading
}

// Lang is a language of the conversation, as ISO 639 names it.
type Lang string

// The languages. The zero Lang is English.
const (
	English Lang = "en"
	Pidgin  Lang = "pcm"
	Hausa   Lang = "ha"
	Yoruba  Lang = "yo"
	Igbo    Lang = "ig"
)

// Langs are the languages in the order of their menu, whose digits begin at
// FirstLang.
func Langs() []Lang { return []Lang{English, Pidgin, Hausa, Yoruba, Igbo} }

// FirstLang is the digit of the first language in the menu of languages. No
// other menu has it: a digit means one thing, whatever was shown last.
const FirstLang = 21

// Checkout is what a turn must know of a session, at the time of the turn.
type Checkout struct {
	Session  Session   `json:"session"`
	Attempts []Attempt `json:"attempts"` // oldest first
	Offers   []Offer   `json:"offers"`
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
type Turn struct {
	Chat      Chat
	Heard     *Intent
	News      *News
	About     SessionID              // of News
	Checkouts map[SessionID]Checkout // every session that the turn may touch
	ByCode    SessionID              // the session the entry code opens, "" for none
	Banks     []Bank                 // of the USSD menu, in order
	Now       time.Time
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
	Key  string            `json:"key"`
	Lang Lang              `json:"lang,omitempty"`
	Args map[string]string `json:"args,omitempty"`
}

// Decision is what a turn comes to.
type Decision struct {
	Chat    Chat     `json:"chat"`
	Says    []Say    `json:"says,omitempty"`
	Effects []Effect `json:"effects,omitempty"`
	Why     string   `json:"why"` // the rule that matched, for the support agent
}
