package flow

import "slices"

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
	Lang      Lang      `json:"lang,omitempty"`
	Focus     SessionID `json:"focus,omitempty"`
	Talks     []Talk    `json:"talks,omitempty"`   // the one that was last in focus is last
	Stopped   bool      `json:"stopped,omitempty"` // the person said STOP to any of our numbers: no reminders
	Desk      Desk      `json:"desk,omitzero"`
	Wrote     int64     `json:"wrote,omitempty"`     // ms: when the payer last wrote
	Fades     bool      `json:"fades,omitempty"`     // its messages disappear, and that was said
	Strangers int       `json:"strangers,omitempty"` // messages without a session that were answered
	BadCodes  int       `json:"badCodes,omitempty"`
	QuietTo   int64     `json:"quietTo,omitempty"` // ms: a stranger is not answered until then
	DeafTo    int64     `json:"deafTo,omitempty"`  // ms: codes open nothing until then
	Flood     Flood     `json:"flood,omitzero"`
	UnreadTo  int64     `json:"unreadTo,omitempty"` // ms: until then nobody is told again that only text is read
	Flag      string    `json:"flag,omitempty"`     // why support should have a look, "" for no reason
}

// Flood counts what a payer writes, and says until when it is not answered.
type Flood struct {
	From  int64 `json:"from,omitempty"`  // ms: the minute that is counted
	Count int   `json:"count,omitempty"` // of messages in it
	Times int   `json:"times,omitempty"` // it was too many, without an hour of calm between
	To    int64 `json:"to,omitempty"`    // ms: only money is spoken of until then
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
	HushTo    int64     `json:"hushTo,omitempty"`    // ms: what is not understood is not answered until then
	ConfirmTo int64     `json:"confirmTo,omitempty"` // ms: until then CANCEL cancels
	Guess     Method    `json:"guess,omitempty"`     // "did you mean": YES opens it
	Held      *Intent   `json:"held,omitempty"`      // said while a bank was asked; decided on afterwards
	Waited    bool      `json:"waited,omitempty"`    // "one moment" was said
	Claimed   bool      `json:"claimed,omitempty"`   // the payer said that it is paid
	Mine      bool      `json:"mine,omitempty"`      // this chat's instructions were paid
	Down      Method    `json:"down,omitempty"`      // a method that just did not work
	DownTo    int64     `json:"downTo,omitempty"`    // ms: it is not offered until then
	Reminded  int       `json:"reminded,omitempty"`  // reminders that were sent
	Polled    int       `json:"polled,omitempty"`    // times the bank was asked since the claim
	Timers    Timers    `json:"timers,omitzero"`
}

// Timers are when a talk does something by itself, in ms; 0 is never.
type Timers struct {
	Nudge  int64 `json:"nudge,omitempty"`  // nothing was chosen
	Remind int64 `json:"remind,omitempty"` // the instructions are nearly over
	Poll   int64 `json:"poll,omitempty"`   // ask the bank again after a claim
	Close  int64 `json:"close,omitempty"`  // nobody says anything any more
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
	ThenMoney  Then = "money" // asked where the money is
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

// Talk is where a session stands in the chat, false where it was never opened.
func (c Chat) Talk(id SessionID) (Talk, bool) {
	i := slices.IndexFunc(c.Talks, func(t Talk) bool { return t.Session == id })
	if i < 0 {
		return Talk{}, false
	}
	return c.Talks[i], true
}

// parked is the payment that 7 leads back to: the last one that was in focus
// before, and can still come to something.
func (c Chat) parked() (Talk, bool) {
	for _, t := range slices.Backward(c.Talks) {
		if t.Session != c.Focus && (slices.Contains(live, t.State) || t.State == Review) {
			return t, true
		}
	}
	return Talk{}, false
}

// settled is the payment that was last in focus, and is paid.
func (c Chat) settled() (Talk, bool) {
	for _, t := range slices.Backward(c.Talks) {
		if t.Session != c.Focus && t.State == Paid {
			return t, true
		}
	}
	return Talk{}, false
}

// put is the chat with a talk added or changed.
func (c Chat) put(t Talk) Chat {
	c.Talks = slices.Clone(c.Talks)
	if i := slices.IndexFunc(c.Talks, func(x Talk) bool { return x.Session == t.Session }); i >= 0 {
		c.Talks[i] = t
		return c
	}
	if len(c.Talks) >= MaxTalks {
		kept := func(x Talk) bool { return x.Session == c.Focus || x.Session == c.Desk.About } // where whoever comes goes to
		first := slices.IndexFunc(c.Talks, func(x Talk) bool { return (x.State == Closed || x.State == Paid) && !kept(x) })
		if first < 0 {
			first = slices.IndexFunc(c.Talks, func(x Talk) bool { return !kept(x) })
		}
		c.Talks = slices.Delete(c.Talks, first, first+1)
	}
	c.Talks = append(c.Talks, t)
	return c
}
