package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"till/flow"
)

// clientSecret is what a payer's browser shows to read its own session. It is
// computed, so that none is kept.
func clientSecret(pepper string, id flow.SessionID) string {
	mac := hmac.New(sha256.New, []byte(pepper))
	mac.Write([]byte(id))
	return string(id) + "_secret_" + hex.EncodeToString(mac.Sum(nil)[:20])
}
