//go:build planted

package planted

import (
	"fmt"
	"os"
	"strings"
)

// Variable is the environment variable that names the bug.
const Variable = "TILL_PLANTED"

// Bug is a fault that can be planted.
type Bug struct{ Name, What string }

var (
	chosen = os.Getenv(Variable)
	all    []Bug
)

// plant adds a bug to the list, and says whether it is the one that is at work.
func plant(name, what string) bool {
	all = append(all, Bug{Name: name, What: what})
	return name == chosen
}

// Bugs are all that can be planted.
func Bugs() []Bug { return all }

// Planted is the bug that is at work, "" for none. Error: there is none of the
// name that was asked for.
func Planted() (string, error) {
	var names []string
	for _, b := range all {
		if b.Name == chosen {
			return chosen, nil
		}
		names = append(names, b.Name)
	}
	if chosen == "" {
		return "", nil
	}
	return "", fmt.Errorf("there is no bug %q to plant: %s names one of %s", chosen, Variable, strings.Join(names, ", "))
}

// The bugs.
var (
	DoublePost      = plant("double-post", "a notice of the bank that comes again is booked as money of its own")
	DroppedNotice   = plant("dropped-notice", "money that belongs to nobody is answered for, and not kept")
	PendingIsMoney  = plant("pending-is-money", "money that is on its way is booked as if it had come")
	LateInTime      = plant("late-in-time", "money that came when its session was over is taken as in time")
	AskedAmount     = plant("asked-amount", "money is booked with the amount that was asked for, whatever the bank says came")
	OddKobo         = plant("odd-kobo", "a fee is rounded down where it is to be rounded half up")
	SettledTwice    = plant("settled-twice", "lines of the ledger that were paid out are paid out again")
	RefundTwice     = plant("refund-twice", "a refund whose order may have got through is ordered anew under another name, without asking first")
	RefundForgotten = plant("refund-forgotten", "the work that a refund is owed is not kept with it")
	LostEvent       = plant("lost-event", "a session that late money pays has no event that says so")
	LostOutbox      = plant("lost-outbox", "an event is handed to the worker, and what is owed of it is not written with it")
	NewBody         = plant("new-body", "a webhook says something else each time it is tried")
	GivesUpEarly    = plant("gives-up-early", "a webhook is given up after five tries")
	OldSecret       = plant("old-secret", "after a rotation webhooks are signed with the secret of before alone")
	OthersWebhook   = plant("others-webhook", "an event goes to the endpoints of every project")
	AnybodysKey     = plant("anybodys-key", "an idempotency key counts whoever's it is")
	AnotherAnswer   = plant("another-answer", "a call that is made again is answered with how things stand by then")
	OthersSession   = plant("others-session", "a session is shown to whoever knows its id")
	LiveForTest     = plant("live-for-test", "a test key reads the live environment")
	PaidExpires     = plant("paid-expires", "a session that was paid expires when its time is over")
	ExpiresOnTheWay = plant("expires-on-the-way", "a session expires although the bank has said that its money is on its way")
	EagerBank       = plant("eager-bank", "the bank is called when a session is opened")
	EagerChat       = plant("eager-chat", "the bank is called when a payer opens the chat, before a method is chosen")
	HeardTwice      = plant("heard-twice", "a message of a payer that comes again is taken as another one")
	KeptCard        = plant("kept-card", "of a message with a card number in it all is kept")
	OwnClock        = plant("own-clock", "a decision looks at the clock itself, and is silent every other second")
	LostCommit      = plant("lost-commit", "of several callers whose work is committed together, none's is")
	UnsyncedCommit  = plant("unsynced-commit", "a commit is not on the disk when it is answered, so that a power cut takes it back")
)
