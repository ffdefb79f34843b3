package flow

import (
	"cmp"
	"slices"
	"time"
)

// What a talk does by itself.
const (
	nudgeAfter   = 15 * time.Minute
	remindBefore = 10 * time.Minute
	closeAfter   = 24 * time.Hour
	// maxReminders bounds what a payer is reminded of one session.
	maxReminders = 2
	// lately is how short ago a payer must have written to be reminded at night.
	lately = 30 * time.Minute
)

// night says whether it is between 22:00 and 07:00 in Lagos, when nobody is
// reminded of anything; and when it ends.
func night(at time.Time) (time.Time, bool) {
	local := at.In(Lagos)
	morning := time.Date(local.Year(), local.Month(), local.Day(), 7, 0, 0, 0, Lagos).UTC()
	switch {
	case local.Hour() >= 22:
		return morning.AddDate(0, 0, 1), true
	case local.Hour() < 7:
		return morning, true
	}
	return at, false
}

// next is the earliest of the timers, false for none.
func (t Timers) next() (int64, bool) { return earliest(t.Nudge, t.Remind, t.Poll, t.Close) }

// Due is when a chat does something by itself, false for never.
func (c Chat) Due() (time.Time, bool) {
	all := []int64{c.Desk.Due}
	for _, t := range c.Talks {
		if at, ok := t.Timers.next(); ok {
			all = append(all, at)
		}
	}
	at, ok := earliest(all...)
	return FromMillis(at), ok
}

// Deed is something that a chat does by itself.
type Deed string

// What a chat does by itself.
const (
	DeedNudge  Deed = "nudge"   // asks whether the payer still wants to pay
	DeedRemind Deed = "remind"  // says that the instructions run out
	DeedPoll   Deed = "poll"    // has the bank asked again
	DeedClose  Deed = "close"   // ends the talk
	DeedNobody Deed = "nobody"  // says that no person has come
	DeedReturn Deed = "returns" // gives the chat back to the bot
)

// Ahead is what a chat will do by itself about a session, and when, unless something
// happens before.
func (c Chat) Ahead(id SessionID) map[Deed]time.Time {
	t, _ := c.Talk(id)
	at := map[Deed]int64{DeedNudge: t.Timers.Nudge, DeedRemind: t.Timers.Remind, DeedPoll: t.Timers.Poll, DeedClose: t.Timers.Close}
	about := cmp.Or(c.Desk.About, c.Focus) == id
	if c.Stopped || c.Desk.State != DeskBot && (about || !c.besides()) { // see mayRemind
		at[DeedNudge], at[DeedRemind] = 0, 0
	}
	switch {
	case !about:
	case c.Desk.State == DeskWaiting && !c.Desk.Told && !c.Desk.Over:
		at[DeedNobody] = c.Desk.Due
	case c.besides(): // it answers already
	default:
		at[DeedReturn] = c.Desk.Due
	}
	out := map[Deed]time.Time{}
	for deed, ms := range at {
		if ms != 0 {
			out[deed] = FromMillis(ms)
		}
	}
	return out
}

