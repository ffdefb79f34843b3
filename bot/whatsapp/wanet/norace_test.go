//go:build !race

package wanet_test

// See the other file of this pair.
const stockMaySend = true
