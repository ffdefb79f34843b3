package flow

import (
	"slices"
	"time"
)

// Change is what a decision about money leaves behind. It is saved whole, in
// one transaction, or not at all.
type Change struct {
	Session    *Session
	Attempts   []Attempt // new or changed
	Payment    *Payment
	Postings   []Posting // of Payment
	Payments   []Payment // changed: what was decided about them
	Returns    []Return  // what goes back to who paid it
	TakenBack  *TakenBack
	Refund     *Refund     // new or changed
	Taking     Kobo        // of what Refund could not send: what the bank takes back now, and is told as that
	Settlement *Settlement // new or changed
	Entries    []Entry     // of the ledger, beside those of Payment and TakenBack
	Facts      []Fact      // events that merchants are told
	News       []News      // what the chats of the session hear
}

// Then is a change and the one that was decided on its outcome, as one.
func (c Change) Then(next Change) Change {
	if next.Session != nil {
		c.Session = next.Session
	}
	if next.TakenBack != nil {
		c.TakenBack = next.TakenBack
	}
	if next.Refund != nil {
		c.Refund = next.Refund
	}
	if next.Settlement != nil {
		c.Settlement = next.Settlement
	}
	c.Payments = append(c.Payments, next.Payments...)
	c.Returns = append(c.Returns, next.Returns...)
	c.Attempts = append(c.Attempts, next.Attempts...)
	c.Entries = append(c.Entries, next.Entries...)
	c.Facts = append(c.Facts, next.Facts...)
	c.News = append(c.News, next.News...)
	return c
}

// Fact is an event to be told: its kind and the money it is about. Its id,
// sequence and bytes are made when the change is saved.
type Fact struct {
	Kind       EventKind
	Attempt    AttemptID
	Payment    *Payment
	Refund     *Refund     // of an event about one
	Settlement *Settlement // the same
}

// News is something that the payer's chats must hear.
type News struct {
	Kind    NewsKind
	Attempt AttemptID
	Payment *Payment
	Extra   Kobo   // of NewsPaid: what came beyond what was due
	Amount  Kobo   // of money that goes back or is kept: how much; of NewsSentBack, what the bank returned by itself
	Reason  string // of a refusal; of NewsReply, what the agent writes
	By      string // the agent, of news of the desk; the supporter, of NewsAgain
}

// Money is what news is about, in kobo: what goes back of a payment, is kept or was
// taken back, else all of it; 0 where it is about none.
func (n News) Money() Kobo {
	if n.Amount == 0 && n.Payment != nil {
		return n.Payment.Amount
	}
	return n.Amount
}

// NewsKind is what happened outside a chat.
type NewsKind string

// The kinds of news.
const (
	NewsOpened    NewsKind = "opened"     // instructions are there
	NewsRefused   NewsKind = "refused"    // the rail cannot make them
	NewsSlow      NewsKind = "slow"       // the rail takes its time
	NewsPaid      NewsKind = "paid"       // all of it is there
	NewsPartial   NewsKind = "partial"    // some of it is there
	NewsExtra     NewsKind = "extra"      // more came after it was paid
	NewsLate      NewsKind = "late"       // it came after the session was closed
	NewsDeclined  NewsKind = "declined"   // card or USSD was refused
	NewsNothing   NewsKind = "nothing"    // asked the bank: no money yet
	NewsBankDown  NewsKind = "bank_down"  // asked the bank: no answer
	NewsLapsed    NewsKind = "lapsed"     // the instructions are over
	NewsClosed    NewsKind = "closed"     // the session expired
	NewsCancelled NewsKind = "cancelled"  // the session was cancelled
	NewsStopped   NewsKind = "superseded" // another method was asked for over REST
	NewsComing    NewsKind = "coming"     // asked the bank: money is on its way
	NewsSentBack  NewsKind = "sent_back"  // the bank returned money by itself: a wrong amount, as a rule
	NewsReversed  NewsKind = "reversed"   // the bank took money back that had come
	NewsTooLittle NewsKind = "too_little" // some of it came, and goes back: all of it at once is wanted
	NewsReturning NewsKind = "returning"  // money that was set aside goes back
	NewsRefunded  NewsKind = "refunded"   // the bank has sent money back
	NewsByHand    NewsKind = "by_hand"    // somebody has sent money back by hand
	NewsBounced   NewsKind = "bounced"    // what the bank had sent back came back to us
	NewsUnsent    NewsKind = "unsent"     // the bank refused, for good, to send back what was to go back
	NewsKept      NewsKind = "kept"       // the merchant takes money that was set aside
	NewsTimer     NewsKind = "timer"      // a timer of the chat is due
	NewsClaimed   NewsKind = "claimed"    // an agent takes the chat over
	NewsReply     NewsKind = "reply"      // an agent answers
	NewsReleased  NewsKind = "released"   // an agent gives the chat back to the bot
	NewsAgain     NewsKind = "again"      // a supporter wants the payer to read once more where it stands
	NewsMuted     NewsKind = "muted"      // the payer said STOP to a number of ours
	NewsUnmuted   NewsKind = "unmuted"    // and START
)

// TaskKind is a kind of work owed to the outside or to the clock.
type TaskKind string

