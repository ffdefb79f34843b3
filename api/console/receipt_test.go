package console_test

import (
	"bytes"
	"image/png"
	"net/http"
	"testing"

	"till/flow"
)

// A paid session has a receipt that is a picture; what is not paid, or another's,
// has none.
func TestAReceiptIsAPictureOfWhatWasPaid(t *testing.T) {
	w := open(t)
	pictures := map[string]string{}
	for _, more := range []string{`,"customerName":"Ada Obi","description":"Order 1182"`, `,"customerName":"Obi Eze","description":"Order 1183"`} {
		id := w.opened(w.ada, `,"mode":"chat"`+more)
		page := "/sessions/" + id + "/receipt.png"
		w.wants(w.as(flow.RoleSupport).get(page), http.StatusNotFound, "not paid")
		w.inChat(id, "Ada")
		w.pays(w.attempt(id), 500_000)
		w.until("it is paid", func() bool {
			s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(id))
			return err == nil && s.Status == flow.SessionPaid
		})
		got := w.as(flow.RoleSupport).get(page)
		w.wants(got, http.StatusOK)
		picture, err := png.Decode(bytes.NewReader([]byte(got.body)))
		if err != nil || picture.Bounds().Dx() != 720 || picture.Bounds().Dy() < 500 || got.header.Get("Content-Type") != "image/png" {
			t.Fatalf("%v, %v, %s", err, picture, got.header)
		}
		pictures[got.body] = id
		w.wants(w.as(flow.RoleOwner, w.merchant("Bola "+id[len(id)-4:])).get(page), http.StatusNotFound)
	}
	if len(pictures) != 2 {
		t.Error("two receipts are the same picture")
	}
}
