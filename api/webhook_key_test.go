package api

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"till/flow"
	"till/hooks"
)

// holds says whether a webhook bears a signature that a public key verifies, as a
// merchant's own few lines would.
func holds(t *testing.T, public string, one caught) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
	must(t, err)
	for signature := range strings.FieldsSeq(one.header.Get("webhook-signature")) {
		text, ok := strings.CutPrefix(signature, "v1a,")
		raw, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && ed25519.Verify(key, []byte(one.header.Get("webhook-id")+"."+one.header.Get("webhook-timestamp")+"."+one.body), raw) {
			return true
		}
	}
	return false
}

// TestAnEndpointIsSignedForByAKeyPair adds one, which nobody is told a secret of, turns
// another one over to it with a day of both, and back.
func TestAnEndpointIsSignedForByAKeyPair(t *testing.T) {
	d := openDesk(t)
	d.server.cfg.NewSecret = func(kind flow.Signature) (string, error) { return hooks.NewSecret(kind, rand.Reader) }
	shop := d.catches()
	sent := func(id string) caught {
		t.Helper()
		event := d.ping(id)
		d.stands(event, "DELIVERED", "1")
		return shop.of(event)[0]
	}
	made := d.call("POST", endpointsPath, d.key, `{"url":"`+shop.url+`","signature":"v1a"}`, "Idempotency-Key", "a pair")
	d.want(made, http.StatusCreated, map[string]string{"data.signature": "v1a", "data.secret": ""})
	id, public := made.text("data.id"), made.text("data.publicKey")
	if again := d.call("POST", endpointsPath, d.key, `{"url":"`+shop.url+`","signature":"v1a"}`, "Idempotency-Key", "a pair"); again.body != made.body {
		t.Errorf("asked again: %s", again.body)
	}
	for _, r := range []reply{made, d.call("GET", endpointsPath+"/"+id, d.key, "")} {
		d.want(r, r.status, map[string]string{"data.publicKey": public, "data.secretHint": flow.PublicKeyBegins + "…" + public[len(public)-4:]})
		if strings.Contains(r.body, flow.PrivateKeyBegins) {
			t.Errorf("the private key is shown: %s", r.body)
		}
	}
	if !holds(t, public, sent(id)) {
		t.Error("the public key does not verify what is sent")
	}

	older := d.endpoint(d.key, shop.url, "charge.reversed")
	id, secret := older.text("data.id"), older.text("data.secret")
	d.want(older, http.StatusCreated, map[string]string{"data.signature": "v1", "data.publicKey": ""})
	turned := d.call("POST", endpointsPath+"/"+id+"/rotate-secret", d.key, `{"signature":"v1a"}`)
	d.want(turned, http.StatusOK, map[string]string{"data.signature": "v1a", "data.secret": ""})
	public = turned.text("data.publicKey")
	if one := sent(id); !holds(t, public, one) || !verifies(t, secret, one) {
		t.Errorf("for a day both sign: %s", one.header.Get("webhook-signature"))
	}
	d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":86401}`), http.StatusOK, nil)
	if one := sent(id); !holds(t, public, one) || verifies(t, secret, one) {
		t.Errorf("a day later the key alone signs: %s", one.header.Get("webhook-signature"))
	}
	same := d.call("POST", endpointsPath+"/"+id+"/rotate-secret", d.key, "")
	d.want(same, http.StatusOK, map[string]string{"data.signature": "v1a"})
	if next := same.text("data.publicKey"); next == public || !holds(t, next, sent(id)) {
		t.Errorf("rotated without a word of it: %s", same.body)
	}
	back := d.call("POST", endpointsPath+"/"+id+"/rotate-secret", d.key, `{"signature":"v1"}`)
	d.want(back, http.StatusOK, map[string]string{"data.signature": "v1", "data.publicKey": ""})
	if !verifies(t, back.text("data.secret"), sent(id)) {
		t.Error("the new secret does not verify what is sent")
	}

	for _, c := range []struct{ method, path, body, code string }{
		{"POST", endpointsPath, `{"url":"` + shop.url + `","signature":"v2"}`, "invalid_field"},
		{"POST", endpointsPath, `{"url":"` + shop.url + `","signature":""}`, "invalid_field"},
		{"POST", endpointsPath + "/" + id + "/rotate-secret", `{"signature":1}`, "invalid_field"},
		{"POST", endpointsPath + "/" + id + "/rotate-secret", `{"secret":"whsec_mine"}`, "unknown_field"},
		{"PATCH", endpointsPath + "/" + id, `{"signature":"v1a"}`, "unknown_field"},
	} {
		d.want(d.call(c.method, c.path, d.key, c.body), http.StatusBadRequest, map[string]string{"error.code": c.code})
	}
	if strings.Contains(d.log.String(), flow.PrivateKeyBegins) {
		t.Error("a private key is in the log")
	}
}
