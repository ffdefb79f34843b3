package main

import (
	"testing"
	"time"

	"till/flow"
	"till/hooks"
)

// What the sender cannot send through a fault of our own is no try of an endpoint:
// a delivery whose secret this process cannot open waits. What is too large will never
// be sent.
func TestWhatCannotBeSignedIsSaidNotToHaveBeenSent(t *testing.T) {
	sender := hooks.New(hooks.Config{Now: time.Now})
	defer sender.Close()
	d := flow.Delivery{Event: "evt_1", URL: "https://shop.test", Body: []byte("{}")}
	if v := post(t.Context(), sender, d, time.Now()); !v.Ours || !v.Unsent || v.OK || v.Reason != hooks.WordUnsendable {
		t.Errorf("the verdict is %+v", v)
	}
	d.Body = make([]byte, 1<<20)
	if v := post(t.Context(), sender, d, time.Now()); !v.Ours || v.Unsent || v.OK || v.Reason != hooks.WordTooLarge {
		t.Errorf("the verdict on what is too large is %+v", v)
	}
}
