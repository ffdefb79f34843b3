// Package checkout is the shell around the rules: every command loads what it
// needs, lets package flow decide and saves the outcome, in one transaction.
// Nothing else writes.
//
// It knows the store, the contract of a rail and the rules. It must not know
// HTTP, WhatsApp, any single bank, how a webhook is sent or what language a
// payer speaks: those are handed to it as small values.
package checkout

import (
	"context"
	"io"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// Config is what a Service is made of.
type Config struct {
	DB     *store.DB
	Rail   rail.Rail
	Places Places                                      // where live talks stand; may forget everything
	Words  func(s flow.Say, at time.Time) string       // a message in the payer's language
	Around flow.Surroundings                           // how records look in this environment
	Number func() string                               // the WhatsApp number new links carry, "" while none is live; nil: there is none
	Board  *Board                                      // what operators switched off; nil: nothing
	Banks  []flow.Bank                                 // the USSD menu, in order
	Send   func(ctx context.Context, o Outgoing) error // one message to WhatsApp
	// Syncing says that what payers wrote while we were away is still coming in.
	// Nothing is told by the clock meanwhile: "I have paid" may be among it. It
	// must end by itself. Nil is never.
	Syncing func() bool
	// Known says whether there is such a project in this environment; nil: none.
	Known func(ctx context.Context, id flow.ProjectID) (bool, error)
	Post  func(ctx context.Context, d flow.Delivery) flow.Verdict
	Next  func(d flow.Delivery, v flow.Verdict) (wait time.Duration, again bool) // the webhook schedule
	Now   func() time.Time                                                       // the environment's clock: that of test is moved by merchants
	Rand  io.Reader
	Drain time.Duration // how long posts that are under way when Run ends may go on; 0: 5 s
	Build string        // the program's version, for the log
	Copy  string        // the version of Words, for the log
	Alone bool          // no other process works on the database: what a dead one held is taken at once
	// Look is how long what is due is not looked for while nothing is known to be:
	// what another process owes is found by then. 0: a second.
	Look time.Duration
	// Before is called before each task is begun; nil: nothing is. A simulation has
	// each task begin at a moment of its own by it.
	Before func(task flow.Task)
	Log    *slog.Logger
	Meter  Meter // counts what operators watch; nil: nobody does

	// Payee is where a project is paid out to, false while it has not said. Nil:
	// nobody is paid out. Calendar says on which days.
	Payee    func(ctx context.Context, project flow.ProjectID) (flow.BankAccount, bool, error)
	Calendar flow.Calendar
	// SecondAbove is the amount of money beyond which two people have to agree to
	// what is ordered in the console; 0 is never.
	SecondAbove flow.Kobo
	// KeepChats is how long the words of a chat are kept after its last line; 0 is
	// for good. KeepAnswers is the same for what endpoints answered. Words are old when
	// Now and Real, the machine's clock, both say so: whoever moves the clock of test
	// takes nobody's words. Real nil is Now.
	KeepChats   time.Duration
	KeepAnswers time.Duration
	Real        func() time.Time
}

// Places remembers where live talks stand, and may lose all of it at any time.
type Places interface {
	// Get returns what is remembered of a chat; false where nothing is.
	Get(ctx context.Context, id flow.ChatID) (flow.Chat, bool)
	// Put remembers a chat unless something newer (by Seq) is remembered.
	Put(ctx context.Context, c flow.Chat)
}

// Outgoing is one message on its way to a payer. ID is fixed before the first
// try, so that a repeat is recognised.
type Outgoing struct {
	Number string // ours
	Person string // their LID
	ID     string
	Text   string
	Money  bool          // news of money: it waits for nothing but its own chat's order
	First  bool          // nothing was ever sent to this chat before
	Fades  time.Duration // how long the chat keeps its messages, 0 for ever
}

// Inbound is one message from a payer, as WhatsApp handed it over.
type Inbound struct {
	Number  string // ours
	Person  string // their LID
	Phone   flow.Phone
	Name    string
	Message string        // the network's id of the message
	Quoted  string        // the id of the message of ours that it answers to, "" for none
	Edits   string        // the id of the message that it takes the place of, "" for none
	Revokes string        // the id of the message that it takes back, "" for none
	Came    string        // what it came with, as "picture" or "voice note"; "" for text alone
	Wrote   time.Time     // when the network took it in, zero where that is not known
	Fades   time.Duration // how long the chat keeps its messages, 0 for ever, negative where the message does not say
	Intent  flow.Intent
}

// Tick is what the network says became of a message of ours.
type Tick struct {
	Number, Message string
	State           string // delivered or read
	At              time.Time
}

// View is a session with everything that belongs to it, at one moment.
type View struct {
	Session  flow.Session
	Attempts []flow.Attempt // oldest first
	Payments []flow.Payment // oldest first
	Offers   []flow.Offer
}

// Call is an API call that makes something. With a Key it is done once: the
// answer is kept with what was made and given again byte for byte.
type Call struct {
	Project flow.ProjectID
	By      string // the id of the key that it is made with, "" for people, whose acts are kept elsewhere
	Scope   string // whose keys Key is one of; "" for the project's
	Key     string // the Idempotency-Key, "" for none
	Hash    string // of method, path and body
	// Secret is what the answer is kept sealed with: it is made of Key and the
	// request, which are not kept, and must not be made of Hash, which is.
	Secret []byte
	// Refuse makes the answer out of a refusal; final is false for one that the
	// same call may not meet again, which is not kept. Without it none is.
	Refuse func(err error) (a Answer, final bool)
	// Render makes the answer out of what was made; it may run inside the
	// transaction, or for nothing, and must not do anything else.
	Render func(m Made) (status int, body []byte, err error)
}

// Made is what a Call made: a session with all that belongs to it, or one of the
// others.
type Made struct {
	View

	Endpoint     flow.Endpoint
	Payment      flow.Payment
	Refund       flow.Refund
	Sending      Sending
	Replay       Replay
	Verification flow.Verification
	SignedUp     SignedUp
	LoggedIn     LoggedIn
	Project      flow.Project
	Pair         []NewKey // of a project that was made: its public and its secret test key
	Key          NewKey
	Replaced     flow.Key       // the key that Key takes the place of
	KYC          []flow.KYCMove // of the project, oldest first
}

// Answer is what a Call is answered with.
type Answer struct {
	Status   int
	Body     []byte
	Location string // id of what was made
	Replayed bool
}

// NewSession is what a session is made of; the API has checked every field.
type NewSession struct {
	Merchant       string
	Mode           flow.Mode
	Amount         flow.Kobo
	CustomerEmail  string
	CustomerPhone  flow.Phone
	CustomerName   string
	Reference      string
	AllowedMethods []flow.Method
	ExpiresIn      time.Duration
	Description    string
	Metadata       map[string]string
	CallbackURL    string
	Policy         flow.Policy
}

// Ask is what a merchant asks of a session over REST.
type Ask struct {
	Method flow.Method
	Lasts  time.Duration // 0 for the usual
}

// Filter narrows a list of sessions. Zero fields do not.
type Filter struct {
	Status        flow.SessionStatus
	Reference     string
	CustomerEmail string
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Before        string // the last id of the page before
	Charges       bool   // only sessions that have a charge
	Limit         int
}
