package flow

import (
	"maps"
	"strconv"
)

// show says the step a talk is at, never the beginning.
func (d *deciding) show(t Talk, co Checkout) {
	switch t.State {
	case Choosing:
		d.summary(co)
	case PickingBank:
		args := about(co)
		for i, b := range d.turn.Banks {
			args["bank"+strconv.Itoa(i+1)] = b.Short
		}
		d.say("pick_bank", args)
	case AwaitTransfer, AwaitUSSD, AwaitCard:
		d.details(t, co)
	case PartPaid:
		d.say("part_paid", merge(d.menuArgs(co), map[string]string{"paid": co.Session.AmountPaid.Naira(), "left": co.Session.Outstanding().Naira()}))
	case Lapsed:
		d.say("lapsed", d.menuArgs(co))
	case Review:
		d.say("in_review", about(co))
	case Opening, Verifying:
		d.say("one_moment", nil)
	case Paid:
		d.say("paid_again", d.receipt(co, nil))
	case Closed:
		d.say("session_over", about(co))
	}
}

func (d *deciding) summary(co Checkout) { d.say("summary", d.menuArgs(co)) }

// details are the instructions of the talk's attempt; what must be copied
// stands alone in its own bubble.
func (d *deciding) details(t Talk, co Checkout) {
	a, ok := co.attempt(t.Attempt)
	if !ok || a.Instructions == nil {
		d.say("one_moment", nil)
		return
	}
	if !a.Live(d.turn.Now) { // over, though nobody has swept it yet
		d.say("lapsed", d.menuArgs(co))
		return
	}
	args := about(co)
	args["until"] = Stamp(a.ExpiresAt)
	switch a.Method {
	case BankTransfer:
		args["bank"], args["name"] = a.Instructions.BankName, a.Instructions.AccountName
		d.say("transfer_how", args)
		d.say("alone", map[string]string{"text": a.Instructions.AccountNumber})
	case USSD:
		dial, _ := a.Instructions.Dial(t.Bank) // newsOpened saw that there is one
		args["bank"] = dial.BankName
		d.say("ussd_how", args)
		d.say("alone", map[string]string{"text": dial.USSDCode})
	case Card:
		d.say("card_how", args)
		d.say("alone", map[string]string{"text": a.Instructions.CheckoutURL})
	}
	d.say("wait_menu", nil)
}

// about is what every message about money names: who asks and how much.
func about(co Checkout) map[string]string {
	args := map[string]string{"merchant": co.Session.Merchant, "amount": co.Session.Outstanding().Naira()}
	if co.Session.Outstanding() == 0 {
		args["amount"] = co.Session.Amount.Naira()
	}
	args["order"] = co.Session.Reference
	if co.Session.Description != "" {
		args["order"] = co.Session.Description
	}
	return args
}

// menuArgs are about, and which methods can be chosen ("" hides a line).
func (d *deciding) menuArgs(co Checkout) map[string]string {
	args := about(co)
	for _, o := range co.Offers {
		if o.Status == OfferAvailable || o.Status == OfferActive {
			args[string(o.Method)] = "yes"
		}
	}
	return args
}

// receipt is what a payer keeps.
func (d *deciding) receipt(co Checkout, p *Payment) map[string]string {
	args := map[string]string{"merchant": co.Session.Merchant, "amount": co.Session.Amount.Naira(), "paid_at": Stamp(co.Session.PaidAt)}
	args["reference"] = ShowCode(co.Session.EntryCode)
	if co.Session.Reference != "" {
		args["reference"] = co.Session.Reference
	}
	if args["reference"] == "" {
		args["reference"] = serviceReference(co.Attempts)
	}
	if p != nil {
		args["method"], args["bank_session"] = string(p.Channel), p.NIPSessionID
	}
	return args
}

func merge(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}

// others are the methods that can be chosen, without one that just did not work
// unless it is the only one.
func (d *deciding) others(co Checkout, not Method) map[string]string {
	args := d.menuArgs(co)
	for _, m := range Methods() {
		if m != not && args[string(m)] != "" {
			delete(args, string(not))
			break
		}
	}
	return args
}
