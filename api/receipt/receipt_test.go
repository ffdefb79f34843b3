package receipt_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	"till/api/receipt"
	"till/flow"
	"till/flow/checkout"
)

// drawn is the receipt of a session that is paid.
func drawn(t *testing.T, s flow.Session) (image.Image, []byte) {
	t.Helper()
	now := time.Date(2026, time.November, 26, 8, 0, 0, 0, time.UTC)
	s.Status, s.AmountPaid, s.PaidAt = flow.SessionPaid, 500_000, now
	body, err := receipt.Draw(checkout.View{Session: s}, flow.Test, now)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return picture, body
}

// Everything stands on the paper: what is long goes on in the next line, so that
// two payments whose references differ at their ends can be told apart.
func TestNothingOfAReceiptIsCutOff(t *testing.T) {
	const name, description, reference = 100, 255, 100 // as long as the API takes them
	long := flow.Session{
		Merchant: strings.Repeat("W", name), CustomerName: strings.Repeat("Oluwaseun ", name/10), Description: strings.Repeat("D", description),
	}
	one, two := long, long
	one.Reference, two.Reference = strings.Repeat("0", reference-1)+"1", strings.Repeat("0", reference-1)+"2"
	picture, body := drawn(t, one)
	if _, other := drawn(t, two); bytes.Equal(body, other) {
		t.Error("the end of a reference is not on its receipt")
	}
	at := picture.Bounds()
	for y := 20; y < at.Dy(); y++ {
		for x := at.Dx() - 24; x < at.Dx(); x++ {
			if picture.At(x, y) != (color.RGBA{0xff, 0xff, 0xff, 0xff}) {
				t.Fatalf("something stands at the edge of the paper, in %d, %d of %v", x, y, at)
			}
		}
	}
}

// The letters of Nigeria's languages that the typeface lacks are written as bank
// accounts have them, and no sign as an empty box.
func TestAReceiptIsWrittenInLettersThatCanBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"Ọláṣubọ̀mí Ẹ̀ṣọ́":       "Olásubomí Eso",
		"O\u0323la\u0301":        "Ola",
		"Ụkachukwu Ịfeọma Ṅna":   "Ukachukwu Ifeoma Nna",
		"Ɗan Ɓauchi Ƙasimu Ƴ’aƴ": "Dan Bauchi Kasimu Y’ay",
		"Two bags, ₦5,000 each":  "Two bags, NGN 5,000 each",
		"\u202eAda\u200d\ufe0f":  "Ada",
		"王小明 Wang":               "… Wang",
		"محمد عبد الله":          "…",
		"Two 👩‍👩‍👧‍👦👕 shirts":    "Two … shirts",
	} {
		_, got := drawn(t, flow.Session{Merchant: "Ada Stores", CustomerName: text})
		if _, plain := drawn(t, flow.Session{Merchant: "Ada Stores", CustomerName: want}); !bytes.Equal(got, plain) {
			t.Errorf("%q is not written as %q", text, want)
		}
	}
}

// A receipt says of the money that it is of what went back or was taken back, and
// not of what had been gone before it was paid, or had come beyond.
func TestAReceiptTellsWhatOfItsOwnMoneyIsGone(t *testing.T) {
	draw := func(payments ...flow.Payment) []byte {
		now := time.Date(2026, time.November, 26, 8, 0, 0, 0, time.UTC)
		s := flow.Session{Merchant: "Ada Stores", Status: flow.SessionPaid, Amount: 500_000, AmountPaid: 500_000, PaidAt: now}
		body, err := receipt.Draw(checkout.View{Session: s, Payments: payments}, flow.Test, now)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	whole := flow.Payment{Match: flow.Matched, Amount: 500_000, Applied: 500_000, Fee: 17_500}
	part := func(p flow.Payment) flow.Payment {
		p.Match, p.Amount = flow.Partial, 300_000
		return p
	}
	over := func(p flow.Payment) flow.Payment {
		p.Match, p.Amount, p.Applied, p.Fee = flow.Excess, 600_000, max(p.Applied, 500_000), 17_500
		return p
	}
	taken, sent := whole, whole
	taken.Reversed, taken.Lost, taken.FeeBack = 500_000, 482_500, 17_500
	sent.Refunded = 50_000
	for name, c := range map[string]struct{ is, as []flow.Payment }{
		"a part that the bank took back before the rest came": {[]flow.Payment{part(flow.Payment{Reversed: 300_000}), whole}, []flow.Payment{whole}},
		"a part that went back before the rest came":          {[]flow.Payment{part(flow.Payment{Refunded: 300_000}), whole}, []flow.Payment{whole}},
		"too much, of which the bank took back what was":      {[]flow.Payment{over(flow.Payment{Reversed: 100_000})}, []flow.Payment{whole}},
		"too much, which waits":                               {[]flow.Payment{over(flow.Payment{Unapplied: 100_000})}, []flow.Payment{whole}},
		"too much, which went back":                           {[]flow.Payment{over(flow.Payment{Refunded: 100_000})}, []flow.Payment{whole}},
		"too much, of which some went back once the bank had the rest of it": {
			[]flow.Payment{over(flow.Payment{Reversed: 100_000, Refunded: 50_000})}, []flow.Payment{sent},
		},
		"too much, all of which the bank took back": {
			[]flow.Payment{over(flow.Payment{Reversed: 600_000, Lost: 482_500, FeeBack: 17_500})}, []flow.Payment{taken},
		},
		"too much, which was accepted, and then went back":      {[]flow.Payment{over(flow.Payment{Applied: 600_000, Refunded: 100_000})}, []flow.Payment{whole}},
		"too much, which was accepted, and then some went back": {[]flow.Payment{over(flow.Payment{Applied: 600_000, Refunded: 150_000})}, []flow.Payment{sent}},
		"too much, which was accepted, and then the bank took all": {
			[]flow.Payment{over(flow.Payment{Applied: 600_000, Reversed: 600_000, Lost: 581_000, FeeBack: 19_000})}, []flow.Payment{taken},
		},
		"too much, which went back, and then the bank took all": {
			[]flow.Payment{over(flow.Payment{Refunded: 100_000, Reversed: 600_000, Lost: 582_500, FeeBack: 17_500})}, []flow.Payment{taken},
		},
	} {
		if !bytes.Equal(draw(c.is...), draw(c.as...)) {
			t.Errorf("%s: the receipt tells it as something else", name)
		}
	}
	if bytes.Equal(draw(whole), draw(taken)) || bytes.Equal(draw(whole), draw(sent)) {
		t.Error("a receipt does not say what is gone")
	}
}
