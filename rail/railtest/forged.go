package railtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"till/flow"
	"till/rail"
)

// forged tries messages that the provider did not send, or not so, or not now.
func forged(on trial) {
	t, w := on.t, on.world
	ins := start(t, w.Rail, order(w, flow.BankTransfer, "forged"))
	if _, err := w.Provider.Transfer(t.Context(), rail.Transfer{AccountNumber: ins.AccountNumber}); err != nil {
		t.Fatalf("Transfer = %v", err)
	}
	tamper(on, next(t, w))
}

// forgedOut tries what the provider did not say of money that it sent, or of
// money that came back.
func forgedOut(on trial) {
	t, w := on.t, on.world
	weather(t, w, rail.Conditions{Up: true, Refunds: rail.FateBounce})
	disburse(on, refund("wsp_rf_forged", 500_000, credited(on, "forged", 500_000)))
	w.Pass(soon)
	for range 2 {
		tamper(on, next(t, w))
	}
}

// tamper wants a message to be believed, and none that is made of it.
func tamper(on trial, m Message) {
	t, w := on.t, on.world
	t.Helper()
	if _, err := w.Rail.Parse(m.Header, m.Body); err != nil {
		t.Fatalf("Parse of the message itself = %v", err)
	}
	if _, err := w.Rail.Parse(w.Sign(w.Secret, w.Now(), m.Body), m.Body); err != nil {
		t.Fatalf("Parse of the message signed here = %v", err)
	}
	for name, f := range forgeries(w, m) {
		if got, err := w.Rail.Parse(f.Header, f.Body); !errors.Is(err, rail.ErrForged) || len(got) > 0 {
			t.Errorf("%s: Parse = %+v, %v; want ErrForged", name, got, err)
		}
	}
}

// forgeries are variants of a message that must be refused.
func forgeries(w World, m Message) map[string]Message {
	now := w.Now()
	edited := bytes.Replace(m.Body, []byte("500000"), []byte("900000"), 1)
	out := map[string]Message{
		"no header at all":        {http.Header{}, m.Body},
		"nil header":              {nil, m.Body},
		"another secret":          {w.Sign("another secret, as long", now, m.Body), m.Body},
		"no secret":               {w.Sign("", now, m.Body), m.Body},
		"the secret and more":     {w.Sign(w.Secret+"x", now, m.Body), m.Body},
		"too old":                 {w.Sign(w.Secret, now.Add(-5*time.Minute-2*time.Second), m.Body), m.Body},
		"a day old":               {w.Sign(w.Secret, now.Add(-24*time.Hour), m.Body), m.Body},
		"from the future":         {w.Sign(w.Secret, now.Add(5*time.Minute+2*time.Second), m.Body), m.Body},
		"edited amount":           {m.Header, edited},
		"a space more":            {m.Header, append(slices.Clone(m.Body), ' ')},
		"a byte less":             {m.Header, m.Body[:len(m.Body)-1]},
		"empty body":              {m.Header, nil},
		"signature of other body": {w.Sign(w.Secret, now, []byte("{}")), m.Body},
		"endless body":            {m.Header, bytes.Repeat([]byte(" "), 1<<20)},
	}
	// Which header carries the signature is the scheme's: each is spoilt that
	// signing sets.
	for key, values := range w.Sign(w.Secret, now, m.Body) {
		spoil := func(name string, with ...string) {
			h := m.Header.Clone()
			h[key] = with
			out[name+" "+key] = Message{h, m.Body}
		}
		v := values[0]
		for i := range v { // also of the time that it names: what is old must not be told anew
			flipped := []byte(v)
			flipped[i] ^= 1
			spoil(fmt.Sprint("flipped at ", i, " of"), string(flipped))
		}
		spoil("missing")
		spoil("empty", "")
		spoil("cut", v[:len(v)-1])
		spoil("halved", v[:len(v)/2])
		spoil("longer", v+"0")
		spoil("twice", v, v)
		spoil("upper-case", string(bytes.ToUpper([]byte(v))))
		spoil("spaced", " "+v)
	}
	return out
}
