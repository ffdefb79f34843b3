package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Desk says who answers in a chat: the bot, or a person. It lies over the talks
// of the chat: they go on observing their money, whoever speaks.
type Desk struct {
	State DeskState `json:"state,omitempty"`
	By    string    `json:"by,omitempty"`    // the agent who has it
	Since int64     `json:"since,omitempty"` // ms
	Due   int64     `json:"due,omitempty"`   // ms: when something must happen by itself
	Told  bool      `json:"told,omitempty"`  // that nobody has come yet
	Over  bool      `json:"over,omitempty"`  // it was given back: the bot goes on at Due
	Owed  bool      `json:"owed,omitempty"`  // the payer wrote, and the person who has it has not answered
	About SessionID `json:"about,omitempty"` // what a person is waited for about, "" for what is in focus
}

// DeskState is who answers.
type DeskState string

// The states of a desk.
const (
	DeskBot     DeskState = ""
	DeskWaiting DeskState = "waiting" // a person was asked for, and none has come
	DeskClaimed DeskState = "claimed" // an agent has the chat
	DeskDevice  DeskState = "device"  // somebody types on the phone of our number
)

// The bounds of a hand-off.
const (
	// DeskPatience is within what time a person should answer.
	DeskPatience = 30 * time.Minute
	// DeskIdle is how long no person may answer before the bot has the chat again.
	DeskIdle = 2 * time.Hour
)

// NobodyComes marks a chat in which a person was waited for in vain for so long, and is
// waited for still while its payer speaks of another payment.
const NobodyComes = "nobody came in two hours"

// nobodyYet marks a chat in which nobody has come within DeskPatience.
const nobodyYet = "nobody has come"

// ErrDesk says that a chat is not an agent's to claim, answer or give back.
var ErrDesk = errors.New("this chat is not yours")

// Unanswered is since when the payer waits for an answer of the person who has the chat,
// zero where they do not: what nobody answered makes it the bot's again at Due.
func (d Desk) Unanswered() time.Time {
	since := d.Due - DeskIdle.Milliseconds()
	if !d.Over && (d.Owed || d.State == DeskClaimed && since == d.Since) {
		return time.UnixMilli(since)
	}
	return time.Time{}
}

// May is whether an agent may do something in a chat, which the bot or another
// agent can have. Errors: ErrDesk.
func (d Desk) May(kind NewsKind, agent string) error {
	theirs := d.State == DeskClaimed && d.By == agent
	switch {
	case d.Over && kind != NewsReleased: // a reply would keep it from the bot for two hours more
		return fmt.Errorf("%w: it was given back: claim it once the server has given it to the bot", ErrDesk)
	case kind == NewsClaimed && (d.State != DeskClaimed || theirs), theirs:
		return nil
	case d.State == DeskClaimed:
		return fmt.Errorf("%w: %s has it, who can release it", ErrDesk, d.By)
	}
	return fmt.Errorf("%w: claim it first", ErrDesk)
}

// move is the desk after a trigger, false where its state does not know it.
func (d Desk) move(trigger string, now time.Time) (Desk, bool) {
	from := string(d.State)
	if d.State == DeskBot {
		from = deskBot
	}
	to, err := move(deskTable, from, trigger)
	if err != nil {
		return d, false
	}
	if to == deskBot {
		return Desk{}, true
	}
	due := now.Add(DeskIdle)
	if DeskState(to) == DeskWaiting {
		due = now.Add(DeskPatience)
	}
	return Desk{State: DeskState(to), Since: now.UnixMilli(), Due: due.UnixMilli()}, true
}

// atDesk decides on what a payer writes while a person has the chat, or is
// waited for: it is kept for the person, and nobody talks over them. Whoever
// only waits may go back to the bot, and goes on paying meanwhile. A language by
// its name is what the bot speaks from then on, also where it says so to nobody.
func (d *deciding) atDesk(t Talk, in Intent, confirming bool) {
	if d.chat.Desk.State != DeskWaiting {
		if d.why = "kept: the bot has this chat in a moment"; !d.chat.Desk.Over { // else it is about to go on, and shows where things stand
			d.why = "kept for the person who has this chat"
			if !d.chat.Desk.Owed { // a payer who asks again and again does not keep the bot away
				d.chat.Desk.Owed, d.chat.Desk.Due = true, d.turn.Now.Add(DeskIdle).UnixMilli()
			}
		}
		if in.Kind == MeansLanguage && in.Named { // a digit, or "broken", may be an answer to the person
			d.chat.Lang = in.Lang
			d.why += " (chose the language " + string(in.Lang) + ")"
		}
		return
	}
	if d.chat.Desk.Due == 0 { // the payer is back at what nobody came for
		d.chat.Desk.Due, d.chat.Flag = d.in(DeskIdle), nobodyYet
	}
	switch d.why = "kept for the person who is waited for"; {
	case in.Kind == MeansAgain: // not at a mere greeting
		d.release("goes back to the bot")
	case in.Kind == MeansLanguage: // who reads no English may be waiting for that
		d.language(in.Lang)
	case t.Session == "":
	case slices.Contains(whileWaiting, in.Kind), in.Kind == MeansTerms && !in.Guess, in.Kind == MeansBank && (t.State == PickingBank || t.State == AwaitUSSD):
		d.focused(t, in, confirming)
		d.why += " (a person is waited for)"
	}
}

