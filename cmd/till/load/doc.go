// Package load measures the whole service under load: the program, the sandbox
// bank and the WhatsApp network as they run, asked at a fixed rate whatever they
// answer, beside what the same machine does without them in the same minutes.
//
// It is tests alone: make bench and make soak run it. It knows the service by its
// doors and its files, and must not know how it works inside.
package load
