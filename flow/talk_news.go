package flow

import (
	"slices"
	"strings"
	"time"
)

// downFor is how long a method that just did not work is not offered.
const downFor = 10 * time.Minute

// happened decides on something that the payer did not say.
func (d *deciding) happened(n News) {
	if act, found := chatNews[n.Kind]; found {
		act(d, n)
		return
	}
	t, ok := d.chat.Talk(d.turn.About)
	if !ok && !d.forgotten(n) {
		d.why = "this chat does not know the session"
		return
	}
	if !ok { // it made room for others, and its money is told of all the same
		t = Talk{Session: d.turn.About, State: Closed}
	}
	d.news(&t, n)
	d.chat = d.chat.put(t)
	if slices.ContainsFunc(d.says, func(s Say) bool { return slices.Contains(asks, s.Key) }) {
		d.attend(t, 0)
	}
	d.held(t)
}

// forgotten says whether news is of money for instructions of this chat's: that
// is told of even where MaxTalks others came since.
func (d *deciding) forgotten(n News) bool {
	a, ok := d.turn.Checkouts[d.turn.About].attempt(n.Attempt)
	return ok && a.Chat != "" && a.Chat == d.chat.ID && slices.Contains(ofMoney, n.Kind)
}

// ofMoney are the kinds of news that tell of money that came or went.
var ofMoney = []NewsKind{NewsPaid, NewsPartial, NewsExtra, NewsLate, NewsReversed, NewsTooLittle, NewsReturning, NewsRefunded, NewsByHand, NewsBounced, NewsUnsent, NewsKept}

// attend puts a talk that something is asked about by itself into focus: a digit
// is an answer to the menu that was shown last. The one that was in focus is
// kept, and that is said before what stands at a place in what is said.
func (d *deciding) attend(t Talk, at int) {
	if t.Session == d.chat.Focus || d.manned() {
		return
	}
	old, had := d.chat.Talk(d.chat.Focus)
	d.focus(t)
	if before, seen := d.turn.Checkouts[old.Session]; had && seen && slices.Contains(live, old.State) && before.Session.Open() {
		d.says = slices.Insert(d.says, at, Say{Key: "parked", Args: kept(about(d.turn.Checkouts[t.Session]), before)})
	}
}

// kept adds which payment is kept for later.
func kept(args map[string]string, before Checkout) map[string]string {
	was := about(before)
	args["kept_merchant"], args["kept_amount"] = was["merchant"], was["amount"]
	return args
}

// news decides on something that happened to a session outside this chat.
func (d *deciding) news(t *Talk, n News) {
	co := d.turn.Checkouts[t.Session]
	switch n.Kind {
	case NewsOpened:
		d.newsOpened(t, co, n)
	case NewsRefused:
		d.why = "the bank cannot open a method that this chat does not wait for"
		if waitsFor(*t, co, n) {
			if slices.Contains(payable(co), t.Method) { // what is not offered did not fail
				t.Down, t.DownTo = t.Method, d.in(downFor)
			}
			d.step(t, talkRefused, "the bank cannot open this method", func() { d.say("method_down", d.menuArgs(*t, co)) })
		}
	case NewsSlow:
		if d.why = "the bank takes its time"; waitsFor(*t, co, n) && !t.Waited {
			t.Waited = true
			d.say("one_moment", nil)
		}
	case NewsPaid, NewsPartial, NewsExtra, NewsLate, NewsTooLittle, NewsReturning, NewsKept, NewsRefunded, NewsByHand, NewsBounced, NewsUnsent, NewsSentBack, NewsReversed:
		d.newsOfMoney(t, co, n)
	case NewsDeclined:
		d.newsDeclined(t, co, n)
	case NewsNothing:
		d.nothing(t, co)
	case NewsComing:
		d.coming(t, co)
	case NewsBankDown:
		d.bankDown(t, co)
	case NewsLapsed:
		d.why = "instructions are over that this chat does not wait for"
		if t.Attempt == n.Attempt || waitsFor(*t, co, n) && !slices.ContainsFunc(co.Attempts, func(a Attempt) bool { return a.Method == t.Method && a.Status == AttemptActive }) {
			d.step(t, talkLapse, "the instructions are over", func() {
				if !d.chat.Stopped { // whoever pays them now pays all the same
					d.say("lapsed", d.menuArgs(*t, co))
				}
			})
		}
	case NewsClosed, NewsCancelled:
		d.newsEnded(t, co, n.Kind)
	case NewsStopped:
		d.why = "another method was asked for elsewhere"
	case NewsAgain:
		d.why = "a supporter sends once more where it stands"
		if slices.Contains(live, t.State) {
			d.attend(*t, 0)
		}
		d.show(*t, co)
	case NewsTimer, NewsMuted, NewsUnmuted, NewsClaimed, NewsReply, NewsReleased: // not of a talk
	}
}