// whileWaiting is what the bot still answers to somebody who waits for a person: how
// to pay, also another payment, and whether the money is there.
var whileWaiting = []IntentKind{MeansMethod, MeansPaid, MeansMedia, MeansMoney, MeansOther, MeansCancel, MeansConfirm, MeansReceipt, MeansBack}

// besides says whether a person is waited for about another payment than the one that
// is spoken of: about this one the bot answers.
func (c Chat) besides() bool {
	return c.Desk.State == DeskWaiting && c.Desk.About != "" && c.Desk.About != c.Focus
}

// NobodyCame says whether two hours were in vain in which a person was waited for about
// another payment than the one that is spoken of: about this one somebody may come now.
func (c Chat) NobodyCame() bool { return c.besides() && c.Desk.Due == 0 }

// mark says why somebody should look at a chat. It is told of no payment but the one that
// nobody came for.
func (d *deciding) mark(why string) {
	if !d.chat.NobodyCame() {
		d.chat.Flag = why
	}
}

// person asks for a person, and says that one will come. One at a time has a chat: whom it was
// asked for about another payment before hears that nobody comes for that one any more.
func (d *deciding) person(why string) {
	before, had := d.turn.Checkouts[d.chat.Desk.About]
	had = had && d.chat.besides()
	if d.call(why, d.chat.Focus) {
		args := map[string]string{}
		if had {
			args["kept_merchant"], args["kept_amount"] = before.Session.Merchant, about(before)["amount"]
		}
		t, ok := d.chat.Talk(d.chat.Focus)
		co := d.turn.Checkouts[t.Session]
		if ok && slices.Contains(live, t.State) && co.Session.Status == SessionPending && len(payable(co)) > 0 { // not while their merchant is stopped
			args["open"] = "yes"
		}
		d.say("human", args)
	}
}

// call asks for a person about a session, and says whether none was there or on the way.
func (d *deciding) call(why string, about SessionID) bool {
	if d.chat.besides() && (about == d.chat.Focus || d.chat.NobodyCame()) { // one person at a time has a chat: asked anew, or nobody came
		d.chat.Desk, d.chat.Flag = Desk{}, "" // which told of the one before
	}
	next, ok := d.chat.Desk.move(deskCall, d.turn.Now)
	if !ok {
		d.why = why + " (a person is there or on the way)"
		return false
	}
	if about != d.chat.Focus {
		next.About = about
	}
	d.chat.Desk, d.why = next, why
	return true
}

// release gives the chat back to the bot, which shows where things stand.
func (d *deciding) release(why string) {
	next, ok := d.chat.Desk.move(deskRelease, d.turn.Now)
	if !ok {
		d.why = why + " (the bot has it already)"
		return
	}
	if d.chat.Desk.Over {
		d.answered()
	}
	d.chat.Desk, d.why = next, why
	d.say("back_again", nil)
	if t, ok := d.chat.Talk(d.chat.Focus); ok {
		d.show(t, d.turn.Checkouts[t.Session])
	}
}

// answered lets a payer pay again what the bank took back: a person wrote to them, or gave
// the chat back.
func (d *deciding) answered() {
	t, _ := d.chat.Talk(d.chat.Focus)
	co := d.turn.Checkouts[t.Session]
	if t.State == Review && d.missing(co) > 0 && co.Session.Status == SessionPending && d.turn.Now.Before(co.Session.ExpiresAt) {
		t, _ = t.move(talkReopen)
		t.Attempt, t.Method = "", ""
		d.chat = d.chat.put(t)
	}
}

