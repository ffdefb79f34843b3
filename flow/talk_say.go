package flow

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// show says the step a talk is at, never the beginning.
func (d *deciding) show(t Talk, co Checkout) {
	if co.Session.Status == SessionProcessing && !d.turn.Now.Before(co.Session.ExpiresAt) && slices.Contains(live, t.State) { // nothing can be begun any more
		d.say("on_the_way", about(co))
		return
	}
	switch t.State {
	case Choosing:
		d.choices(t, co)
	case PickingBank:
		args := about(co)
		for i, b := range d.turn.Banks {
			args["bank"+strconv.Itoa(i+1)] = b.Short
		}
		d.say("pick_bank", args)
	case AwaitTransfer, AwaitUSSD, AwaitCard:
		d.details(t, co)
	case PartPaid:
		d.say("part_paid", merge(d.menuArgs(t, co), d.part(co)))
	case Lapsed:
		d.lapsed(t, co)
	case Review:
		if lost := d.missing(co); lost > 0 { // then the money is not safe, as the other says
			d.reversed(co, lost)
			d.misfits(co)
		} else {
			d.say("in_review", about(co))
			d.whereabouts(co)
		}
	case Opening, Verifying:
		d.say("one_moment", nil)
	case Paid:
		d.paidAlready(co, false)
	case Closed:
		switch {
		case co.Session.Status == SessionPaid:
			d.elsewhere(co)
		case co.Session.Open() && d.turn.Now.Before(co.Session.ExpiresAt):
			d.choices(t, co) // it ended because nobody said anything
		default:
			d.over(co)
		}
	}
}

// paidAlready says that a payment is paid and, where another one of this chat waits, that it
// does: who paid one of two must not take both for done. more says that they want to pay.
func (d *deciding) paidAlready(co Checkout, more bool) {
	args := d.receipt(co)
	if more {
		args["more"] = "yes"
	}
	parked, _ := d.chat.parked()
	if before, seen := d.turn.Checkouts[parked.Session]; seen && slices.Contains(live, parked.State) && before.Session.Open() && d.turn.Now.Before(before.Session.ExpiresAt) {
		args = kept(args, before)
	}
	d.say("paid_again", args)
	d.whereabouts(co)
}

// over says that nothing can be paid any more and, to a chat that knows the session,
// what became of what was, or that it is on its way.
func (d *deciding) over(co Checkout) {
	_, known := d.chat.Talk(co.Session.ID)
	if known && co.Session.Status == SessionProcessing {
		d.say("on_the_way", about(co))
		return
	}
	d.say("session_over", whole(co))
	if known {
		d.whereabouts(co)
	}
}

// elsewhere says that somebody paid and, to a chat that knows the session, what
// became of what its own payer sent too.
func (d *deciding) elsewhere(co Checkout) {
	d.say("paid_elsewhere", nil)
	if _, known := d.chat.Talk(co.Session.ID); known {
		d.whereabouts(co)
	}
}

// reversed says how much the bank took back of what this chat's session was paid with.
func (d *deciding) reversed(co Checkout, amount Kobo) {
	args := about(co)
	args["amount"] = amount.Naira()
	d.say("reversed", args)
}

// part is how much is left of a payment that came in part, and how much of it this
// chat's payer sent: what others did is not told. It says too whether this one still has
// a code or a page for another amount.
func (d *deciding) part(co Checkout) map[string]string {
	args, own := map[string]string{"left": co.Session.Outstanding().Naira()}, co.Session.AmountPaid
	for _, p := range co.Payments {
		if p.Counts() && !d.mine(co, News{Attempt: p.Attempt}) {
			own -= p.Refundable()
		}
	}
	if own > 0 {
		args["paid"] = own.Naira()
	}
	if slices.ContainsFunc(co.Attempts, func(a Attempt) bool { return a.misleads(co.Session, d.turn.Now) && d.mine(co, News{Attempt: a.ID}) }) {
		args["old"] = "yes"
	}
	return args
}

// choices are the ways to pay, to a payer who knows the session: whoever sent a part
// hears of it, and of what is left.
func (d *deciding) choices(t Talk, co Checkout) {
	if part := d.part(co); part["paid"] != "" {
		d.say("part_paid", merge(d.menuArgs(t, co), part))
		return
	}
	d.summary(t, co)
}

func (d *deciding) summary(t Talk, co Checkout) {
	args := d.menuArgs(t, co)
	if brand := co.Session.Policy.Brand; brand != "" {
		args["brand"] = brand
	}
	d.say("summary", args)
}

// lapsed says that the instructions of the talk's attempt have run out or, of a code or
// a page that still takes money and asks for another amount by now, not to use it.
func (d *deciding) lapsed(t Talk, co Checkout) {
	if a, ok := co.attempt(t.Attempt); ok && a.misleads(co.Session, d.turn.Now) {
		d.say("part_paid", merge(d.menuArgs(t, co), d.part(co)))
		return
	}
	d.say("lapsed", d.menuArgs(t, co))
}

// alone is what must be copied of an attempt's instructions, for the payer's
// bank: it stands in a message of its own.
func (a Attempt) alone(bank string) string {
	if a.Instructions == nil {
		return ""
	}
	switch a.Method {
	case BankTransfer:
		return a.Instructions.AccountNumber
	case USSD:
		dial, _ := a.Instructions.Dial(bank) // newsOpened saw that there is one
		return dial.USSDCode
	case Card:
		return a.Instructions.CheckoutURL
	}
	return ""
}

