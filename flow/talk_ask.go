package flow

import (
	"slices"
	"time"
)

// claim decides on "I have paid": the bank is asked, the payer never believed.
// It is asked again by itself for as long as a transfer may take.
func (d *deciding) claim(t *Talk, co Checkout, how IntentKind) {
	if len(co.Attempts) == 0 {
		d.why = "says paid, but there is nothing to pay to yet"
		d.say("nothing_yet_choose", d.menuArgs(*t, co))
		return
	}
	d.why = "says paid: the bank is asked"
	t.claims(d.in(pollAfter[0]))
	d.ask(t, ThenBack)
	if how == MeansMedia {
		d.why = "a picture proves nothing: the bank is asked"
		d.say("checking_picture", nil)
		return
	}
	d.say("checking", nil)
}

// claims has the bank asked again by itself, as it says to who paid, from a time on.
func (t *Talk) claims(from int64) { t.Claimed, t.Polled, t.Timers.Poll = true, 0, from }

// saidPaid says whether the bank is asked by itself about what is waited for, for the payer
// said that it is paid.
func (t Talk) saidPaid() bool {
	return t.Claimed && t.Timers.Poll != 0 && slices.Contains(live, t.State)
}

// asksOn decides on who asks on after saying that it is paid: shown what to pay, they would
// pay twice.
func (d *deciding) asksOn(t Talk, co Checkout) {
	d.why = "asks on after saying that it is paid: shown what to pay, they would pay twice"
	d.notYet(t, co)
	d.say("wait_menu", nil)
}

// money decides on "where is my money": the bank is asked, and where it cannot
// know anything a person is.
func (d *deciding) money(t *Talk, co Checkout) {
	if t.State == Review {
		d.why = "asks for money that somebody looks at"
		d.show(*t, co)
		return
	}
	if len(co.Attempts) == 0 {
		d.person("asks for money that we never asked for")
		return
	}
	d.why = "asks where the money is: the bank is asked"
	if t.State != PartPaid { // where a part is here, it may be what is asked for
		t.claims(d.in(pollAfter[0]))
	}
	d.ask(t, ThenMoney)
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
	if d.onlooks(co) {
		return
	}
	if len(co.Attempts) == 0 {
		d.why = "cancelled, nothing was opened"
		d.do(DoCancel, *t)
		return
	}
	d.why = "confirmed: the bank is asked before it is cancelled"
	d.ask(t, ThenCancel)
}

// onlooks tells whoever has the code of a session that others paid a part of that it
// is not for them to cancel, and says whether it is so: that is for those whose money
// it is, and for the merchant.
func (d *deciding) onlooks(co Checkout) bool {
	if own, shared := d.own(co); co.Session.AmountPaid == 0 || !shared || len(own) > 0 {
		return false
	}
	d.why = "wants to cancel what somebody else paid a part of"
	d.say("not_yours", whole(co))
	return true
}

// ask goes to verifying and asks the bank.
func (d *deciding) ask(t *Talk, then Then) {
	next, ok := t.move(talkAsk)
	if !ok {
		return
	}
	next.From, next.Then, next.Waited = t.State, then, false
	*t = next
	d.do(DoCheck, *t)
}

// pollAfter are the waits after a claim at which the bank is asked again.
var pollAfter = [...]time.Duration{time.Minute, 3 * time.Minute, 10 * time.Minute}

// underway says that money is on its way, where it is: whoever is asked to pay all the
// same sends it twice.
func (d *deciding) underway(co Checkout) bool {
	if co.Session.Status != SessionProcessing {
		return false
	}
	d.why += ", and money is on its way"
	d.say("on_the_way", about(co))
	return true
}

// wait decides on a payer who is not ready yet: they hear how much time there is.
func (d *deciding) wait(t Talk, co Checkout) {
	if d.why = "asks for time"; d.underway(co) {
		return
	}
	until := d.until(t, co)
	if !until.After(d.turn.Now) {
		d.show(t, co)
		return
	}
	d.say("no_rush", merge(about(co), map[string]string{"until": Stamp(until)}))
}

// until is when what the payer sees ends, no time where they see nothing to pay by.
func (d *deciding) until(t Talk, co Checkout) time.Time {
	switch a, ok := co.attempt(t.Attempt); {
	case t.State == Choosing, t.State == PickingBank:
		return payableUntil(co)
	case slices.Contains(awaiting, t.State) && ok && a.payable(co.Session, d.turn.Now):
		return a.ExpiresAt
	}
	return time.Time{}
}

// payableUntil is when a session ends, no time where nothing can be chosen to pay it by,
// as while its merchant is stopped.
func payableUntil(co Checkout) time.Time {
	if len(payable(co)) == 0 {
		return time.Time{}
	}
	return co.Session.ExpiresAt
}

// terms decides on a payer who asks whether it may be paid in parts or by somebody
// else, and at what charge: they hear what holds for this payment, by its policy.
// That less may be accepted is the merchant's to say.
func (d *deciding) terms(t Talk, co Checkout) {
	if d.why = "asks what holds for this payment"; d.underway(co) {
		return
	}
	until := d.until(t, co)
	if !until.After(d.turn.Now) {
		until = payableUntil(co)
	}
	if until.IsZero() {
		d.show(t, co)
		return
	}
	args := merge(about(co), map[string]string{"until": Stamp(until)})
	switch co.Session.Policy.Underpayment {
	case "hold":
		args["parts"] = "yes"
	case "refund":
		args["once"] = "yes"
	}
	d.say("terms", args)
}
