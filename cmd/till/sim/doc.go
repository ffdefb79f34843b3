// Package sim plays a week of the whole service in virtual time: the real store
// and the real SQLite on a disk in memory, the real API, conversation, rules, worker and webhooks, and the
// sandbox bank, with everything around them pretended and much of it going wrong.
// One number, the seed, decides all that happens, so that what went wrong once
// can be looked at again. What goroutines do in one moment has no order, even on one
// core: the runtime stops whoever has run for 10 ms or is in the collector's way. So
// each task begins, and each call to the outside ends, at a moment of its own.
//
// The service runs unmodified, with its goroutines and timers, inside a bubble of
// testing/synctest: time jumps to the next moment at which something is due. What
// is joined by functions instead of wires: merchants (at the API's handler), the
// bank's line both ways, webhooks (behind signature and schedule, in front of the
// network), and payers, who stand at the bot's own door; the WhatsApp protocol is
// tried elsewhere. Redis is a memory that is flushed, and restored from an older copy. A crash takes the files as
// they are while everything is at rest, or while a call to the outside has been
// answered and not been heard, and starts a new process on them; or the power goes
// in the middle of a write, and of what was not synced any part is gone.
//
// # What is judged, and when
//
// After every step: each move of each thing that has states begins where the thing
// stood, is one of its table, or one of the few that are two in one go and have a
// reason (joined.go), and leaves nothing that is over (I6); each ledger line sums
// to zero, and so does the whole ledger, to what its lines came to (I1); each is of
// a movement that the bank's own books know, with its amount, once (I2), and each payment has the outcome, the fee and the lines that a second
// account of the rules, written here, comes to (I2, I3); each session that was
// paid has one charge.success (I4), its merchant was given all that it is paid with
// (I2), and its chats were told (I12); each end of a session, a refund or a payout and
// each payment that fits badly has its event, and each event is on its way to everybody who
// asked for it (I7); nothing ends or is paid out before its time (I2, I6); a call that is made again is answered to the byte as before,
// and nobody is answered as another was (I5); the bank is called for nothing
// before a method is asked for over REST, or its payer has written more than the
// code that opens it, and a method has one live attempt (I8); environments and
// merchants see nothing of one another (I9, I10); what was taken from the bank or
// a payer is kept, once, and nothing else is (I3, I12); webhooks are signed with
// the secret that their endpoint has by then, never change and are never told
// twice as two (I4, I7); what a payer reads never changes under its id (I12).
//
// After every crash, also: nothing that was seen before is gone, what was
// acknowledged is there, and calls get their answers again (I5, I11).
//
// At the end of each day, also: the whole ledger adds up whether or not a line was
// written (I1, I2), nothing waits that should have happened hours ago (I6, I7, I12),
// and no endpoint was told of another merchant's session (I10).
//
// At the end, when nothing goes wrong any more and all schedules are over, also:
// every movement of the bank has its outcome, and what was ordered of the bank too
// (I3), no delivery waits, none was given up before its time, each try left a record,
// what is said to be delivered or sent was received, and what was decided to be said is
// what is kept and read (I7, I12), every conversation decided again comes
// out the same (I14), and no file holds a card number that a payer typed, a key or
// a secret of an endpoint (I13; logs and pages are searched elsewhere).
//
// The service's databases may be elsewhere: on a PostgreSQL, whose weeks come out as
// SQLite's do (postgres_test.go). A process that dies reaches it no more, and what it had
// committed stays.
//
// Whether all of this would be seen is tried with bugs that are planted: oracle.go.
//
// The package must not know what a command line is.
package sim
