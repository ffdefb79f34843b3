package flow

import (
	"maps"
	"slices"
)

// notUnderstood is why support should look at a chat, until its payment is done.
const notUnderstood = "is not understood"

// maxBankLists is how often the banks are listed for a bank that is not among
// them, before a transfer is offered instead.
const maxBankLists = 1

// focused decides on what a payer says to the talk in focus.
func (d *deciding) focused(t Talk, in Intent, confirming bool) {
	co := d.turn.Checkouts[t.Session]
	if in.Kind != MeansNothing && in.Kind != MeansAbuse {
		t.Unknown, t.HushTo = 0, 0
	}
	over := !d.turn.Now.Before(co.Session.ExpiresAt)
	switch {
	case in.Kind == MeansBack:
		d.back(t, co)
		return
	case t.State == Paid:
		d.paid(&t, co, in)
	case t.State == Closed && co.Session.Status == SessionPaid:
		d.why = "somebody else paid it"
		d.elsewhere(co)
	case t.State == Closed && (!co.Session.Open() || over):
		d.closed(t, co, in)
	case t.State != Review && over && co.Session.Status == SessionProcessing:
		d.why = "the session is over, and money is on its way to it"
		d.say("on_the_way", about(co))
	case t.State != Review && over:
		d.why = "the session is over, though nobody has swept it yet"
		d.over(co)
	case t.State == Opening || t.State == Verifying:
		d.hold(&t, co, in)
	case in.Kind == MeansConfirm && confirming:
		d.confirmed(&t, co)
	default:
		if confirming && (in.Kind == MeansYes || in.Kind == MeansPaid && in.Guess) { // "yes" or "confirm": the very word is asked for again
			in = Intent{Kind: MeansCancel}
		}
		d.reopen(&t)
		if a, ok := co.attempt(t.Attempt); ok && slices.Contains(awaiting, t.State) && !a.payable(co.Session, d.turn.Now) {
			t, _ = t.move(talkLapse) // nobody has swept it yet
		}
		d.wish(&t, co, in)
	}
	d.chat = d.chat.put(t)
}

// closed decides on what a payer says to a session that is closed: money may have
// been under way to it, and who misses some is not left alone with that.
func (d *deciding) closed(t Talk, co Checkout, in Intent) {
	went := func(p Payment) bool { return p.SentBack() > 0 && d.mine(co, News{Attempt: p.Attempt}) }
	if d.why = "already closed"; in.Kind == MeansThanks && slices.ContainsFunc(co.Payments, went) { // for what went back
		d.say("welcome", nil)
		return
	}
	d.over(co)
	if !slices.Contains([]IntentKind{MeansPaid, MeansMedia, MeansMoney}, in.Kind) {
		return
	}
	if len(co.Attempts) > 0 {
		d.why = "already closed: the bank is asked once more"
		d.do(DoCheck, t)
	}
	if in.Kind == MeansMoney {
		d.person(d.why + ", and a person for the money that is missed")
	}
}

// hold keeps what a payer says while a bank is asked: the last of it is decided
// on when the answer is there. A question what holds takes the place of nothing else, and
// where there was nothing to pay to yet who says "done" or "waiting" waits for that.
func (d *deciding) hold(t *Talk, co Checkout, in Intent) {
	d.why = "an answer of the bank is on its way: decided on afterwards"
	first := t.State == Opening && !slices.ContainsFunc(co.Attempts, func(a Attempt) bool { return a.Instructions != nil })
	answered := slices.Contains([]IntentKind{MeansMenu, MeansAgain, MeansThanks, MeansWait, MeansAbuse, MeansYes, MeansNo}, in.Kind)
	if keep := in; !answered && (!first || in.Kind != MeansPaid) && (in.Kind != MeansTerms || t.Held == nil) {
		keep.Text = ""
		t.Held = &keep
	}
	if !t.Waited {
		t.Waited = true
		d.say("one_moment", nil)
	}
}

// held decides on what was said while a bank was asked.
func (d *deciding) held(t Talk) {
	if t.Held == nil || t.State == Opening || t.State == Verifying {
		return
	}
	in := *t.Held
	t.Held = nil
	d.chat = d.chat.put(t)
	same := in.Kind == MeansMethod && in.Method == t.Method || in.Kind == MeansBank && in.Bank == t.Bank
	asked, _ := d.turn.Chat.Talk(t.Session)
	claims, confirms := in.Kind == MeansPaid || in.Kind == MeansMedia, in.Kind == MeansConfirm
	// A claim is not answered where a method was opened: what was paid may be by the one before.
	answered := asked.State == Verifying && (claims || confirms && asked.Then == ThenCancel)
	if same || answered || in.Kind == MeansNothing || t.State == Paid || t.State == Closed {
		return // it was a double tap, or the answer answers it
	}
	why, before := d.why, len(d.says)
	d.focused(t, in, false)
	told := d.says[:before:before]
	d.says = append(told, slices.DeleteFunc(d.says[before:], func(s Say) bool { // what the bank's answer said is not said again
		return slices.ContainsFunc(told, func(o Say) bool { return o.Key == s.Key && maps.Equal(o.Args, s.Args) })
	})...)
	d.why = why + "; then what was said meanwhile: " + d.why
}

