package flow

import (
	"maps"
	"slices"
	"time"

	"till/flow/planted"
)

// The bounds of a chat with someone who does not say what they want.
const (
	maxBadCodes  = 5
	maxStrangers = 2
	maxUnknown   = 2
	quietFor     = time.Hour
	hushFor      = 10 * time.Minute // after the third message that was not understood
	unreadFor    = 10 * time.Minute // between two words about voice notes and the like
	// maxPerMinute is how many messages of a minute are answered.
	maxPerMinute = 12
	// calmAfter is how long it must be quiet for a flood to be forgotten.
	calmAfter = time.Hour
)

// Decide takes one turn of a chat: what is said, what is done and where the
// chat stands afterwards. It is pure, and out of the same turn always comes the
// same decision.
func Decide(t Turn) Decision {
	d := &deciding{turn: t, chat: t.Chat}
	d.chat.Talks = slices.Clone(t.Chat.Talks) // the caller's stay the caller's
	switch {
	case t.Off && t.Heard != nil:
		return d.unanswered(*t.Heard)
	case t.News != nil:
		d.happened(*t.News)
	case t.Heard != nil:
		d.hear(*t.Heard)
	}
	d.plan()
	d.fading()
	d.unpayable()
	if planted.OwnClock && time.Now().Second()%2 == 0 { //nolint:forbidigo // this is the bug
		d.says = nil
	}
	return Decision{Chat: d.chat, Says: d.spoken(), Effects: d.effects, Why: d.why}
}

// unanswered decides on what is written to a number that an operator switched off.
// STOP holds all the same: our other numbers may write to them still.
func (d *deciding) unanswered(in Intent) Decision {
	d.chat.Stopped = d.chat.Stopped || in.Kind == MeansStop
	return Decision{Chat: d.chat, Why: "kept, and not answered: an operator switched this number off"}
}

// deciding is a decision while it is being made.
type deciding struct {
	turn    Turn
	chat    Chat
	says    []Say
	effects []Effect
	why     string
	left    bool // an agent, for another merchant's payment
	byHand  bool // the payer is in no chat: a person tells them what is said
}

func (d *deciding) say(key string, args map[string]string) {
	d.says = append(d.says, Say{Key: key, Args: args})
}

func (d *deciding) do(kind EffectKind, t Talk) {
	d.effects = append(d.effects, Effect{Kind: kind, Session: t.Session, Method: t.Method, Attempt: t.Attempt})
}

// now is the time of the turn, in ms.
func (d *deciding) now() int64 { return d.turn.Now.UnixMilli() }

// holds says whether a bound of at most so long, which ends at a time, is not over yet.
// One that a clock told which was set back since holds no longer.
func (d *deciding) holds(until int64, most time.Duration) bool {
	left := until - d.now()
	return left > 0 && left <= most.Milliseconds()
}

// in is a time from now, in ms.
func (d *deciding) in(wait time.Duration) int64 { return d.turn.Now.Add(wait).UnixMilli() }

// manned says whether a person has the chat: then the bot is silent.
func (d *deciding) manned() bool {
	return d.chat.Desk.State == DeskClaimed || d.chat.Desk.State == DeskDevice
}

// spoken is what is really said: while a person has the chat the bot is silent,
// but money is always told of. A flood holds nothing back: what it is made of is
// not answered, and what was asked for before it is.
func (d *deciding) spoken() []Say {
	again := d.turn.News != nil && d.turn.News.Kind == NewsAgain && d.turn.About == d.chat.Focus // a person has asked for it
	var out []Say
	withheld := false
	for _, s := range d.says {
		if d.manned() && Withheld(s.Key) && !again {
			withheld = true
			continue
		}
		s.Brief = d.manned() && !again && slices.Contains(asks, s.Key)
		s.Lang = d.chat.Lang
		s.Args = maps.Clone(s.Args)
		out = append(out, s)
	}
	if d.left {
		d.why += " (the bot has the chat again: its agent is another merchant's)"
	}
	if withheld {
		d.why += " (not said: a person has the chat)"
	}
	return out
}

