package flow

import (
	"cmp"
	"slices"
	"time"

	"till/flow/planted"
)

// Ask is what is asked of a session: a method, and how long it shall last.
type Ask struct {
	Method    Method
	ID        AttemptID // of the attempt, if one is made
	Reference string    // of the attempt, if one is made
	Lasts     time.Duration
	Chat      ChatID // that asks, "" for REST
}

// Begin opens a method of a session, without calling anybody. It returns the
// attempt that is live already when there is one, the one that whoever asks
// switched away from while the bank still takes its money, or a new one, which
// has the ID that was asked for: the rail is called with its reference after it
// is saved. A chat is given no instructions of another's, because their money is
// that one's; while the bank still makes those, it waits for them to be there.
func Begin(s Session, attempts []Attempt, ask Ask, served []Method, now time.Time) (Attempt, Change, error) {
	if err := s.Closed(); err != nil {
		return Attempt{}, Change{}, err
	}
	if !now.Before(s.ExpiresAt) { // it is over, though nobody has swept it yet
		if s.Status == SessionProcessing {
			return Attempt{}, Change{}, Refuse(CodeSessionExpired, "The time of this session was over at %s, and the bank says that money for it is on its way. Wait for the webhook that says what became of it, before anybody pays again.", Stamp(s.ExpiresAt))
		}
		return Attempt{}, Change{}, Session{ID: s.ID, Status: SessionExpired, ExpiresAt: s.ExpiresAt}.Closed()
	}
	if !slices.Contains(s.AllowedMethods, ask.Method) {
		return Attempt{}, Change{}, Refuse(CodeMethodNotAllowed, "This session does not offer %s.", ask.Method)
	}
	if live, ok := liveOf(attempts, ask.Method, now); ok && (live.Amount == s.Outstanding() || live.coming()) && (live.Instructions == nil || !live.ofAnother(ask.Chat)) {
		shown, taken := live.shownIn(ask.Chat)
		if !taken {
			return live, Change{}, nil
		}
		return shown, Change{Attempts: []Attempt{shown}}, nil
	}
	switch reason := unavailable(s, ask.Method, served); reason {
	case "":
	case RailDown:
		return Attempt{}, Change{}, NotServed("The bank does not serve " + string(ask.Method) + " right now. Try another method or try again.")
	default:
		return Attempt{}, Change{}, Refuse(CodeMethodNotAllowed, "%s cannot be used for %s (%s).", ask.Method, s.Outstanding().Naira(), reason)
	}
	expires := now.Add(cmp.Or(ask.Lasts, AttemptLasts))
	if expires.After(s.ExpiresAt) {
		expires = s.ExpiresAt
	}
	change, err := replace(attempts, ask.Method, now)
	if err != nil {
		return Attempt{}, Change{}, err
	}
	if old, ok := leftOf(attempts, s, ask, now); ok {
		again, err := old.move(triggerTakeUp)
		if err != nil {
			return Attempt{}, Change{}, err
		}
		again, _ = again.shownIn(ask.Chat)
		change.Attempts = append(change.Attempts, again)
		return again, change, nil
	}
	made := Attempt{
		ID: ask.ID, Session: s.ID, Method: ask.Method, Reference: ask.Reference, Amount: s.Outstanding(),
		Status: AttemptActive, Chat: ask.Chat, CreatedAt: now, ExpiresAt: expires,
	}
	change.Attempts = append(change.Attempts, made)
	return made, change, nil
}

// leftOf is the attempt that whoever asks switched away from and that can still
// be paid: a second one beside it would be one more account to pay into twice.
func leftOf(attempts []Attempt, s Session, ask Ask, now time.Time) (Attempt, bool) {
	for _, a := range slices.Backward(attempts) {
		if a.Method == ask.Method && a.Status == AttemptSuperseded && a.Instructions != nil && a.payable(s, now) && !a.ofAnother(ask.Chat) {
			return a, true
		}
	}
	return Attempt{}, false
}

