package flow

import (
	"strings"
	"time"
)

// Role is what somebody who logs in to the console is there for.
type Role string

// The roles. Owners, developers and supporters belong to a merchant; operators
// run Till and belong to none.
const (
	RoleOwner     Role = "owner"
	RoleDeveloper Role = "developer"
	RoleSupport   Role = "support"
	RoleOperator  Role = "operator"
)

// RoleKey stands in the audit log for a secret key: a program of a merchant's,
// which nobody logs in as.
const RoleKey Role = "key"

// IsRole says whether a text is a role.
func IsRole(r Role) bool {
	switch r {
	case RoleOwner, RoleDeveloper, RoleSupport, RoleOperator:
		return true
	case RoleKey: // nobody logs in as one
	}
	return false
}

// Right is one thing that a role may or may not do.
type Right string

// The rights.
const (
	// MayRead is to see sessions, money, events and conversations, phones masked.
	MayRead Right = "read"
	// MayReveal is to see a payer's whole phone number, for a reason.
	MayReveal Right = "reveal"
	// MayAnswer is to take chats over, write in them and leave notes.
	MayAnswer Right = "answer"
	// MayResend is to have events and instructions sent again.
	MayResend Right = "resend"
	// MayMoveMoney is to decide about money that waits, and to order refunds.
	MayMoveMoney Right = "move_money"
	// MayDevelop is to handle keys, webhook endpoints and the log of requests.
	MayDevelop Right = "develop"
	// MayOwn is to handle projects, people, KYC and where money is paid out to.
	MayOwn Right = "own"
	// MayOperate is to run Till: numbers, switches, KYC rulings, the audit log, and
	// every merchant's sessions.
	MayOperate Right = "operate"
)

// May says whether a role has a right. Keys are a merchant's own: operators, who
// see everything, never get any.
func (r Role) May(what Right) bool {
	switch r {
	case RoleOwner:
		return what != MayOperate
	case RoleDeveloper:
		return what == MayRead || what == MayResend || what == MayDevelop
	case RoleSupport:
		return what == MayRead || what == MayReveal || what == MayAnswer || what == MayResend || what == MayMoveMoney
	case RoleOperator:
		return what != MayDevelop && what != MayOwn
	case RoleKey:
	}
	return false
}

// Person is somebody who may log in beside an account's owner, or an operator.
type Person struct {
	ID           string // wsp_usr_…
	Account      string // whose projects they see; "" for operators
	Email        string // as FoldEmail leaves it
	PasswordHash string // argon2id, encoded
	Role         Role
	CreatedAt    time.Time
	EndedAt      time.Time // when they were shut out; zero while they may log in
}

// Visit is one login to the console from one browser, as it is kept: never the
// text that its cookie holds.
type Visit struct {
	Hash      string // SHA-256, hex
	Account   string // "" for operators
	Person    string // id; "" for the account's owner
	Email     string
	Role      Role
	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // when they logged out or were shut out
}

// Audited is one thing that somebody did in the console, on the command line, or
// over REST to what holds their account. It is kept before the thing is done: what was tried and failed stands there too.
type Audited struct {
	ID          string // aud_…
	At          time.Time
	Actor       string // e-mail address, who the command line was told, or a key's hint and id
	Role        Role
	Account     string // "" for operators
	Project     ProjectID
	Environment Environment
	Action      string // as payment.resolve
	Subject     string // id of what it was done to
	Reason      string // in their words; "" where none is asked for
}

// refusedAct ends the action of a row that tells of the one before it that it was
// refused: a filter by an act finds both.
const refusedAct = ".refused"

// AsRefused is the row that tells of one before it that it was refused, and why.
func (a Audited) AsRefused(why string) Audited {
	a.Action, a.Reason = a.Action+refusedAct, why
	return a
}

// Refused says whether a row tells of one before it that it was refused.
func (a Audited) Refused() bool { return strings.HasSuffix(a.Action, refusedAct) }

// MaxFilters is how many searches one person keeps.
const MaxFilters = 20

// Filter is a search of sessions that somebody keeps under a name.
type Filter struct {
	Name      string
	Words     string // as they were typed
	Status    SessionStatus
	CreatedAt time.Time
}
