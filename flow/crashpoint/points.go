// Package crashpoint names places in the program at which it can be killed, to see
// that it goes on where it stood: each is between two things that a crash must not
// part.
//
// Without the build tag crashpoints a point is an empty function, and the compiler
// leaves nothing of it in the program. With the tag the environment variable
// TILL_CRASH_POINT names the point and at which passing of it the process is killed.
//
// The package must know nothing of the program: what is true at a point is true
// because of where it stands.
package crashpoint

import "fmt"

// Point is a place in the program.
type Point string

// Variable is the environment variable that names a point and a passing of it:
// ledger-line:3.
const Variable = "TILL_CRASH_POINT"

// The points, and what is true there.
const (
	// The store.

	LedgerLine  Point = "ledger-line"  // a line of the ledger was put in, and is not committed
	BatchUnit   Point = "batch-unit"   // on SQLite: one of those who are committed together is about to write, others may have
	BatchCommit Point = "batch-commit" // on SQLite: all of them have written, and nothing is committed
	BatchKept   Point = "batch-kept"   // on SQLite: it is committed, and none of them knows
	PipeCommit  Point = "pipe-commit"  // on PostgreSQL: the commit is not sent yet
	PipeKept    Point = "pipe-kept"    // on PostgreSQL: it is committed, and nobody knows

	// Calls of merchants.

	CallBegun Point = "call-begun" // that an idempotent call runs is kept, and nothing of it is done
	CallDone  Point = "call-done"  // what it does is kept, and its answer is not
	Reply     Point = "reply"      // its answer is kept, and not sent

	// Money that comes.

	BankAsk    Point = "bank-ask"    // that the bank is asked is kept, and it was not
	BankAnswer Point = "bank-answer" // the bank has answered, and that is not kept
	NoticeRead Point = "notice-read" // a notice of the bank came, and is not kept
	NoticeKept Point = "notice-kept" // it is kept, and the bank does not know

	// Money that is sent out.

	RefundBegun     Point = "refund-begun"     // that a refund is ordered is kept, and it was not
	RefundOrdered   Point = "refund-ordered"   // the bank has taken it, and that is not kept
	SettlementBegun Point = "settlement-begun" // a settlement is kept, and no line is in it
	PayoutBegun     Point = "payout-begun"     // that a payout is ordered is kept, and it was not
	PayoutOrdered   Point = "payout-ordered"   // the bank has taken it, and that is not kept

	// Webhooks, and what else is owed.

	WorkClaimed Point = "work-claimed" // what is due is taken, and not begun
	HookPost    Point = "hook-post"    // a webhook is about to be sent
	HookPosted  Point = "hook-posted"  // its endpoint has answered, and that is not kept

	// Chats.

	KeysCommit Point = "keys-commit" // a message is decrypted or encrypted, and the keys after it are not committed
	TurnHeard  Point = "turn-heard"  // what a payer wrote, or is to be told, is in the log, and neither decided nor committed
	TurnKept   Point = "turn-kept"   // what a payer wrote is kept with all it led to, and WhatsApp does not know
	TurnSaid   Point = "turn-said"   // WhatsApp has taken an answer, and that is not kept
)

// Points are all of them.
func Points() []Point {
	return []Point{
		LedgerLine, BatchUnit, BatchCommit, BatchKept, PipeCommit, PipeKept, CallBegun, CallDone, Reply, BankAsk, BankAnswer, NoticeRead, NoticeKept,
		RefundBegun, RefundOrdered, SettlementBegun, PayoutBegun, PayoutOrdered, WorkClaimed, HookPost, HookPosted, KeysCommit, TurnHeard, TurnKept, TurnSaid,
	}
}

// Last is the last that a process says which is killed at a passing of a point.
func Last(p Point, passing int64) string {
	return fmt.Sprintf("till: killed at the point %s, which was passed %d times", p, passing)
}