// details are the instructions of the talk's attempt; what must be copied
// stands alone in its own bubble.
func (d *deciding) details(t Talk, co Checkout) {
	a, ok := co.attempt(t.Attempt)
	if !ok || a.Instructions == nil {
		d.say("one_moment", nil)
		return
	}
	if !a.payable(co.Session, d.turn.Now) { // over, though nobody has swept it yet
		d.lapsed(t, co)
		return
	}
	args := about(co)
	args["until"] = Stamp(a.ExpiresAt)
	switch a.Method {
	case BankTransfer:
		args["bank"], args["name"] = a.Instructions.BankName, a.Instructions.AccountName
		d.say("transfer_how", args)
	case USSD:
		dial, _ := a.Instructions.Dial(t.Bank)
		args["bank"] = dial.BankName
		d.say("ussd_how", args)
	case Card:
		d.say("card_how", args)
	}
	d.say("alone", map[string]string{"text": a.alone(t.Bank)})
	if t.Session == d.chat.Focus { // a digit is an answer to the menu of the talk in focus
		d.say("wait_menu", nil)
	}
}

// about is what every message about money names: who asks and how much, or how
// much was paid once it is.
func about(co Checkout) map[string]string {
	args := map[string]string{"merchant": co.Session.Merchant, "amount": co.Session.Outstanding().Naira()}
	if co.Session.Outstanding() == 0 || co.Session.Status == SessionPaid {
		args["amount"] = paidOf(co.Session).Naira()
	}
	args["order"] = co.Session.Reference
	if co.Session.Description != "" {
		args["order"] = co.Session.Description
	}
	return args
}

// whole is about, with all that was asked for: what ends is the payment, and not
// what was left of it.
func whole(co Checkout) map[string]string {
	args := about(co)
	if co.Session.Status != SessionPaid {
		args["amount"] = co.Session.Amount.Naira()
	}
	return args
}

// menuArgs are about, and which methods can be chosen ("" hides a line): not
// one that just did not work, unless it is the only one.
func (d *deciding) menuArgs(t Talk, co Checkout) map[string]string {
	args, open := about(co), payable(co)
	for _, m := range open {
		if m != t.Down || !d.holds(t.DownTo, downFor) || len(open) == 1 {
			args[string(m)] = "yes"
		}
	}
	return args
}

// menus are the messages that end in the menu of methods, and whether they tell
// something besides.
var menus = map[string]bool{
	"summary": false, "method_unavailable": false, "method_down": false, "not_understood_choose": false, "nothing_yet_choose": false,
	"lapsed": true, "declined": true, "switch": true, "part_paid": true,
}

// unpayable says that nothing can be paid now, as when a merchant is stopped,
// where a menu would have no method to choose.
func (d *deciding) unpayable() {
	says := d.says
	d.says = nil
	for _, s := range says {
		tells, menu := menus[s.Key]
		empty := menu && !slices.ContainsFunc(Methods(), func(m Method) bool { return s.Args[string(m)] != "" })
		if !empty || tells {
			d.says = append(d.says, s)
		}
		if empty {
			d.say("not_now", map[string]string{"merchant": s.Args["merchant"], "amount": s.Args["amount"]})
		}
	}
}

// payable are the methods that can pay what is due.
func payable(co Checkout) []Method {
	var out []Method
	for _, o := range co.Offers {
		if o.Status == OfferAvailable || o.Status == OfferActive {
			out = append(out, o.Method)
		}
	}
	return out
}

// own are the payments that a session was paid with and that this chat's payer sent,
// but for those that the bank took back; shared says whether others sent some too,
// which they did also where that was taken back.
func (d *deciding) own(co Checkout) (own []Payment, shared bool) {
	for _, p := range co.Payments {
		switch {
		case !p.CountsFor(co.Session):
		case !d.mine(co, News{Attempt: p.Attempt}):
			shared = true
		case p.Reversed < p.Amount:
			own = append(own, p)
		}
	}
	return own, shared
}

// receipt is what a payer keeps: where others paid some of it, what this one paid.
func (d *deciding) receipt(co Checkout) map[string]string {
	args := map[string]string{"merchant": co.Session.Merchant, "amount": paidOf(co.Session).Naira(), "paid_at": Stamp(co.Session.PaidAt)}
	own, shared := d.own(co)
	if shared && len(own) > 0 {
		var sum Kobo
		for _, p := range own {
			sum += p.Applied
		}
		args["amount"], args["paid_at"] = sum.Naira(), Stamp(own[len(own)-1].PaidAt)
	} else if paidOf(co.Session) < co.Session.Amount {
		args["asked"] = co.Session.Amount.Naira()
	}
	args["reference"] = ShowCode(co.Session.EntryCode)
	if co.Session.Reference != "" {
		args["reference"] = co.Session.Reference
	}
	if args["reference"] == "" {
		args["reference"] = serviceReference(co.Attempts)
	}
	var parts []string
	for _, p := range own {
		parts = append(parts, p.brought(co.Session).Naira())
		args["method"], args["bank_session"] = string(p.Channel), p.NIPSessionID
	}
	if len(parts) > 1 {
		args["parts"] = strings.Join(parts, " + ")
	}
	late := func(p Payment) bool {
		a, ok := co.attempt(p.Attempt)
		return p.Match == Late || ok && co.Session.endedFor(a, p.PaidAt)
	}
	if slices.Contains(co.Session.Exceptions, PaidLate) && slices.ContainsFunc(own, late) { // another's may be what is late, or what was not taken
		args["late"] = "yes"
	}
	return args
}

// paidOf is what a session is paid with, where its merchant took less than was
// asked for; else what it asks for.
func paidOf(s Session) Kobo {
	if s.Status == SessionPaid && s.AmountPaid > 0 {
		return s.AmountPaid
	}
	return s.Amount
}

func merge(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}
