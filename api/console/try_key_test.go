package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/hooks"
)

// What is signed by a key pair is judged by that pair, and only as Standard Webhooks
// writes it.
func TestWebhooksThatAKeyPairSignsAreCaught(t *testing.T) {
	w, v := tries(t)
	w.wants(v.post("/try/catch", nil), http.StatusSeeOther)
	endpoint := func() flow.Endpoint {
		t.Helper()
		list, err := w.services[flow.Test].Endpoints(t.Context(), w.ada.project.ID)
		if err != nil || len(list) != 1 {
			t.Fatalf("the project has %d endpoints, %v", len(list), err)
		}
		return list[0]
	}
	at := "/developers/webhooks/" + string(endpoint().ID)
	got, _ := v.order(at, at+"/secret", "signature", "v1a")
	w.wants(got, http.StatusOK, "whpk_")
	catch := func(kind, signature string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/try/caught/"+string(w.ada.project.ID), strings.NewReader(`{"event":"`+kind+`"}`))
		must(t, err)
		r.Header.Set("Webhook-Id", "msg_1")
		r.Header.Set("Webhook-Timestamp", "1800000000")
		r.Header.Set("Webhook-Signature", signature)
		r.Header.Set("Content-Type", "application/json")
		w.wants(w.do(&http.Client{}, r), http.StatusOK)
	}
	by := func(kind string) string {
		t.Helper()
		signature, err := hooks.Sign(endpoint().Secrets[:1], "msg_1", time.Unix(1800000000, 0), []byte(`{"event":"`+kind+`"}`))
		must(t, err)
		return signature
	}
	catch("bare", strings.TrimPrefix(by("bare"), "v1a,"))
	catch("anothers", by("bare"))
	if page := v.get("/try"); strings.Contains(page.body, "signature verifies") || strings.Count(page.body, "does not verify") != 2 {
		t.Errorf("what is not signed passes for signed: %s", page.body)
	}
	catch("charge.success", by("charge.success"))
	w.wants(v.get("/try"), http.StatusOK, "charge.success", "signature verifies")
}