// replace ends what stands in the way of a new attempt: one that lapsed but was
// not swept yet, one that asks for more than is still due, or another chat's.
func replace(attempts []Attempt, m Method, now time.Time) (Change, error) {
	var change Change
	for _, old := range attempts {
		if old.Method != m || old.Status != AttemptActive {
			continue
		}
		trigger := triggerSupersede
		if !old.Live(now) {
			trigger = triggerLapse
			change.News = append(change.News, News{Kind: NewsLapsed, Attempt: old.ID})
		}
		over, err := old.move(trigger)
		if err != nil {
			return Change{}, err
		}
		change.Attempts = append(change.Attempts, over)
	}
	return change, nil
}

// Started takes in the rail's answer to an attempt. Instructions that come when
// the attempt is over are kept, because they can still be paid, but nobody is
// invited to. An account asks for what is left by now.
func Started(s Session, a Attempt, ins Instructions) Change {
	if a.Instructions != nil {
		return Change{}
	}
	a.Instructions = &ins
	if a.Status != AttemptActive {
		return Change{Attempts: []Attempt{a}}
	}
	if !ins.ExpiresAt.IsZero() && ins.ExpiresAt.Before(a.ExpiresAt) {
		a.ExpiresAt = ins.ExpiresAt
	}
	a, _ = s.AskForRest(a)
	change := Change{Session: &s, Attempts: []Attempt{a}, Facts: []Fact{{Kind: InstructionsIssued, Attempt: a.ID}}}
	change.News = []News{{Kind: NewsOpened, Attempt: a.ID}}
	return change
}

// Refused takes in that a rail will not make the instructions of an attempt.
func Refused(a Attempt, reason string) (Change, error) {
	if a.Status != AttemptActive || a.Instructions != nil {
		return Change{}, nil
	}
	failed, err := a.move(triggerFail)
	if err != nil {
		return Change{}, err
	}
	failed.Reason = reason
	return Change{Attempts: []Attempt{failed}, News: []News{{Kind: NewsRefused, Attempt: a.ID}}}, nil
}

// Lapse ends an attempt whose time is over. The attempt stays watched. others are
// those of its session: one whose place another chat's took stands as it does, and
// its chat, which waited on, is told.
func Lapse(a Attempt, others []Attempt, now time.Time) (Change, error) {
	if !a.Awaited(others) || now.Before(a.ExpiresAt) {
		return Change{}, nil
	}
	change := Change{News: []News{{Kind: NewsLapsed, Attempt: a.ID}}}
	if a.Status == AttemptSuperseded {
		return change, nil
	}
	lapsed, err := a.move(triggerLapse)
	if err != nil {
		return Change{}, err
	}
	change.Attempts = []Attempt{lapsed}
	return change, nil
}

// Supersede ends an attempt because another method was chosen. The bank may
// still take money for it, so it stays watched.
func Supersede(a Attempt) (Change, error) {
	if a.Status != AttemptActive {
		return Change{}, nil
	}
	over, err := a.move(triggerSupersede)
	if err != nil {
		return Change{}, err
	}
	return Change{Attempts: []Attempt{over}}, nil
}

// Expire ends a session whose time is over. One that money is on its way to
// waits for that, but not for ever. payments are those seen for the session: what
// is held of them waits for a decision from now on.
func Expire(s Session, attempts []Attempt, payments []Payment, now time.Time) (Change, error) {
	if planted.PaidExpires && s.Status == SessionPaid && !now.Before(s.ExpiresAt) {
		s.Status, s.PaidAt, s.AmountPaid = SessionExpired, time.Time{}, 0
		return Change{Session: &s, Facts: []Fact{{Kind: SessionExpiredKind}}}, nil
	}
	if !s.Open() || now.Before(s.ExpiresAt) || s.Status == SessionProcessing && now.Before(s.ExpiresAt.Add(WatchAfter)) && !planted.ExpiresOnTheWay {
		return Change{}, nil
	}
	s, err := s.landed()
	if err != nil {
		return Change{}, err
	}
	return closeSession(s, attempts, payments, triggerExpire, now)
}