// newsEnded decides on the end of a session that was not paid. Whoever said nothing
// for a day hears of it only where money of theirs is held.
func (d *deciding) newsEnded(t *Talk, co Checkout, how NewsKind) {
	why, key := "the session expired", "session_over"
	if how == NewsCancelled {
		why, key = "the session was cancelled", "cancelled"
	}
	held, _ := d.heldOf(co)
	waiting := how == NewsCancelled || slices.Contains(awaiting, t.State) || slices.Contains([]TalkState{Opening, Verifying, PartPaid, Review}, t.State)
	speak := func() {
		if waiting || held > 0 {
			d.say(key, whole(co))
		}
		d.waits(co)
	}
	switch {
	case t.State == Review && how == NewsClosed && d.missing(co) == 0:
		d.why = "the session expired, and money of it is looked at"
	case t.State == Closed && held > 0:
		d.why = why + ", and money of it is held"
		speak()
	default:
		d.step(t, talkClose, why, speak)
	}
}

// newsOfMoney decides on money that came or went.
func (d *deciding) newsOfMoney(t *Talk, co Checkout, n News) {
	switch n.Kind {
	case NewsPaid:
		d.newsPaid(t, co, n)
	case NewsPartial:
		if d.why = "some of the money came to what is over, or of somebody else"; !co.Session.Open() || slices.Contains([]TalkState{Review, Closed}, t.State) && !d.mine(co, n) {
			return
		}
		if !d.turn.Now.Before(co.Session.ExpiresAt) { // nobody is asked for the rest: what becomes of the part is told at its end, which comes now
			d.step(t, talkPart, "some of the money came, and the session's time is over", func() {})
			return
		}
		d.step(t, talkPart, "some of the money came", func() {
			t.Claimed = t.Claimed && !d.mine(co, n) // what was said to be paid is here
			d.show(*t, co)
		})
	case NewsExtra:
		if d.why = "money came after it was paid"; d.mine(co, n) {
			d.say("paid_twice", d.extra(co, n)) // who paid first may be somebody else
		}
	case NewsLate:
		if d.why = "money came after it was closed"; d.mine(co, n) {
			d.step(t, talkHold, d.why, func() { d.say("paid_late", d.extra(co, n)) })
		}
	case NewsTooLittle:
		d.tooLittle(t, co, n)
	case NewsReturning:
		d.goesBack(t, co, n)
	case NewsKept:
		if d.why = "the merchant takes money that was set aside"; d.mine(co, n) {
			d.looked(t, co)
			d.say("kept", d.extra(co, n))
		}
	case NewsRefunded, NewsByHand, NewsBounced, NewsUnsent:
		d.wentOut(t, co, n)
	case NewsSentBack:
		if d.why = "the bank returned money by itself"; d.mine(co, n) && slices.Contains(live, t.State) {
			args := merge(about(co), map[string]string{"returned": n.Amount.Naira()})
			if n.Amount != co.Session.Outstanding() {
				args["differs"] = "yes"
			}
			d.say("sent_back", args)
		}
	case NewsReversed:
		d.newsReversed(t, co, n)
	case NewsOpened, NewsRefused, NewsSlow, NewsDeclined, NewsNothing, NewsBankDown, NewsLapsed, NewsClosed, NewsCancelled, NewsStopped,
		NewsComing, NewsTimer, NewsMuted, NewsUnmuted, NewsClaimed, NewsReply, NewsReleased, NewsAgain: // not of money
	}
}