// paid decides on what a payer says when all is paid.
func (d *deciding) paid(t *Talk, co Checkout, in Intent) {
	d.why = "already paid"
	switch {
	case in.Kind == MeansReceipt:
		d.say("receipt", d.receipt(co))
		d.whereabouts(co)
	case in.Kind == MeansThanks:
		d.say("welcome", nil)
	case in.Kind == MeansWho:
		d.who(co)
	case in.Kind == MeansMoney:
		d.say("money_paid", d.receipt(co))
		d.whereabouts(co)
	case slices.Contains([]IntentKind{MeansMethod, MeansMaybe, MeansBank, MeansMenu, MeansOther, MeansTerms}, in.Kind): // as who wants to pay again
		d.paidAlready(co, true)
	case slices.Contains([]IntentKind{MeansNothing, MeansAbuse, MeansUnread}, in.Kind) && d.ladder(t) > maxUnknown:
	default:
		d.show(*t, co)
	}
}

// back goes to the payment that was spoken of before this one: one that can still
// come to something, or else one that is paid.
func (d *deciding) back(t Talk, co Checkout) {
	parked, ok := d.chat.parked()
	if !ok {
		parked, ok = d.chat.settled()
	}
	if !ok {
		d.why = "there is no payment before this one"
		d.show(t, co)
		return
	}
	d.why = "back to the payment before this one"
	d.focus(parked)
	d.show(parked, d.turn.Checkouts[parked.Session])
}

// who says who writes here.
func (d *deciding) who(co Checkout) {
	d.why = "asks who this is"
	d.say("who", about(co))
}

// wish decides on what a payer wants of a talk that is not waiting for a bank.
func (d *deciding) wish(t *Talk, co Checkout, in Intent) {
	if t.State == Review && slices.Contains([]IntentKind{MeansMethod, MeansMaybe, MeansBank, MeansAgain, MeansOther, MeansMenu, MeansWait, MeansTerms, MeansCancel, MeansConfirm}, in.Kind) {
		d.why = "somebody looks at the money"
		d.show(*t, co)
		return
	}
	switch in.Kind {
	case MeansMethod:
		d.choose(t, co, in.Method)
	case MeansMaybe:
		d.maybe(t, co, in.Method)
	case MeansBank:
		d.bank(t, co, in)
	case MeansPaid, MeansMedia:
		d.claim(t, co, in.Kind)
	case MeansMoney:
		d.money(t, co)
	case MeansReceipt:
		d.receiptOf(t, co)
	case MeansAgain, MeansMenu, MeansYes, MeansNo, MeansResume:
		d.why = "show it again"
		if under := in.Kind != MeansAgain && d.underway(co); in.Kind == MeansMenu && !under && t.saidPaid() {
			d.asksOn(*t, co)
			return
		}
		d.show(*t, co)
	case MeansOther:
		d.other(t, co)
	case MeansCancel, MeansConfirm:
		if d.onlooks(co) {
			return
		}
		d.why = "asks to cancel"
		t.ConfirmTo = d.in(CancelConfirm)
		if len(co.Attempts) > 0 {
			d.do(DoCheck, *t)
		}
		d.say("cancel_confirm", whole(co))
	case MeansWho:
		d.who(co)
	case MeansThanks:
		d.why = "is polite"
		d.say("welcome", nil)
	case MeansWait:
		d.wait(*t, co)
	case MeansTerms:
		if in.Guess && co.Session.Status != SessionProcessing && t.saidPaid() {
			d.asksOn(*t, co)
			return
		}
		d.terms(*t, co)
	case MeansUnread:
		d.unread(t, co)
	case MeansNothing, MeansAbuse,
		MeansStop, MeansSecret, MeansCode, MeansHuman, MeansLanguage, MeansBack, MeansCall, MeansNote, MeansTakeover: // decided on before a talk is asked
		d.unknown(t, co)
	}
}

// receiptOf decides on a payer who wants a receipt while this payment is not paid:
// it is that of the one before, or they say that they have paid.
func (d *deciding) receiptOf(t *Talk, co Checkout) {
	before, ok := d.chat.settled()
	switch paid := d.turn.Checkouts[before.Session]; {
	case ok:
		d.why = "the receipt of the payment before this one"
		d.say("receipt", d.receipt(paid))
		d.whereabouts(paid)
	case t.State == Lapsed || slices.Contains(awaiting, t.State):
		d.claim(t, co, MeansPaid)
	default:
		d.why = "show it again"
		d.show(*t, co)
	}
}