// hear decides on a payer's message, in the order of what matters most.
func (d *deciding) hear(in Intent) {
	if in.Kind == MeansNote {
		d.why = "kept, and not answered"
		return
	}
	if in.Kind == MeansTakeover {
		d.takeover()
		return
	}
	d.chat.Wrote = d.now()
	flood := d.flood()
	t, ok := d.quoted(in.Kind, flood)
	confirming, guess := d.holds(t.ConfirmTo, CancelConfirm), t.Guess
	if confirming && !flood && in.Kind == MeansConfirm && d.early(t) {
		d.why = "asks to cancel again: the question whether to could not be read yet"
		return
	}
	if t.ConfirmTo != 0 || t.Guess != "" { // whatever is said next, both must be asked for anew
		t.ConfirmTo, t.Guess = 0, ""
		d.chat = d.chat.put(t)
	}
	switch {
	case in.Kind == MeansStop:
		d.why = "wants no reminders"
		d.chat.Stopped = true
		d.say("stopped", nil)
	case in.Kind == MeansResume && d.chat.Stopped:
		d.why = "wants reminders again"
		d.chat.Stopped = false
		d.say("resumed", nil)
	case in.Kind == MeansSecret:
		d.secret(t, ok)
	case flood:
	case in.Kind == MeansCode: // while a person has the chat it is opened in silence: its money must be told of
		d.code()
	case d.chat.Desk.State != DeskBot && !d.chat.besides():
		d.atDesk(t, in, confirming)
	case in.Kind == MeansHuman && ok:
		d.person("asks for a person")
	case in.Kind == MeansLanguage:
		d.language(in.Lang)
	case !ok:
		d.stranger()
	case in.Kind == MeansCall:
		d.why = "called: this number takes no calls"
		d.say("no_calls", nil)
	default:
		if in.Kind == MeansYes && guess != "" {
			in = Intent{Kind: MeansMethod, Method: guess}
		}
		d.focused(t, in, confirming)
	}
}

// wholeSecond is how exactly the network says when a message was written.
const wholeSecond = time.Second

// early says whether a message was written before our question whether to cancel
// could be read: whoever is in a hurry, or hears nothing, sends the same word twice.
func (d *deciding) early(t Talk) bool {
	asked := t.ConfirmTo - CancelConfirm.Milliseconds()
	return d.turn.Unread || d.wrote()+wholeSecond.Milliseconds() <= asked
}

// quoted is the talk that a message is about: the one in focus, or the one
// whose message is answered to. That one is in focus from then on, unless nothing
// is said of it now: a digit is an answer to the menu that was shown last.
func (d *deciding) quoted(kind IntentKind, flood bool) (Talk, bool) {
	silent := flood || slices.Contains(ofNoTalk, kind)
	if t, ok := d.chat.Talk(d.turn.Quoted); ok && d.turn.Quoted != d.chat.Focus && !silent {
		d.focus(t)
	}
	return d.chat.Talk(d.chat.Focus)
}

// ofNoTalk are what is answered in the same way whatever it is an answer to.
var ofNoTalk = []IntentKind{MeansStop, MeansResume, MeansSecret, MeansThanks, MeansCode}

// focus puts a talk into focus. It is the last one from now on: the one before
// it is what 7 leads back to.
func (d *deciding) focus(t Talk) {
	d.leaves(t.Session)
	if desk := &d.chat.Desk; desk.State == DeskWaiting && desk.About == "" && d.chat.Focus != t.Session {
		desk.About = d.chat.Focus
	}
	d.chat.Focus = t.Session
	d.chat.Talks = slices.DeleteFunc(d.chat.Talks, func(x Talk) bool { return x.Session == t.Session })
	d.chat.Talks = append(d.chat.Talks, t)
}

// wrote is when the message of the turn was written, in ms. After an outage what was
// written in hours comes in one second.
func (d *deciding) wrote() int64 {
	if at := d.turn.Wrote; at > 0 && at < d.now() {
		return at
	}
	return d.now()
}

// flood counts a message, and says whether it is one too many to be answered.
func (d *deciding) flood() bool {
	f, now := &d.chat.Flood, d.wrote()
	if now < f.To && f.To-now <= quietFor.Milliseconds() { // what is told by another clock holds for no longer
		d.why = "too many messages"
		return true
	}
	if f.Times > 0 && now-f.To >= calmAfter.Milliseconds() {
		f.Times = 0
	}
	if apart := now - f.From; max(apart, -apart) >= time.Minute.Milliseconds() {
		f.From, f.Count = now, 0
	}
	if f.Count++; f.Count <= maxPerMinute {
		return false
	}
	f.To = now + min(time.Minute<<min(f.Times, 6), quietFor).Milliseconds()
	f.Times++
	f.From, f.Count = 0, 0
	if f.Times >= maxBadCodes {
		d.mark("floods the chat")
	}
	d.why = "too many messages: said once"
	d.say("too_fast", nil)
	return true
}

// secret tells whoever typed a card number, a PIN or the like to take it back.
// It was masked before anything was kept.
func (d *deciding) secret(t Talk, ok bool) {
	d.why = "a secret was typed"
	var args map[string]string
	if co, found := d.turn.Checkouts[t.Session]; ok && found && slices.Contains(live, t.State) && !d.manned() && co.Session.Open() {
		args = d.menuArgs(t, co)
	}
	d.say("secret_typed", args)
	if !ok && d.chat.Desk.State == DeskBot { // their code may have stood beside it
		d.stranger()
		d.why = "a secret was typed, and no session is in this chat"
	}
}