// newsReversed says how much the bank took back. Only where the session counted it a
// person is needed.
func (d *deciding) newsReversed(t *Talk, co Checkout, n News) {
	switch d.why = "the bank took money back"; {
	case !d.mine(co, n):
	case n.Payment != nil && n.Payment.apart():
		d.why += " that the session does not count"
		d.gone(co, n.Payment.Reversed)
		d.cameBack(co, *n.Payment)
	case n.Payment != nil && (n.Payment.spares(co.Session) || n.Payment.owedBack(co.Session)):
		d.why += " that the session is not paid with"
		d.gone(co, n.Amount)
	default:
		d.step(t, talkReverse, d.why, func() {
			d.reversed(co, n.Amount) // says itself that somebody answers, and that nothing is paid until then
			d.call(d.why, t.Session)
		})
	}
}

// newsDeclined shows the menu again to whoever was shown the instructions, and to whoever
// sent a part since and used an older code or page. Why the bank refused is told to the
// chat alone whose they are.
func (d *deciding) newsDeclined(t *Talk, co Checkout, n News) {
	a, ok := co.attempt(n.Attempt)
	speak := func() {
		args := d.menuArgs(*t, co)
		if ok { // what is due may be another amount by now
			args["amount"] = a.Amount.Naira()
		}
		if d.mine(co, n) {
			args["reason"] = strings.TrimRight(n.Reason, ". ")
		}
		d.say("declined", args)
	}
	switch d.why = "the bank refused a payment that this chat does not wait for"; {
	case t.State == PartPaid && (a.Chat == d.chat.ID || d.kin(a)):
		d.why = "the bank refused a payment by an older code or page"
		speak()
	case t.Attempt == n.Attempt:
		d.step(t, talkDecline, "the bank refused the payment", speak)
	}
}

// step moves a talk, and speaks only where the table allows the move.
func (d *deciding) step(t *Talk, trigger, why string, speak func()) {
	next, ok := t.move(trigger)
	if !ok {
		d.why = why + " (nothing to say: " + string(t.State) + ")"
		return
	}
	next.From, next.Then, next.Unknown, next.HushTo, next.ConfirmTo, next.Guess, next.Waited = "", ThenBack, 0, 0, 0, "", false
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
	if a.ofAnother(d.chat.ID) {
		d.why = "another chat's instructions are there: now this one's are asked for"
		d.do(DoOpen, *t)
		return
	}
	if a.Amount != co.Session.Outstanding() {
		d.why = "a part came or went while the bank made the instructions: others are asked for"
		d.do(DoOpen, *t)
		return
	}
	if _, found := a.Instructions.Dial(t.Bank); a.Method == USSD && !found {
		d.step(t, talkRefused, "the payer's bank cannot dial it", func() { d.say("method_down", d.menuArgs(*t, co)) })
		return
	}
	t.Attempt = a.ID
	d.step(t, opened(a.Method), "the instructions are there", func() { d.details(*t, co) })
}

// mine says whether news of money is this chat's payer's: not when another one's
// attempt was credited. Whoever else opened the session learns nothing of it.
func (d *deciding) mine(co Checkout, n News) bool {
	a, _ := co.attempt(n.Attempt)
	return a.Chat == "" || a.Chat == d.chat.ID || d.kin(a)
}

// kin says whether an attempt is of this chat's person at another number of ours,
// which may be gone: what they paid there they are told of here.
func (d *deciding) kin(a Attempt) bool { return slices.Contains(d.turn.Kin, a.Chat) }

// waitsFor says whether a talk waits for the instructions that news is about.
// News of no attempt is of a method that could not even be begun.
func waitsFor(t Talk, co Checkout, n News) bool {
	a, ok := co.attempt(n.Attempt)
	return t.State == Opening && (n.Attempt == "" || ok && a.Method == t.Method)
}

