// Package crash holds the program to its word from outside: it runs the real
// binary, takes something from it (its life, its disk, its lock, its Redis), and
// then compares what Till acknowledged with what Till has.
//
// What was acknowledged stands in a journal of the driver's own, written through
// to the disk before it counts; what was paid stands in the books of the bank,
// which is a process of its own that nobody kills. All of it is in the tests and
// benchmarks of this package. They know Till by its API, its files and its
// commands only, and none of its packages but the list of the points at which it
// can be killed.
//
// The invariants that are named here:
//
//   - I1: the ledger sums to zero.
//   - I2: it holds what the bank's books say, to the kobo.
//   - I3: every movement of the bank has exactly one outcome.
//   - I4: a settled charge has exactly one charge.success.
//   - I5: the same call under the same key has one effect and one reply.
//   - I6: what has ended does not begin again.
//   - I7: every event is delivered in the end.
//   - I8: the bank was asked for one account, code or page for each choice.
//   - I11: what was acknowledged survives.
//   - I12: a message of a payer has one effect.
//   - I14: a chat that is decided again comes out as it was.
package crash