// Cancel ends a session that is still open; one that money is on its way to is
// not. payments are as Expire has them.
func Cancel(s Session, attempts []Attempt, payments []Payment, now time.Time) (Change, error) {
	if s.Status != SessionPending {
		return Change{}, Refuse(CodeNotCancellable, "A session that is %s cannot be cancelled.", s.Status)
	}
	return closeSession(s, attempts, payments, triggerCancel, now)
}

// EndNow ends the time of a session that is still open, because somebody wants it
// over: money that a payer sends from now on comes late once the Grace is over that
// all money has. payments are as Expire has them. Errors: session_not_cancellable.
func EndNow(s Session, attempts []Attempt, payments []Payment, now time.Time) (Change, error) {
	if s.Status != SessionPending {
		return Change{}, Refuse(CodeNotCancellable, "The time of a session that is %s cannot be ended.", s.Status)
	}
	if now.Before(s.ExpiresAt) {
		s.ExpiresAt = now
	}
	change, err := closeSession(s, attempts, payments, triggerExpire, now)
	if err != nil {
		return Change{}, err
	}
	change.Attempts = nil
	for _, a := range attempts { // those that were switched away from could be paid in time as well
		if a.Status == AttemptActive {
			if a, err = a.move(triggerLapse); err != nil {
				return Change{}, err
			}
		} else if !now.Before(a.ExpiresAt) {
			continue
		}
		if now.Before(a.ExpiresAt) {
			a.ExpiresAt = now
		}
		change.Attempts = append(change.Attempts, a)
	}
	return change, nil
}

func closeSession(s Session, attempts []Attempt, payments []Payment, trigger string, now time.Time) (Change, error) {
	closed, err := s.move(trigger)
	if err != nil {
		return Change{}, err
	}
	change := Change{Session: &closed}
	for _, a := range attempts {
		if a.Status != AttemptActive {
			continue
		}
		over, err := a.move(map[string]string{triggerExpire: triggerLapse, triggerCancel: triggerSupersede}[trigger])
		if err != nil {
			return Change{}, err
		}
		change.Attempts = append(change.Attempts, over)
	}
	for _, p := range payments {
		if p.held() && !p.ReturnsAt.After(now) { // what a refused refund waits for stands
			p.ReturnsAt = now.Add(ReturnAfter)
			change.Payments = append(change.Payments, p)
		}
	}
	kind, chargeKind, news := SessionExpiredKind, ChargeExpired, NewsClosed
	if trigger == triggerCancel {
		kind, chargeKind, news = SessionCancelKind, ChargeCancelled, NewsCancelled
	}
	change.Facts = []Fact{{Kind: kind}}
	if s.ChargeAsked {
		change.Facts = append(change.Facts, Fact{Kind: chargeKind})
	}
	change.News = []News{{Kind: news}}
	return change, nil
}

// Decline takes in that a bank refused a card or USSD payment, also one that was
// switched away from: nobody may be shown its instructions again. Of a session that is
// over, only the attempt is kept.
func Decline(s Session, a Attempt, n Notice) (Change, error) {
	if a.Status != AttemptActive && (a.Status != AttemptSuperseded || !s.Open()) {
		return Change{}, nil
	}
	failed, err := a.move(triggerFail)
	if err != nil {
		return Change{}, err
	}
	failed.Reason = n.Reason
	if !s.Open() {
		return Change{Attempts: []Attempt{failed}}, nil
	}
	return Change{
		Session: &s, Attempts: []Attempt{failed}, Facts: []Fact{{Kind: ChargeFailed, Attempt: a.ID}},
		News: []News{{Kind: NewsDeclined, Attempt: a.ID, Reason: n.Reason}},
	}, nil
}
