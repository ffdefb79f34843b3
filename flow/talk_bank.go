package flow

// nothing goes on with what the payer wanted, now that the bank knows of no
// money.
func (d *deciding) nothing(t *Talk, co Checkout) {
	if t.State != Verifying {
		d.why = "the bank knows of no money; nobody waits for that"
		return
	}
	from, then := t.From, t.Then
	d.why = "the bank knows of no money"
	if from == Review { // "not here yet" would be wrong: there is money that somebody looks at
		d.step(t, back(from), "the bank knows of no other money", func() { d.show(*t, co) })
		return
	}
	switch then {
	case ThenBack:
		d.step(t, back(from), d.why, func() { d.notYet(*t, co) })
	case ThenMoney:
		d.step(t, back(from), d.why, func() {
			d.say("money_none", d.here(co))
			d.whereabouts(co)
		})
	case ThenChoose:
		d.do(DoSupersede, *t)
		d.step(t, back(Choosing), d.why, func() { d.say("switch", d.menuArgs(*t, co)) })
	case ThenOpen:
		d.do(DoSupersede, *t)
		t.From, t.Then = "", ThenBack
		d.open(t, co, t.Method)
	case ThenCancel:
		d.step(t, back(from), d.why, func() { d.do(DoCancel, *t) })
	}
}

// notYet says that what is claimed is not here, and where what came before it went: whose
// money went back does need to pay again.
func (d *deciding) notYet(t Talk, co Checkout) {
	before := d.says
	d.says = nil
	d.whereabouts(co)
	went := d.says
	if d.says = before; len(went) > 0 {
		d.say("money_none", d.here(co))
	} else {
		args := d.here(co)
		switch { // a card payment is no matter of minutes: whoever left its page waits for nothing
		case t.State == AwaitCard:
			args["card"] = "yes"
		case t.Method != Card:
			args["transfer"] = "yes"
		}
		d.say("nothing_yet", args)
	}
	d.says = append(d.says, went...)
}

// here is about, with how much this chat's payer sent of it that is here: what the bank
// knows nothing of is the rest.
func (d *deciding) here(co Checkout) map[string]string {
	args := about(co)
	if paid := d.part(co)["paid"]; paid != "" {
		args["paid"] = paid
	}
	return args
}

// coming says that the bank knows of money that has not arrived: nothing is
// switched, cancelled or paid again meanwhile.
func (d *deciding) coming(t *Talk, co Checkout) {
	if d.why = "money is on its way; nobody waits for that"; t.State != Verifying {
		return
	}
	wanted := t.Then
	d.unswitched(t, co)
	d.step(t, back(t.From), "money is on its way", func() {
		d.say("on_the_way", about(co))
		d.undone(wanted)
	})
}

// bankDown says that the bank does not answer. Nothing is cancelled or switched
// on a guess.
func (d *deciding) bankDown(t *Talk, co Checkout) {
	if d.why = "the bank does not answer"; t.State != Verifying {
		return
	}
	wanted := t.Then
	d.unswitched(t, co)
	d.step(t, back(t.From), d.why, func() {
		d.say("bank_down", about(co))
		d.undone(wanted)
	})
}

// undone says that what was wanted was not done, and that nobody goes on with it.
func (d *deciding) undone(wanted Then) {
	switch wanted {
	case ThenCancel:
		d.say("not_cancelled", nil)
	case ThenChoose, ThenOpen:
		d.say("not_switched", nil)
	case ThenBack, ThenMoney: // it was only asked
	}
}

// unswitched forgets the method that was wished for: the one whose instructions
// are there still holds.
func (d *deciding) unswitched(t *Talk, co Checkout) {
	if a, ok := co.attempt(t.Attempt); ok { // ThenOpen named the method that was wished for
		t.Method = a.Method
	}
}
