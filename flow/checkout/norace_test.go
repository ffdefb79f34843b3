//go:build !race

package checkout_test

// raced says whether the race detector is on, which makes everything some ten times slower.
const raced = false