// leaves gives the chat back to the bot where an agent has it and the payer goes to
// another merchant's payment: that one is not the agent's to speak of.
func (d *deciding) leaves(to SessionID) {
	if d.chat.Desk.State == DeskClaimed && d.anothers(to) {
		d.chat.Desk, d.left = d.chat.Desk.move(deskRelease, d.turn.Now)
	}
}

// anothers says whether a session is of another merchant than the one in focus.
func (d *deciding) anothers(to SessionID) bool {
	from, before := d.turn.Checkouts[d.chat.Focus]
	next, after := d.turn.Checkouts[to]
	return before && after && from.Session.Project != next.Session.Project
}

// takeover decides on a message that somebody typed on the phone of our number.
func (d *deciding) takeover() {
	if next, ok := d.chat.Desk.move(deskType, d.turn.Now); ok {
		d.chat.Desk = next
	}
	d.answered()
	d.why = "somebody typed on the phone of this number: the bot is silent"
}

// chatNews decides on news that is of the chat itself and of no talk in it.
var chatNews = map[NewsKind]func(*deciding, News){
	NewsTimer: func(d *deciding, _ News) { d.timers() },
	NewsMuted: func(d *deciding, _ News) {
		d.chat.Stopped, d.why = true, "wants no reminders, as said to a number of ours"
	},
	NewsUnmuted: func(d *deciding, _ News) {
		d.chat.Stopped, d.why = false, "wants reminders again, as said to a number of ours"
	},
	NewsClaimed: (*deciding).claimed, NewsReply: (*deciding).replied, NewsReleased: (*deciding).released,
}

func (d *deciding) claimed(n News) {
	next, ok := d.chat.Desk.move(deskClaim, d.turn.Now)
	if d.why = "an agent has this chat already"; !ok {
		return
	}
	if t, ok := d.chat.Talk(cmp.Or(d.turn.About, d.chat.Desk.About)); ok { // the payer may speak of another one meanwhile
		if d.calledAway(t.Session) {
			d.say("person_here", about(d.turn.Checkouts[t.Session]))
		}
		d.focus(t)
	}
	next.By = n.By
	d.chat.Desk, d.chat.Flag, d.why = next, "", n.By+" takes the chat"
}

// calledAway says whether a person who takes the chat for a session takes it from the
// payment of another merchant that its payer is about: what they answer there would be for
// that person, whose it is not, and nobody would go on with it.
func (d *deciding) calledAway(to SessionID) bool {
	t, _ := d.chat.Talk(d.chat.Focus)
	return d.anothers(to) && slices.Contains(live, t.State) && d.turn.Checkouts[t.Session].Session.Open()
}

func (d *deciding) replied(n News) {
	if d.why = "a reply of somebody who does not have this chat"; d.chat.Desk.State != DeskClaimed || d.chat.Desk.By != n.By {
		return
	}
	d.chat.Desk.Owed, d.chat.Desk.Due = false, d.turn.Now.Add(DeskIdle).UnixMilli()
	d.answered()
	d.why = n.By + " answers"
	d.say("agent", map[string]string{"text": n.Reason})
}

// released leaves the chat to whoever serves the environment, because it alone
// knows what can be offered now; an agent may sit at another process.
func (d *deciding) released(n News) {
	if d.why = "the bot has this chat already"; d.chat.Desk.State != DeskBot {
		d.chat.Desk.Due, d.chat.Desk.Over = d.now(), true
		d.why = n.By + " gives the chat back"
	}
}

// deskTimer decides on a hand-off in which no person answered in time.
func (d *deciding) deskTimer() {
	desk := d.chat.Desk
	given := time.UnixMilli(desk.Since).Add(DeskIdle)
	_, dark := night(d.turn.Now)
	hush := d.chat.Stopped || dark && d.asleep()
	switch {
	case desk.State == DeskWaiting && !desk.Told && d.turn.Now.Before(given):
		d.why = "nobody has come: the bot offers itself"
		d.chat.Desk.Told = true
		d.chat.Desk.Due = given.UnixMilli()
		d.chat.Flag = nobodyYet
		if !hush {
			d.say("still_waiting", nil)
		}
	case desk.Over:
		d.release("it was given back")
	case d.chat.besides(): // the bot answers already, and whoever is waited for may still come
		d.why = "nobody has come, and the payer speaks of another payment"
		d.chat.Desk.Due, d.chat.Flag = 0, NobodyComes
	case hush: // nobody waits for the bot to say that it is back
		d.chat.Desk, _ = desk.move(deskRelease, d.turn.Now)
		d.why = "no person answered for two hours: the bot answers again, and says so to nobody who sleeps or said STOP"
	default:
		d.release("no person answered for two hours")
	}
}
