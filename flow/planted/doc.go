// Package planted holds faults that are put into the program on purpose, to see
// that the simulator's judge finds them: each is a mistake that an engineer could
// make, at the very place where it would be made.
//
// Without the build tag planted every one of them is the constant false, and the
// compiler leaves nothing of it in the program. With the tag the environment
// variable TILL_PLANTED names the one that is at work, and the program does
// nothing but simulate.
//
// The package must know nothing of the program: whoever asks whether a bug is
// planted says itself what is then done wrongly.
package planted
