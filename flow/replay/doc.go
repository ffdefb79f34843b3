// Package replay decides the turns of a recorded conversation again and
// compares what comes out with what happened: every state, every effect and
// every text.
//
// A turn is a pure function of the chat before it and of what its line of the
// log keeps, so nothing else is needed: no clock, no bank, no network. The
// package imports the rules and the standard library without its net packages,
// and the linter refuses anything else: a replay can reach nobody.
package replay
