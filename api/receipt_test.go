package api

import (
	"bytes"
	"image/color"
	"image/png"
	"net/http"
	"testing"

	"till/flow"
	"till/flow/await"
)

// paidFor is a session that is paid, and its client secret.
func (s *shop) paidFor(more string) (id, secret string) {
	s.t.Helper()
	opened := s.ask("POST", sessions, s.key, with(more))
	id = opened.text("data.id")
	s.want(s.ask("GET", sessions+"/"+id+"/receipt.png", s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_not_paid"})
	pay := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, "")
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+pay.text("data.accountNumber")+`"}`), http.StatusOK, nil)
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PAID"})
	return id, opened.text("data.clientSecret")
}

// A session that is paid has a receipt, for its merchant and for whoever brings
// its client secret; nobody else gets one, and what is not paid has none.
func TestAReceiptIsAPictureForWhoMayReadTheSession(t *testing.T) {
	s := open(t)
	id, secret := s.paidFor(`"customerName":"Ada Obi","description":"Two shirts"`)
	other, otherSecret := s.paidFor(`"customerName":"Obi Eze"`)
	url := sessions + "/" + id + "/receipt.png"
	_, _, stranger := s.merchant("Bola Stores")
	withSecret := func(text string) http.Header { return http.Header{"X-Client-Secret": {text}} }

	got := s.ask("GET", url, s.key, "")
	s.want(got, http.StatusOK, nil)
	for name, want := range map[string]string{
		"Content-Type": "image/png", "Content-Disposition": `inline; filename="receipt-` + id + `.png"`, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q", name, got.header.Get(name))
		}
	}
	picture, err := png.Decode(bytes.NewReader([]byte(got.body)))
	must(t, err)
	at, blue := picture.Bounds(), color.RGBA{0x1d, 0x4e, 0xd8, 0xff}
	if at.Dx() != 720 || at.Dy() < 500 || picture.At(1, 1) != blue || picture.At(1, at.Dy()-1) == picture.At(1, 1) {
		t.Errorf("a picture of %v, %v on top", at, picture.At(1, 1))
	}
	inked := 0
	for x := range at.Dx() {
		for y := 20; y < at.Dy(); y++ {
			if r, g, b, _ := picture.At(x, y).RGBA(); r+g+b < 3*0xffff {
				inked++
			}
		}
	}
	if inked < 5_000 {
		t.Errorf("only %d points of it are written on", inked)
	}

	page := s.ask("GET", url, s.public, "", withSecret(secret))
	s.want(page, http.StatusOK, nil)
	if another := s.ask("GET", sessions+"/"+other+"/receipt.png", s.key, ""); another.body == got.body {
		t.Error("two sessions have the same receipt")
	}
	for name, c := range map[string]struct {
		url, key string
		h        http.Header
		status   int
		code     string
	}{
		"no key":                        {url, "", nil, http.StatusUnauthorized, "missing_api_key"},
		"a wrong key":                   {url, "sk_test_nobodys", nil, http.StatusUnauthorized, "invalid_api_key"},
		"a public key alone":            {url, s.public, nil, http.StatusForbidden, "secret_key_required"},
		"another session's secret":      {url, s.public, withSecret(otherSecret), http.StatusForbidden, "secret_key_required"},
		"what was never there":          {sessions + "/wsp_sess_01k9z3m5x8v2c7n4b6t1q0w9zz/receipt.png", s.key, nil, http.StatusNotFound, "resource_not_found"},
		"another project's secret key":  {url, stranger, nil, http.StatusNotFound, "resource_not_found"},
		"something behind the question": {url + "?size=9", s.key, nil, http.StatusBadRequest, "unknown_field"},
	} {
		var h []http.Header
		if c.h != nil {
			h = append(h, c.h)
		}
		if got := s.ask("GET", c.url, c.key, "", h...); got.status != c.status || got.code() != c.code {
			t.Errorf("with %s: %d %s, want %d %s", name, got.status, got.code(), c.status, c.code)
		}
	}
}

// What went back, or was taken back by the bank, stands on the receipt of what was
// paid: a line more for each.
func TestAReceiptTellsWhatWentBack(t *testing.T) {
	s := open(t)
	s.bank.sendsOut()
	id, _ := s.paidFor(`"description":"Two shirts"`)
	height := func() int {
		got := s.ask("GET", sessions+"/"+id+"/receipt.png", s.key, "")
		s.want(got, http.StatusOK, nil)
		picture, err := png.DecodeConfig(bytes.NewReader([]byte(got.body)))
		must(t, err)
		return picture.Height
	}
	whole := height()
	paid := s.ask("GET", "/v1/payments", s.key, "")
	refund := s.ask("POST", "/v1/refunds", s.key, `{"paymentId":"`+paid.text("data.items.0.id")+`","amount":20000}`)
	s.want(refund, http.StatusCreated, nil)
	await.Until(t, "it is sent, for what the bank takes back before is not", func() bool {
		return s.ask("GET", "/v1/refunds/"+refund.text("data.id"), s.key, "").text("data.status") == string(flow.RefundProcessed)
	})
	if got := height(); got != whole+40 {
		t.Errorf("%d pixels high, with nothing of what was sent back: before it was %d", got, whole)
	}
	s.want(s.ask("POST", "/v1/test/bank/reversals", s.key, `{"railTransactionId":"`+paid.text("data.items.0.railTransactionId")+`"}`), http.StatusOK, nil)
	if got := height(); got != whole+80 {
		t.Errorf("%d pixels high, with nothing of what the bank took back: before both it was %d", got, whole)
	}
}

// What was sent back and did not arrive is with us again: a receipt that says that it was
// sent would be held against its merchant.
func TestAReceiptTellsWhatDidNotArrive(t *testing.T) {
	d := openDesk(t)
	height := func(refund string) int {
		d.t.Helper()
		got := d.ask("GET", sessions+"/"+d.ask("GET", refundsPath+"/"+refund, d.key, "").text("data.sessionId")+"/receipt.png", d.key, "")
		d.want(got, http.StatusOK, nil)
		picture, err := png.DecodeConfig(bytes.NewReader([]byte(got.body)))
		must(t, err)
		return picture.Height
	}
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{"refunds":"fail"}`), http.StatusOK, nil)
	never := d.refund().text("data.id")
	d.refundBecomes(never, flow.RefundFailed)
	if was, got := height(never), height(d.bounced()); got != was+40 {
		t.Errorf("%d pixels high: one line more than the %d where nothing was sent says what did not arrive", got, was)
	}
}
