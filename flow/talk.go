package flow

import (
	"slices"
	"time"
)

// The bounds of a chat with someone who does not say what they want.
const (
	maxBadCodes  = 5
	maxStrangers = 2
	maxUnknown   = 2
	quietFor     = time.Hour
)

// Decide takes one turn of a chat: what is said, what is done and where the
// chat stands afterwards. It is pure, and out of the same turn always comes the
// same decision.
func Decide(t Turn) Decision {
	d := &deciding{turn: t, chat: t.Chat}
	d.chat.Talks = slices.Clone(t.Chat.Talks) // the caller's stay the caller's
	if t.News != nil {
		d.news(*t.News)
	} else if t.Heard != nil {
		d.hear(*t.Heard)
	}
	return Decision{Chat: d.chat, Says: d.says, Effects: d.effects, Why: d.why}
}

// deciding is a decision while it is being made.
type deciding struct {
	turn    Turn
	chat    Chat
	says    []Say
	effects []Effect
	why     string
}

func (d *deciding) say(key string, args map[string]string) {
	d.says = append(d.says, Say{Key: key, Args: args})
}

func (d *deciding) do(kind EffectKind, t Talk) {
	d.effects = append(d.effects, Effect{Kind: kind, Session: t.Session, Method: t.Method, Attempt: t.Attempt})
}

// hear decides on a payer's message, in the order of what matters most: a
// secret, an entry code, then what the talk in focus makes of it.
func (d *deciding) hear(in Intent) {
	t, ok := d.chat.talk(d.chat.Focus)
	confirming := d.turn.Now.UnixMilli() < t.ConfirmTo
	if t.ConfirmTo != 0 { // whatever is said next, CANCEL must be asked for anew
		t.ConfirmTo = 0
		d.chat = d.chat.put(t)
	}
	switch {
	case in.Kind == MeansSecret:
		d.why = "a card number was typed"
		d.say("secret_typed", nil)
	case in.Kind == MeansCode:
		d.code()
	case !ok:
		d.stranger()
	default:
		d.focused(t, in, confirming)
	}
}

// focused decides on what a payer says to the talk in focus.
func (d *deciding) focused(t Talk, in Intent, confirming bool) {
	co := d.turn.Checkouts[t.Session]
	if in.Kind != MeansNothing {
		t.Unknown = 0
	}
	switch {
	case t.State == Paid:
		d.why = "already paid"
		d.say("paid_again", d.receipt(co, nil))
	case t.State == Closed:
		d.why = "already closed"
		d.say("session_over", about(co))
	case t.State != Review && !d.turn.Now.Before(co.Session.ExpiresAt):
		d.why = "the session is over, though nobody has swept it yet"
		d.say("session_over", about(co))
	case t.State == Opening || t.State == Verifying:
		d.why = "an answer of the bank is on its way"
		d.say("one_moment", nil)
	case in.Kind == MeansConfirm && confirming:
		d.confirmed(&t, co)
	default:
		if a, ok := co.attempt(t.Attempt); ok && slices.Contains(awaiting, t.State) && !a.Live(d.turn.Now) {
			t, _ = t.move(talkLapse) // nobody has swept it yet, or another chat switched away from it
		}
		d.wish(&t, co, in)
	}
	d.chat = d.chat.put(t)
}

// code decides on an entry code. A valid one always wins over what was going on.
func (d *deciding) code() {
	co, ok := d.turn.Checkouts[d.turn.ByCode]
	ok = ok && d.turn.ByCode != ""
	t, known := d.chat.talk(co.Session.ID)
	if d.turn.Now.UnixMilli() < d.chat.DeafTo && !known {
		d.why = "too many codes that open nothing"
		return
	}
	if !ok {
		d.why = "no session has this code"
		if d.chat.BadCodes++; d.chat.BadCodes >= maxBadCodes {
			d.chat.BadCodes, d.chat.DeafTo = 0, d.turn.Now.Add(quietFor).UnixMilli()
		}
		d.say("code_unknown", nil)
		return
	}
	switch {
	case known && t.State == Paid:
		d.why = "this chat paid it"
		d.chat.Focus = t.Session
		d.say("paid_again", d.receipt(co, nil))
	case known && t.State == Review:
		d.why = "somebody looks at this chat's money"
		d.chat.Focus = t.Session
		d.show(t, co)
	case co.Session.Status == SessionPaid:
		d.why = "somebody paid it"
		d.say("paid_elsewhere", nil)
	case !co.Session.Open():
		d.why = "the session is over"
		d.say("session_over", about(co))
	case known:
		d.why = "same code again"
		d.chat.Focus = t.Session
		d.show(t, co)
	default:
		d.why = "opens a session"
		d.chat.BadCodes, d.chat.Strangers, d.chat.QuietTo = 0, 0, 0 // not by a code that is known: that would pay for guesses
		t = Talk{Session: co.Session.ID, State: Choosing}
		d.chat.Focus = t.Session
		d.chat = d.chat.put(t)
		d.do(DoWatch, t)
		d.summary(co)
	}
}

// stranger answers somebody who has no session: twice, then not for an hour.
func (d *deciding) stranger() {
	d.why = "no session in this chat"
	now := d.turn.Now
	if now.UnixMilli() < d.chat.QuietTo {
		return
	}
	d.say("need_code", nil)
	if d.chat.Strangers++; d.chat.Strangers >= maxStrangers {
		d.chat.Strangers, d.chat.QuietTo = 0, now.Add(quietFor).UnixMilli()
	}
}