// choose decides on a method. The same one again only shows its details again.
func (d *deciding) choose(t *Talk, co Checkout, m Method) {
	if slices.Contains(awaiting, t.State) && t.Method == m {
		d.why = "chose the same method again"
		d.show(*t, co)
		return
	}
	if !slices.Contains(payable(co), m) { // one that just did not work may be tried again by whoever insists
		d.why = "this method cannot pay it"
		d.say("method_unavailable", d.menuArgs(*t, co))
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

// maybe asks whether a method was meant: a guess opens nothing.
func (d *deciding) maybe(t *Talk, co Checkout, m Method) {
	if !slices.Contains(payable(co), m) {
		d.unknown(t, co)
		return
	}
	d.why = "did you mean " + string(m)
	t.Guess = m
	d.say("did_you_mean", merge(about(co), map[string]string{"guess": string(m), string(m): "yes"}))
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
	next.Method, next.Attempt, next.Bank, next.Waited, next.Claimed = m, "", "", false, false
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
func (d *deciding) bank(t *Talk, co Checkout, in Intent) {
	code := in.Bank
	if t.State == AwaitUSSD && t.Bank == code {
		d.why = "chose the same bank again"
		d.show(*t, co)
		return
	}
	if a, ok := co.attempt(t.Attempt); ok && t.State == AwaitUSSD {
		if _, served := a.Instructions.Dial(code); served { // the rail gave the codes of all its banks
			d.why = "chose another bank"
			t.Bank = code
			d.show(*t, co)
			return
		}
	}
	listed := slices.ContainsFunc(d.turn.Banks, func(b Bank) bool { return b.Code == code })
	if slices.Contains([]TalkState{Choosing, PartPaid, Lapsed}, t.State) && (in.Named || t.Method == USSD) { // "I use GTBank": by transfer, most likely, or by what it was named for before
		likely := BankTransfer
		if t.Method == USSD {
			likely = USSD
		}
		d.maybe(t, co, likely)
		return
	}
	if t.State != PickingBank || !listed {
		d.unknown(t, co)
		return
	}
	next, ok := t.move(talkOpen)
	if !ok {
		return
	}
	next.Bank, next.Method, next.Waited = code, USSD, false
	*t = next
	d.why = "chose the bank " + code
	d.do(DoOpen, *t)
}

// unread answers what is not text, now and then.
func (d *deciding) unread(t *Talk, co Checkout) {
	d.why = "cannot be read, and that was said a moment ago"
	if d.holds(d.chat.UnreadTo, unreadFor) {
		return
	}
	d.why = "only text can be read"
	d.chat.UnreadTo = d.in(unreadFor)
	d.say("only_text", nil)
	if slices.Contains(awaiting, t.State) { // the details stand above
		d.say("wait_menu", nil)
		return
	}
	d.show(*t, co)
}

// ladder counts what was not understood in a row. After the third time it is
// not answered for a while, and support should have a look.
func (d *deciding) ladder(t *Talk) int {
	if t.HushTo != 0 && !d.holds(t.HushTo, hushFor) {
		t.Unknown, t.HushTo = 0, 0
	}
	if t.Unknown++; t.Unknown == maxUnknown+1 {
		t.HushTo = d.turn.Now.Add(hushFor).UnixMilli()
		d.mark(notUnderstood)
		d.why += ": not understood three times, somebody should look"
	} else if t.Unknown > maxUnknown {
		d.why += ": not understood, and said so already"
	}
	return t.Unknown
}

// unknown answers what was not understood: with what would be, then shorter,
// then not at all. Whoever says that they have paid and is not understood
// twice wants a person.
func (d *deciding) unknown(t *Talk, co Checkout) {
	d.why = "not understood"
	n := d.ladder(t)
	switch {
	case n > maxUnknown:
	case n == maxUnknown && t.Claimed && (d.chat.Desk.State == DeskBot || d.chat.NobodyCame()):
		d.person("not understood twice after saying that it is paid")
	case t.State == PickingBank && n <= maxBankLists:
		d.show(*t, co)
	case t.State == PickingBank:
		d.say("bank_not_listed", d.menuArgs(*t, co))
	case t.State == Review:
		d.show(*t, co)
	case n == maxUnknown:
		d.say("not_understood_again", about(co))
	case slices.Contains(awaiting, t.State) || t.State == PartPaid:
		d.say("not_understood_wait", about(co))
	default:
		d.say("not_understood_choose", d.menuArgs(*t, co))
	}
}
