package sandbox_test

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

// drawn draws these bytes first wherever sixteen are wanted, and others after them.
type drawn struct {
	first []byte
	rest  io.Reader
}

func (d *drawn) Read(p []byte) (int, error) {
	if len(p) == len(d.first) {
		n := copy(p, d.first)
		d.first = nil
		return n, nil
	}
	return d.rest.Read(p)
}

// What is sent back to us with a card number in it is refused.
func TestNoMovementIsNamedLikeACard(t *testing.T) {
	card, err := hex.DecodeString("4111111111111111" + "abcdefabcdefabcd")
	must(t, err)
	b, err := sandbox.Open(sandbox.Config{Now: time.Now, Rand: &drawn{first: card, rest: rand.Reader}})
	must(t, err)
	doors := httptest.NewServer(b.Handler())
	t.Cleanup(func() {
		doors.Close()
		_ = b.Close()
	})
	r, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: doors.URL, Secret: secret, HTTP: doors.Client(), Now: time.Now})
	must(t, err)
	t.Cleanup(r.Close)
	sent, err := r.Transfer(t.Context(), rail.Transfer{AccountNumber: "9012345678", Amount: 500_000})
	if err != nil || flow.HoldsCard(sent.RailTransactionID) {
		t.Errorf("it is named %q, %v", sent.RailTransactionID, err)
	}
}