// wish decides on what a payer wants of a talk that is not waiting for a bank.
func (d *deciding) wish(t *Talk, co Checkout, in Intent) {
	if t.State == Review && !slices.Contains([]IntentKind{MeansPaid, MeansMedia, MeansNothing}, in.Kind) {
		d.why = "somebody looks at the money"
		d.show(*t, co)
		return
	}
	switch in.Kind {
	case MeansMethod:
		d.choose(t, co, in.Method)
	case MeansBank:
		d.bank(t, co, in.Bank)
	case MeansPaid, MeansMedia:
		d.claim(t, co)
	case MeansAgain, MeansMenu:
		d.why = "show it again"
		d.show(*t, co)
	case MeansOther:
		d.other(t, co)
	case MeansCancel, MeansConfirm:
		d.why = "asks to cancel"
		t.ConfirmTo = d.turn.Now.Add(CancelConfirm).UnixMilli()
		if len(co.Attempts) > 0 {
			d.do(DoCheck, *t)
		}
		d.say("cancel_confirm", about(co))
	case MeansCode, MeansSecret: // decided before
	default:
		d.unknown(t, co)
	}
}

// choose decides on a method. The same one again only shows its details again.
func (d *deciding) choose(t *Talk, co Checkout, m Method) {
	if slices.Contains(awaiting, t.State) && t.Method == m {
		d.why = "chose the same method again"
		d.show(*t, co)
		return
	}
	i := slices.IndexFunc(co.Offers, func(o Offer) bool { return o.Method == m })
	if i < 0 || co.Offers[i].Status == OfferUnavailable {
		d.why = "this method cannot pay it"
		d.say("method_unavailable", d.menuArgs(co))
		return
	}
	if slices.Contains(awaiting, t.State) {
		d.why = "another method: the bank is asked first"
		d.ask(t, ThenOpen)
		t.Method = m
		return
	}
	d.open(t, co, m)
}

// open goes to a method that was chosen: USSD needs the payer's bank first.
func (d *deciding) open(t *Talk, co Checkout, m Method) {
	trigger := talkOpen
	if m == USSD {
		trigger = talkPick
	}
	if t.State == PickingBank && m == USSD {
		d.why = "chose USSD again"
		d.show(*t, co)
		return
	}
	next, ok := t.move(trigger)
	if !ok {
		d.why = "cannot open a method now"
		d.show(*t, co)
		return
	}
	next.Method, next.Attempt, next.Bank = m, "", ""
	*t = next
	if m == USSD {
		d.why = "chose USSD: which bank"
		d.show(*t, co)
		return
	}
	d.why = "chose " + string(m)
	d.do(DoOpen, *t)
}

// bank decides on the payer's bank: only now the rail is asked for a USSD code.
func (d *deciding) bank(t *Talk, co Checkout, code string) {
	if t.State == AwaitUSSD && t.Bank == code {
		d.why = "chose the same bank again"
		d.show(*t, co)
		return
	}
	listed := slices.ContainsFunc(d.turn.Banks, func(b Bank) bool { return b.Code == code })
	if t.State != PickingBank || !listed {
		d.unknown(t, co)
		return
	}
	next, ok := t.move(talkOpen)
	if !ok {
		return
	}
	next.Bank, next.Method = code, USSD
	*t = next
	d.why = "chose the bank " + code
	d.do(DoOpen, *t)
}

// claim decides on "I have paid": the bank is asked, the payer never believed.
func (d *deciding) claim(t *Talk, co Checkout) {
	if len(co.Attempts) == 0 {
		d.why = "says paid, but there is nothing to pay to yet"
		d.say("nothing_yet_choose", d.menuArgs(co))
		return
	}
	d.why = "says paid: the bank is asked"
	d.ask(t, ThenBack)
	d.say("checking", nil)
}

// other decides on "pay another way".
func (d *deciding) other(t *Talk, co Checkout) {
	if !slices.Contains(awaiting, t.State) {
		d.why = "wants another way"
		if next, ok := t.move(back(Choosing)); ok {
			*t = next
		}
		d.show(*t, co)
		return
	}
	d.why = "wants another way: the bank is asked first"
	d.ask(t, ThenChoose)
}

// confirmed decides on the word that confirms a cancellation.
func (d *deciding) confirmed(t *Talk, co Checkout) {
	if len(co.Attempts) == 0 {
		d.why = "cancelled, nothing was opened"
		d.do(DoCancel, *t)
		return
	}
	d.why = "confirmed: the bank is asked before it is cancelled"
	d.ask(t, ThenCancel)
}

// ask goes to verifying and asks the bank.
func (d *deciding) ask(t *Talk, then Then) {
	next, ok := t.move(talkAsk)
	if !ok {
		return
	}
	next.From, next.Then = t.State, then
	*t = next
	d.do(DoCheck, *t)
}

// unknown answers what was not understood: twice with what would be, then not.
func (d *deciding) unknown(t *Talk, co Checkout) {
	d.why = "not understood"
	if t.Unknown++; t.Unknown > maxUnknown {
		d.why = "not understood, and said so twice already"
		return
	}
	key := "not_understood_choose"
	switch {
	case slices.Contains(awaiting, t.State) || t.State == PartPaid:
		key = "not_understood_wait"
	case t.State == PickingBank || t.State == Review:
		d.show(*t, co)
		return
	}
	d.say(key, d.menuArgs(co))
}