// newsPaid gives the receipt to the chats whose attempts were credited. Another
// chat of the session only hears that it is done, and is over.
func (d *deciding) newsPaid(t *Talk, co Checkout, n News) {
	own, _ := d.own(co)
	if !d.mine(co, n) && len(own) == 0 {
		d.step(t, talkClose, "the bank confirmed a payment of another chat", func() { d.say("paid_elsewhere", nil) })
		return
	}
	d.step(t, talkPay, "the bank confirmed the payment", func() {
		t.Mine, t.Held = true, nil
		d.say("receipt", d.receipt(co))
		if n.Extra > 0 && d.mine(co, n) {
			d.beyond(co, n)
		}
	})
}

// tooLittle says that money goes back because it was not all of it: what was
// asked for still can be paid, unless its session is over meanwhile.
func (d *deciding) tooLittle(t *Talk, co Checkout, n News) {
	d.why = "less came than is wanted, and it goes back"
	switch {
	case !d.mine(co, n):
	case co.Session.Open() && d.turn.Now.Before(co.Session.ExpiresAt) && slices.Contains(live, t.State):
		d.say("too_little", d.extra(co, n))
	default:
		d.say("returning", d.extra(co, n))
	}
}

// goesBack says that set-aside money goes back.
func (d *deciding) goesBack(t *Talk, co Checkout, n News) {
	if d.why = "money that was set aside goes back"; !d.mine(co, n) {
		return
	}
	args := d.extra(co, n)
	if n.Payment != nil && n.Payment.Match == Late {
		args["late"] = "yes"
	}
	d.looked(t, co)
	d.say("returning", args)
}

// looked ends a talk whose money somebody looked at, once nothing of it waits.
func (d *deciding) looked(t *Talk, co Checkout) {
	waits := d.missing(co) > 0 || slices.ContainsFunc(co.Payments, func(p Payment) bool { return p.Waits(co.Session) && !p.ReturnsAt.IsZero() })
	if t.State == Review && !waits {
		d.step(t, talkClose, d.why, func() {})
	}
}

// heldOf is how much this chat sent to a session which is over now, in parts that
// wait for a decision, and until when they do.
func (d *deciding) heldOf(co Checkout) (sum Kobo, by time.Time) {
	for _, p := range co.Payments {
		if p.held() && !p.ReturnsAt.IsZero() && d.mine(co, News{Attempt: p.Attempt}) {
			sum, by = sum+p.Unapplied, p.ReturnsAt
		}
	}
	return sum, by
}

// waits says what becomes of parts that came before their session was over.
func (d *deciding) waits(co Checkout) {
	sum, by := d.heldOf(co)
	if sum == 0 {
		return
	}
	args := about(co)
	args["paid"], args["by"], args["reference"] = sum.Naira(), Stamp(by), d.receipt(co)["reference"]
	if d.manned() && co.Session.Status == SessionExpired { // which is not said by itself then
		args["over"] = co.Session.Amount.Naira()
	}
	d.say("part_waits", args)
}

// beyond says what becomes of what came beyond what was due: it waits for its
// merchant, who took it or sends it back already where that was decided before.
func (d *deciding) beyond(co Checkout, n News) {
	key, args := "paid_over", d.extra(co, n)
	args["extra"] = n.Extra.Naira()
	switch {
	case n.Payment == nil || n.Payment.Resolution == Unresolved:
	case n.Payment.Refunded > 0:
		key = "over_returned"
	default:
		key = "kept"
	}
	d.say(key, args)
}

func (d *deciding) extra(co Checkout, n News) map[string]string {
	args := about(co)
	args["reference"] = d.receipt(co)["reference"]
	if n.Payment != nil {
		args["extra"] = n.Payment.Amount.Naira()
		if !n.Payment.ReturnsAt.IsZero() {
			args["by"] = Stamp(n.Payment.ReturnsAt)
		}
	}
	if n.Amount > 0 {
		args["extra"] = n.Amount.Naira()
	}
	return args
}
