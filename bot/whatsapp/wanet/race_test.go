//go:build race

package wanet_test

// The stock client races with itself, rarely, when a line breaks under a message
// it is sending. Under the race detector the tests that break lines only listen.
const stockMaySend = false