// earliest is the smallest number that is not 0, false where all are.
func earliest(all ...int64) (int64, bool) {
	all = slices.DeleteFunc(slices.Clone(all), func(at int64) bool { return at == 0 })
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// plan sets the timers of the talks that this turn moved or was about.
func (d *deciding) plan() {
	for i := range d.chat.Talks {
		t := &d.chat.Talks[i]
		before, _ := d.turn.Chat.Talk(t.Session)
		moved := t.State != before.State || t.Attempt != before.Attempt
		if heard := d.turn.Heard != nil && t.Session == d.chat.Focus; !moved && !heard {
			continue
		}
		t.Timers.Nudge, t.Timers.Close = 0, 0
		if moved {
			t.Timers.Remind = 0
		}
		switch t.State {
		case Choosing, PickingBank, Lapsed:
			t.Timers.Close = d.in(closeAfter)
			if t.State != Lapsed && t.Reminded == 0 {
				t.Timers.Nudge = d.in(nudgeAfter)
			}
		case AwaitTransfer, AwaitUSSD, AwaitCard:
			a, ok := d.turn.Checkouts[t.Session].attempt(t.Attempt)
			if at := a.ExpiresAt.Add(-remindBefore); moved && ok && at.After(d.turn.Now) && t.Reminded < maxReminders {
				t.Timers.Remind = at.UnixMilli()
			}
		case Paid, Review, Closed:
			t.Timers = Timers{}
			if moved && t.Session == d.chat.Focus && t.State != Review && d.chat.Flag == notUnderstood {
				d.chat.Flag = ""
			}
		case Opening, Verifying, PartPaid:
		}
	}
}

// timers decides on what is due in a chat, up to the first talk that something is
// said of: a turn is of one session, and what is said of another merchant's is
// nobody's business who reads it. What else is due is due still.
func (d *deciding) timers() {
	d.why = "nothing is due"
	for _, t := range slices.Clone(d.chat.Talks) {
		if at, ok := t.Timers.next(); ok && at <= d.now() {
			d.due(&t, d.turn.Checkouts[t.Session])
			d.chat = d.chat.put(t)
			if len(d.says) > 0 {
				return
			}
		}
	}
	if due := d.chat.Desk.Due; due != 0 && due <= d.now() {
		d.deskTimer()
	}
}

// due decides on the timers of one talk.
func (d *deciding) due(t *Talk, co Checkout) {
	is := func(at *int64) bool {
		if *at == 0 || *at > d.now() {
			return false
		}
		*at = 0
		return true
	}
	if is(&t.Timers.Close) {
		if next, ok := t.move(talkClose); ok {
			*t = next
			d.why = "nobody said anything for a day"
		}
		t.Timers = Timers{}
		return
	}
	if is(&t.Timers.Poll) {
		d.why = "the bank is asked again, after the payer's word"
		d.do(DoCheck, *t)
		if t.Polled++; t.Polled < len(pollAfter) {
			t.Timers.Poll = d.in(pollAfter[t.Polled] - pollAfter[t.Polled-1])
		}
	}
	if is(&t.Timers.Nudge) {
		d.nudge(t, co)
	}
	if is(&t.Timers.Remind) {
		d.remind(t, co)
	}
}

// mayRemind says whether a payer may be reminded now, and why not.
func (d *deciding) mayRemind(t *Talk, co Checkout) bool {
	_, dark := night(d.turn.Now)
	switch {
	case d.chat.Stopped:
		d.why = "no reminder: the payer said STOP"
	case d.chat.Desk.State != DeskBot && (!d.chat.besides() || t.Session == d.chat.Desk.About):
		d.why = "no reminder: a person has the chat, or is waited for"
	case t.Reminded >= maxReminders:
		d.why = "no reminder: there were enough"
	case !co.Session.Open() || !d.turn.Now.Before(co.Session.ExpiresAt):
		d.why = "no reminder: the session is over"
	case co.Session.Status == SessionProcessing:
		d.why = "no reminder: money is on its way"
	case dark && d.asleep():
		d.why = "no reminder at night"
	default:
		return true
	}
	return false
}

// asleep says whether a payer has not written lately, nor by a clock that was set back since.
func (d *deciding) asleep() bool {
	apart := d.now() - d.chat.Wrote
	return max(apart, -apart) > lately.Milliseconds()
}

// nudge asks once whether somebody who chose nothing still wants to pay.
func (d *deciding) nudge(t *Talk, co Checkout) {
	if t.State != Choosing && t.State != PickingBank {
		return
	}
	if focus, ok := d.chat.Talk(d.chat.Focus); ok && t.Session != d.chat.Focus && slices.Contains(live, focus.State) {
		d.why = "no reminder: the payer is at another payment"
		return
	}
	if len(payable(co)) == 0 {
		d.why = "no reminder: it cannot be paid now"
		return
	}
	if !d.mayRemind(t, co) {
		if morning, dark := night(d.turn.Now); dark && !d.chat.Stopped && morning.Before(co.Session.ExpiresAt) && d.asleep() {
			t.Timers.Nudge = morning.UnixMilli()
		}
		return
	}
	d.why = "nothing was chosen for a while"
	t.Reminded++
	d.attend(*t, len(d.says))
	d.say("nudge", d.menuArgs(*t, co))
}

// remind tells once that the instructions are nearly over, and shows again what
// must be copied.
func (d *deciding) remind(t *Talk, co Checkout) {
	a, ok := co.attempt(t.Attempt)
	if !ok || !slices.Contains(awaiting, t.State) || !a.payable(co.Session, d.turn.Now) || !d.mayRemind(t, co) {
		return
	}
	d.why = "the instructions are nearly over"
	t.Reminded++
	args := about(co)
	args["until"] = Stamp(a.ExpiresAt)
	d.attend(*t, len(d.says))
	d.say("reminder", args)
	if text := a.alone(t.Bank); text != "" {
		d.say("alone", map[string]string{"text": text})
	}
}