// The kinds of task.
const (
	TaskStart         TaskKind = "rail.start"      // subject: attempt
	TaskCheck         TaskKind = "rail.check"      // subject: session
	TaskSay           TaskKind = "chat.say"        // subject: chat
	TaskSlow          TaskKind = "chat.slow"       // subject: attempt
	TaskTimer         TaskKind = "chat.timer"      // subject: chat
	TaskExpireAttempt TaskKind = "attempt.expire"  // subject: attempt
	TaskExpireSession TaskKind = "session.expire"  // subject: session
	TaskReturn        TaskKind = "payment.return"  // subject: payment; what nobody decided about goes back
	TaskRefund        TaskKind = "refund.send"     // subject: refund; the bank is told of it, or asked about it
	TaskPayday        TaskKind = "settlement.day"  // subject: "all"; it comes again each day on which banks work
	TaskSettle        TaskKind = "settlement.make" // subject: project
	TaskPayout        TaskKind = "settlement.send" // subject: settlement; the bank is told of it, or asked about it
	TaskStatement     TaskKind = "rail.statement"  // subject: a day in Lagos; the bank's statement of it is read
	TaskRetention     TaskKind = "chat.retention"  // subject: "all"; it comes again each day
)

// Task is work that is owed. There is at most one of a kind for a subject; it
// is done at least once, at Due or later.
type Task struct {
	Kind     TaskKind
	Subject  string
	Due      time.Time
	Attempts int // tries that failed
}

// The bounds of time and number that are not a merchant's to set.
const (
	// Grace is how long after an attempt's end the bank's value time may lie
	// for its money to be on time.
	Grace = 5 * time.Minute
	// ReturnAfter is how long set-aside money waits for a decision before it goes
	// back by itself.
	ReturnAfter = 24 * time.Hour
	// WatchAfter is how long after its end an attempt is still asked about.
	WatchAfter = 24 * time.Hour
	// ComingAgain is how often a bank is asked while it says that money is on its
	// way. A session whose time is over meanwhile stays open for WatchAfter at most.
	ComingAgain = 5 * time.Minute
	// AskAtMost is how often a payer's word makes us ask the bank.
	AskAtMost = 20 * time.Second
	// SlowAfter is how long a payer waits before "one moment" is said.
	SlowAfter = 3 * time.Second
	// AttemptLasts is how long instructions last unless asked otherwise.
	AttemptLasts = 30 * time.Minute
	// MaxStartTries is how often an unknown outcome is asked about before the
	// method is given up; the attempt itself stays watched.
	MaxStartTries = 3
	// CancelConfirm is how long a payer has to confirm a cancellation.
	CancelConfirm = 2 * time.Minute
)

// checkAt are the ages at which an attempt is asked about unasked, afterwards it is
// every liveEvery until its end.
var checkAt = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}

const liveEvery = 30 * time.Minute

// lateAt are the waits after its end at which an attempt is asked about that nobody
// paid: the more seldom the less likely it is that somebody still does. A bank tells
// of late money by itself, and a payer who says "paid" has it asked at once; these
// are for a notice that was lost, and most that end unpaid are never paid.
var lateAt = [...]time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, WatchAfter}

// afterwards are the waits after an attempt's end at which one is asked about that
// nothing more is expected of: somebody may pay twice, the bank may take money
// back, and what was declined may come after all.
var afterwards = [...]time.Duration{0, 6 * time.Hour, 12 * time.Hour, 18 * time.Hour, WatchAfter}

// NextCheck is when an attempt is to be asked about next, false when never. One
// that succeeded or failed is asked about a few times only.
func NextCheck(a Attempt, now time.Time) (time.Time, bool) {
	if a.Status == AttemptFailed && a.Instructions == nil {
		return time.Time{}, false // nobody could pay it
	}
	if a.Status == AttemptSucceeded || a.Status == AttemptFailed {
		return seldom(a, now)
	}
	var next time.Time
	sooner := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, age := range checkAt {
		sooner(a.CreatedAt.Add(age))
	}
	if now.Before(a.ExpiresAt) {
		sooner(now.Add(liveEvery))
		sooner(a.ExpiresAt)
	}
	for _, wait := range lateAt {
		sooner(a.ExpiresAt.Add(wait))
	}
	return next, !next.IsZero()
}

// seldom is NextCheck of an attempt that nothing more is expected of.
func seldom(a Attempt, now time.Time) (time.Time, bool) {
	for _, wait := range afterwards {
		if at := a.ExpiresAt.Add(wait); at.After(now) {
			return at, true
		}
	}
	return time.Time{}, false
}

// NextQuestion is when a bank is to be asked about a session next, false when
// never.
func NextQuestion(s Session, attempts []Attempt, now time.Time) (time.Time, bool) {
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, a := range attempts {
		if at, ok := NextCheck(a, now); ok {
			sooner(at)
		}
	}
	if s.Status == SessionProcessing {
		sooner(now.Add(ComingAgain))
	}
	return next, !next.IsZero()
}

// startAgain are the waits before an unknown outcome is asked about again.
var startAgain = [...]time.Duration{time.Second, 4 * time.Second, 10 * time.Second}

// Retry is how long a task that failed waits before its next try: seconds at
// first, never more than ten minutes.
func (t Task) Retry() time.Duration {
	if t.Kind == TaskStart {
		return startAgain[min(t.Attempts, len(startAgain))-min(t.Attempts, 1)]
	}
	if t.Kind == TaskSay {
		return min(time.Second<<min(t.Attempts, 4), 15*time.Second) // a payer waits
	}
	return min(time.Second<<min(t.Attempts, 10), 10*time.Minute)
}

// liveOf is the attempt of a method that is live, false where there is none.
func liveOf(attempts []Attempt, m Method, now time.Time) (Attempt, bool) {
	i := slices.IndexFunc(attempts, func(a Attempt) bool { return a.Method == m && a.Live(now) })
	if i < 0 {
		return Attempt{}, false
	}
	return attempts[i], true
}
