package flow

import (
	"slices"
	"strings"
)

// news decides on something that happened to a session outside this chat.
func (d *deciding) news(n News) {
	t, ok := d.chat.talk(d.turn.About)
	if !ok {
		d.why = "this chat does not know the session"
		return
	}
	co := d.turn.Checkouts[t.Session]
	switch n.Kind {
	case NewsOpened:
		d.newsOpened(&t, co, n)
	case NewsRefused:
		d.why = "the bank cannot open a method that this chat does not wait for"
		if waitsFor(t, co, n) {
			d.step(&t, talkRefused, "the bank cannot open this method", func() { d.say("method_down", d.others(co, t.Method)) })
		}
	case NewsSlow:
		if d.why = "the bank takes its time"; waitsFor(t, co, n) {
			d.say("one_moment", nil)
		}
	case NewsPaid:
		d.newsPaid(&t, co, n)
	case NewsPartial:
		d.step(&t, talkPart, "some of the money came", func() { d.show(t, co) })
	case NewsExtra:
		if d.why = "money came after it was paid"; d.mine(co, n) {
			d.say("paid_twice", d.extra(co, n))
		}
	case NewsLate:
		if d.why = "money came after it was closed"; d.mine(co, n) {
			d.step(&t, talkHold, d.why, func() { d.say("paid_late", d.extra(co, n)) })
		}
	case NewsDeclined:
		if d.why = "the bank refused a payment that this chat does not wait for"; t.Attempt == n.Attempt {
			d.step(&t, talkDecline, "the bank refused the payment", func() {
				d.say("declined", merge(d.menuArgs(co), map[string]string{"reason": strings.TrimRight(n.Reason, ". ")}))
			})
		}
	case NewsNothing:
		d.nothing(&t, co)
	case NewsBankDown:
		d.bankDown(&t, co)
	case NewsLapsed:
		d.why = "instructions are over that this chat does not wait for"
		if t.Attempt == n.Attempt || waitsFor(t, co, n) && !slices.ContainsFunc(co.Attempts, func(a Attempt) bool { return a.Method == t.Method && a.Status == AttemptActive }) {
			d.step(&t, talkLapse, "the instructions are over", func() { d.say("lapsed", d.menuArgs(co)) })
		}
	case NewsClosed:
		if d.why = "the session expired, and money of it is looked at"; t.State == Review {
			break
		}
		waiting := slices.Contains(awaiting, t.State) || t.State == Opening || t.State == Verifying || t.State == PartPaid
		d.step(&t, talkClose, "the session expired", func() {
			if waiting {
				d.say("session_over", about(co))
			}
		})
	case NewsCancelled:
		d.step(&t, talkClose, "the session was cancelled", func() { d.say("cancelled", about(co)) })
	case NewsStopped:
		d.why = "another method was asked for elsewhere"
	}
	d.chat = d.chat.put(t)
}

// step moves a talk, and speaks only where the table allows the move.
func (d *deciding) step(t *Talk, trigger, why string, speak func()) {
	next, ok := t.move(trigger)
	if !ok {
		d.why = why + " (nothing to say: " + string(t.State) + ")"
		return
	}
	next.From, next.Then, next.Unknown, next.ConfirmTo = "", ThenBack, 0, 0
	*t = next
	d.why = why
	speak()
}

func (d *deciding) newsOpened(t *Talk, co Checkout, n News) {
	a, ok := co.attempt(n.Attempt)
	if !ok || t.State != Opening || a.Method != t.Method {
		d.why = "instructions came that this chat did not ask for"
		return
	}
	if _, found := a.Instructions.Dial(t.Bank); a.Method == USSD && !found {
		d.step(t, talkRefused, "the payer's bank cannot dial it", func() { d.say("method_down", d.menuArgs(co)) })
		return
	}
	t.Attempt = a.ID
	d.step(t, opened(a.Method), "the instructions are there", func() { d.details(*t, co) })
}

// mine says whether news of money is this chat's: not when another chat's
// attempt was credited. Whoever else opened the session learns nothing of it.
func (d *deciding) mine(co Checkout, n News) bool {
	a, _ := co.attempt(n.Attempt)
	return a.Chat == "" || a.Chat == d.chat.ID
}

// waitsFor says whether a talk waits for the instructions that news is about.
// News of no attempt is of a method that could not even be begun.
func waitsFor(t Talk, co Checkout, n News) bool {
	a, ok := co.attempt(n.Attempt)
	return t.State == Opening && (n.Attempt == "" || ok && a.Method == t.Method)
}

// newsPaid gives the receipt to the chat whose attempt was credited; other
// chats of the session only hear that it is done.
func (d *deciding) newsPaid(t *Talk, co Checkout, n News) {
	d.step(t, talkPay, "the bank confirmed the payment", func() {
		if !d.mine(co, n) {
			d.say("paid_elsewhere", nil)
			return
		}
		args := d.receipt(co, n.Payment)
		d.say("receipt", args)
		if n.Extra > 0 {
			d.say("paid_over", merge(about(co), map[string]string{"extra": n.Extra.Naira()}))
		}
	})
}

// nothing goes on with what the payer wanted, now that the bank knows of no
// money.
func (d *deciding) nothing(t *Talk, co Checkout) {
	if t.State != Verifying {
		d.why = "the bank knows of no money; nobody waits for that"
		return
	}
	from, then := t.From, t.Then
	d.why = "the bank knows of no money"
	switch then {
	case ThenBack:
		d.step(t, back(from), d.why, func() { d.say("nothing_yet", about(co)) })
	case ThenChoose:
		d.do(DoSupersede, *t)
		d.step(t, back(Choosing), d.why, func() { d.say("switch", d.menuArgs(co)) })
	case ThenOpen:
		d.do(DoSupersede, *t)
		t.From, t.Then = "", ThenBack
		d.open(t, co, t.Method)
	case ThenCancel:
		d.step(t, back(from), d.why, func() { d.do(DoCancel, *t) })
	}
}

// bankDown says that the bank does not answer. Nothing is cancelled or switched
// on a guess.
func (d *deciding) bankDown(t *Talk, co Checkout) {
	if d.why = "the bank does not answer"; t.State != Verifying {
		return
	}
	if a, ok := co.attempt(t.Attempt); ok { // ThenOpen named the method that was wished for
		t.Method = a.Method
	}
	d.step(t, back(t.From), d.why, func() { d.say("bank_down", about(co)) })
}

func (d *deciding) extra(co Checkout, n News) map[string]string {
	args := about(co)
	args["reference"] = d.receipt(co, nil)["reference"]
	if n.Payment != nil {
		args["extra"] = n.Payment.Amount.Naira()
	}
	return args
}
