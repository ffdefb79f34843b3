// Package flow holds the words and the rules of Till: sessions, attempts,
// payments, chats and the decisions about them.
//
// It decides and does nothing else. A decision takes what is known (state, what
// happened, the time) and returns what must be so afterwards (new state and
// effects). There is no clock here, no randomness, no disk, no network, no
// language: those belong to the packages around it.
//
// Two laws hold everywhere:
//
//   - A request may be refused, a fact may not. Opening a session or asking for
//     an account number can return an error; money that a bank confirmed is
//     always kept and always has exactly one outcome.
//   - Nothing outside is called inside a decision or a transaction. What a
//     decision owes to the outside is an effect that is saved with it.
//
// The tables of legal moves stand in machine.go, those of a chat in talk_table.go,
// one per thing that has states.
package flow