// language shows the languages, or speaks another one from now on.
func (d *deciding) language(to Lang) {
	if to == "" {
		d.why = "asks for the languages"
		d.say("languages", nil)
		return
	}
	d.why = "chose the language " + string(to)
	d.chat.Lang = to
	d.say("language_set", nil)
	if t, ok := d.chat.Talk(d.chat.Focus); ok {
		d.show(t, d.turn.Checkouts[t.Session])
	}
}

// code decides on an entry code. A valid one always wins over what was going on.
func (d *deciding) code() {
	co, ok := d.turn.Checkouts[d.turn.ByCode]
	ok = ok && d.turn.ByCode != ""
	t, known := d.chat.Talk(co.Session.ID)
	if d.holds(d.chat.DeafTo, quietFor) && !known {
		d.why = "too many codes that open nothing"
		return
	}
	if !ok {
		d.why = "no session has this code"
		if d.chat.BadCodes++; d.chat.BadCodes >= maxBadCodes {
			d.chat.BadCodes, d.chat.DeafTo = 0, d.in(quietFor)
		}
		d.say("code_unknown", nil)
		return
	}
	over := !co.Session.Open() || !d.turn.Now.Before(co.Session.ExpiresAt)
	switch {
	case known && (t.State == Paid || t.State == Review):
		d.why = "this chat's money came, or is looked at"
		d.focus(t)
		d.show(t, co)
	case over && !known && slices.ContainsFunc(co.Attempts, d.kin):
		d.moves(co)
	case co.Session.Status == SessionPaid:
		d.why = "somebody paid it"
		d.elsewhere(co)
	case over:
		d.why = "the session is over"
		d.over(co)
	case known:
		d.why = "same code again"
		d.focus(t)
		d.reopen(&t)
		t.Unknown, t.HushTo = 0, 0
		d.show(t, co)
		d.chat = d.chat.put(t)
	default:
		d.opens(co)
	}
}

// moves begins the talk of a session that is over and that the payer had instructions
// of at another number of ours: here they hear of what they paid.
func (d *deciding) moves(co Checkout) {
	d.why = "the session is over, and this payer had it at another number of ours"
	t := Talk{Session: co.Session.ID, State: Closed}
	if own, _ := d.own(co); len(own) > 0 && co.Session.Status == SessionPaid {
		t.State, t.Mine = Paid, true
	}
	d.begins(t, co)
	d.show(t, co)
}

// begins has this chat know a session from now on, and speak of it.
func (d *deciding) begins(t Talk, co Checkout) {
	d.chat = d.chat.put(t)
	d.focus(t)
	d.do(DoWatch, t)
	if d.chat.Lang == "" { // the payer has chosen none
		d.chat.Lang = co.Session.Policy.Lang
	}
}

// opens begins the talk of a session. One that was going on is kept.
func (d *deciding) opens(co Checkout) {
	d.why = "opens a session"
	d.chat.BadCodes, d.chat.Strangers, d.chat.QuietTo = 0, 0, 0 // not by a code that is known: that would pay for guesses
	old, had := d.chat.Talk(d.chat.Focus)
	t := Talk{Session: co.Session.ID, State: Choosing}
	d.begins(t, co)
	if before, seen := d.turn.Checkouts[old.Session]; had && seen && slices.Contains(live, old.State) && before.Session.Open() {
		d.say("parked", kept(about(co), before))
	}
	d.summary(t, co)
}

// reopen goes on with a talk that ended only because nobody said anything.
func (d *deciding) reopen(t *Talk) {
	if t.State != Closed {
		return
	}
	if next, ok := t.move(talkReopen); ok {
		next.Attempt, next.Method = "", ""
		*t = next
	}
}

// stranger answers somebody who has no session: twice, then not for an hour.
func (d *deciding) stranger() {
	d.why = "no session in this chat"
	if d.holds(d.chat.QuietTo, quietFor) {
		return
	}
	d.say("need_code", nil)
	if d.chat.Strangers++; d.chat.Strangers >= maxStrangers {
		d.chat.Strangers, d.chat.QuietTo = 0, d.in(quietFor)
	}
}

// fading warns once, with the first receipt, that the chat forgets.
func (d *deciding) fading() {
	if !d.turn.Fades || d.chat.Fades {
		return
	}
	i := slices.IndexFunc(d.says, func(s Say) bool { return s.Key == "receipt" })
	if i < 0 {
		return
	}
	d.chat.Fades = true
	d.say("fading", map[string]string{"reference": d.says[i].Args["reference"]})
}
