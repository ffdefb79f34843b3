package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/rail"
)

// call posts to the API as Ada's server does, with an Idempotency-Key unless it is
// "".
func (w *world) call(path, body, once string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.base+path, strings.NewReader(body))
	must(w.t, err)
	r.Header.Set("Authorization", "Bearer "+w.ada.secret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if once != "" {
		r.Header.Set("Idempotency-Key", once)
	}
	return w.do(&http.Client{}, r)
}

// value is a member of an answer's data.
func (r reply) value(name string) string {
	var got struct{ Data map[string]any }
	_ = json.Unmarshal([]byte(r.body), &got)
	text, _ := got.Data[name].(string)
	return text
}

// payFor pays a session by bank transfer.
func (w *world) payFor(opened reply) {
	w.t.Helper()
	pay := w.call("/v1/whatsapp/checkout/sessions/"+opened.value("id")+"/pay/bank-transfer", "", "")
	w.wants(pay, http.StatusOK)
	w.wants(w.call("/v1/test/bank/transfers", `{"accountNumber":"`+pay.value("accountNumber")+`"}`, ""), http.StatusOK)
}

// endpoint adds an endpoint and returns the path of its page and its secret.
func (v *visitor) endpoint(pairs ...string) (path, secret string) {
	v.w.t.Helper()
	got, _ := v.order("/developers/webhooks", "/developers/webhooks", append(pairs, "url", "https://example.com/hook")...)
	v.w.wants(got, http.StatusOK, "shown on this page alone")
	return regexp.MustCompile(`href="(/developers/webhooks/[^"]+)">I have`).FindStringSubmatch(got.body)[1],
		regexp.MustCompile(`whsec_[0-9A-Za-z+/]+=`).FindString(html.UnescapeString(got.body))
}

// TestEndpoints adds an endpoint, changes it, disables and enables it, rotates its
// secret and deletes it.
func TestEndpoints(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleDeveloper)
	w.wants(v.get("/developers/webhooks"), http.StatusOK, "bin/till listen")
	w.wants(v.post("/developers/webhooks", form("url", "nonsense", "events", "no.such")), http.StatusBadRequest, "The URL is not a URL", "no kind of event", "nonsense")
	at, secret := v.endpoint("description", `<script>alert(1)</script>"'>`)
	for _, page := range []string{at, "/developers/webhooks"} {
		got := v.get(page)
		w.wants(got, http.StatusOK, "https://example.com/hook", "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&gt;")
		if strings.Contains(html.UnescapeString(got.body), secret) {
			t.Errorf("%s shows the secret", page)
		}
	}
	w.wants(v.post(at, form("url", "https://example.com/other", "events", "charge.success", "events", "session.created", "pace", "7")), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusOK, "The endpoint is changed", "https://example.com/other", `value="session.created" checked`, `max="100" value="7"`)
	for _, pace := range []string{"0", "101", "-1", "7.5", "many"} {
		w.wants(v.post(at, form("url", "https://example.com/other", "pace", pace)), http.StatusBadRequest, "a number from 1 to 100")
	}
	all := []string{"url", "https://example.com/other"}
	for _, kind := range flow.EventKinds() {
		all = append(all, "events", string(kind))
	}
	w.wants(v.post(at, form(all...)), http.StatusSeeOther)
	w.wants(v.post(at, form(append(all, "events", "ping")...)), http.StatusBadRequest, "Name each kind of event once.")

	w.wants(v.post(at+"/status", form("status", "DISABLED")), http.StatusBadRequest, "tick that you mean it")
	w.wants(v.post(at+"/status", form("status", "DISABLED", "confirm", "yes")), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusOK, "somebody disabled it")
	w.wants(v.post(at+"/ping", nil), http.StatusConflict)
	w.wants(v.post(at+"/status", form("status", "ENABLED", "held", "drop")), http.StatusSeeOther)

	rotated, fields := v.order(at, at+"/secret")
	w.wants(rotated, http.StatusOK, "whsec_")
	second := regexp.MustCompile(`whsec_[0-9A-Za-z+/]+=`).FindString(html.UnescapeString(rotated.body))
	if again := v.post(at+"/secret", fields); second == secret || !strings.Contains(html.UnescapeString(again.body), second) {
		t.Error("the secret stays, or a reload rotates it again")
	}
	w.wants(v.get(at), http.StatusOK, "signs too until")

	paired, fields := v.order(at, at+"/secret", "signature", "v1a")
	w.wants(paired, http.StatusOK, "This public key verifies", "For the next 24 hours the old secret signs too")
	key := regexp.MustCompile(`whpk_[0-9A-Za-z+/]+=`).FindString(html.UnescapeString(paired.body))
	if again := v.post(at+"/secret", fields); key == "" || !strings.Contains(html.UnescapeString(again.body), key) || !strings.Contains(html.UnescapeString(paired.body), "export TILL_WEBHOOK_PUBLIC_KEY="+key) || strings.Contains(paired.body, "whsk_") || strings.Contains(paired.body, "Shown once") {
		t.Errorf("the public key is %q, or another after a reload, without its command, or the private one is shown", key)
	}
	page := v.get(at)
	w.wants(page, http.StatusOK, "Ed25519", `value="v1a" selected`)
	if !strings.Contains(html.UnescapeString(page.body), key) {
		t.Errorf("the page of the endpoint does not show %s", key)
	}
	w.wants(v.post(at+"/secret", form("signature", "v2")), http.StatusBadRequest, "There is no signature")
	w.wants(v.post("/developers/webhooks", form("url", "https://example.com/hook", "signature", "v2")), http.StatusBadRequest, "There is no signature")

	other := w.as(flow.RoleOwner, w.merchant("Others"))
	w.wants(other.get(at), http.StatusNotFound)
	for _, act := range []string{"", "/status", "/secret", "/ping", "/replay", "/delete"} {
		w.wants(other.post(at+act, form("confirm", "delete", "status", "DISABLED", "url", "https://example.com")), http.StatusNotFound)
	}
	w.wants(v.post(at+"/delete", form("confirm", "yes")), http.StatusBadRequest)
	w.wants(v.post(at+"/delete", form("confirm", "delete")), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusNotFound)
}

// TestDeliveries sees what was sent and what came back, sends it again, and replays
// a stretch.
func TestDeliveries(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	at, _ := v.endpoint()
	w.answers(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status", Body: []byte(`<script>alert("down")</script>`), Duration: time.Millisecond})
	pinged, fields := v.order(at, at+"/ping")
	w.wants(pinged, http.StatusSeeOther)
	event := pinged.header.Get("Location")
	if again := v.post(at+"/ping", fields); again.header.Get("Location") != event {
		t.Error("a reload sent another ping")
	}
	await.Until(t, "the ping is answered", func() bool { return strings.Contains(v.get(event).body, "s-dead") })
	for _, page := range []string{event, at, at + "?show=dead"} {
		w.wants(v.get(page), http.StatusOK, "&lt;script&gt;alert(&#34;down&#34;)&lt;/script&gt;", "webhook-signature: v1,", "500")
	}
	w.answers(flow.Verdict{OK: true, Status: http.StatusOK, Body: []byte("thanks")})
	endpoint := strings.TrimPrefix(at, "/developers/webhooks/")
	w.wants(v.post(event+"/resend", form("endpoint", endpoint)), http.StatusSeeOther)
	await.Until(t, "it is delivered", func() bool { return strings.Contains(v.get(event).body, "s-delivered") })
	w.wants(v.get(event), http.StatusOK, "asked for by hand: resend", "thanks")
	w.wants(v.get(at), http.StatusOK, "100%: 1 of 1")

	w.payFor(w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com","customerPhone":"08031234567","customerName":"<script>alert(1)</script>\"'>"}`, ""))
	await.Until(t, "the payment is told", func() bool { return strings.Contains(v.get(at).body, "charge.success</a>") })
	paid := regexp.MustCompile(`href="(/developers/events/[^"]+)">charge\.success`).FindStringSubmatch(v.get(at).body)[1]
	page := v.get(paid)
	w.wants(page, http.StatusOK, "&#34;phone&#34;: &#34;&#43;234•••••4567&#34;")
	w.wants(page, http.StatusOK, "script\\u003ealert(1)")
	if strings.Contains(page.body, "2348031234567") {
		t.Error("a payer's number is shown whole")
	}
	sent := len(w.deliveries())
	stretch := func(from, to time.Duration) []string {
		const browsers = "2006-01-02T15:04"
		lagos := time.FixedZone("Lagos", 3600)
		return []string{"from", w.now().Add(from).In(lagos).Format(browsers), "to", w.now().Add(to).In(lagos).Format(browsers)}
	}
	w.wants(v.post(at+"/replay", form(stretch(time.Hour, 0)...)), http.StatusBadRequest, "The end must be after")
	w.wants(v.post(at+"/replay", form(stretch(-40*24*time.Hour, 0)...)), http.StatusBadRequest, "at most 31 days")
	w.wants(v.post(at+"/replay", form(append(stretch(-time.Hour, time.Hour), "only", "dead")...)), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusOK, "on their way again: 0")
	w.wants(v.post(at+"/replay", form(stretch(-time.Hour, time.Hour)...)), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusOK, "on their way again: 1")
	await.Until(t, "it is sent again", func() bool { return len(w.deliveries()) > sent })

	other := w.as(flow.RoleOwner, w.merchant("Others"))
	w.wants(other.get(event), http.StatusNotFound)
	w.wants(other.post(event+"/resend", nil), http.StatusNotFound)
}

// TestADisabledEndpoint says of a disabled endpoint what waits for it and what does
// not, as it is: who was told that all of it waits would never replay the rest.
func TestADisabledEndpoint(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	at, _ := v.endpoint()
	w.wants(v.get(at), http.StatusOK, "What it is owed waits until it is enabled. What happens meanwhile is not kept for it: a replay sends that.")
	w.wants(v.post(at+"/status", form("status", "DISABLED", "confirm", "yes")), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusOK, "What it was owed waits until it is enabled. What happens from now on is not kept for it: replay sends that.")
	opened := w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com"}`, "")
	w.payFor(opened)
	await.Until(t, "the payment is an event", func() bool {
		return strings.Contains(w.ask(http.MethodGet, "/v1/events?type=charge.success", w.ada.secret, "").body, "evt_")
	})
	page := v.get("/sessions/" + opened.value("id"))
	w.wants(page, http.StatusOK, "sent to nobody")
	if strings.Contains(page.body, "nobody wanted it") {
		t.Error("it is said that nobody wanted what a disabled endpoint asks for")
	}
	w.wants(v.post(at+"/status", form("status", "ENABLED", "held", "deliver")), http.StatusSeeOther)
	w.wants(v.get(at), http.StatusOK, "What happened while it was disabled is sent by a replay alone.", "Nothing was sent here yet")
}

// TestWhatWaitsForAnEndpoint stands among what happens next in a session, with why: of a
// webhook that is held no timer knows when it goes out.
func TestWhatWaitsForAnEndpoint(t *testing.T) {
	w := open(t)
	owner, support := w.as(flow.RoleOwner), w.as(flow.RoleSupport)
	at, _ := owner.endpoint("events", "session.created")
	w.answers(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"})
	create := func() string {
		return "/sessions/" + w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com"}`, "").value("id")
	}
	for range 20 {
		create()
	}
	await.Until(t, "it is held back", func() bool { return strings.Contains(owner.get(at).body, "held back") })
	page := create()
	w.wants(support.get(page), http.StatusOK, "once example.com takes webhooks again: session.created. It is held back: 2")
	w.wants(owner.post(at+"/status", form("status", "DISABLED", "confirm", "yes")), http.StatusSeeOther)
	w.wants(support.get(page), http.StatusOK, "once example.com takes webhooks again: session.created. It is disabled: somebody disabled it")
	w.wants(owner.post(at+"/status", form("status", "ENABLED", "held", "drop")), http.StatusSeeOther)
	if got := support.get(page).body; strings.Contains(got, "takes webhooks again") {
		t.Error("what is dropped is said to wait")
	}
}

// TestAnEndpointThatRefusesEverything is shown as one that fails, as REST and the command
// line say of it: it is stopped for that after five days.
func TestAnEndpointThatRefusesEverything(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleDeveloper)
	at, _ := v.endpoint()
	w.answers(flow.Verdict{Status: http.StatusNotFound, Reason: "status", Duration: time.Millisecond})
	w.payFor(w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com"}`, ""))
	await.Until(t, "the payment is refused", func() bool { return strings.Contains(v.get(at).body, "1 try") })
	for _, page := range []string{at, "/developers/webhooks"} {
		w.wants(v.get(page), http.StatusOK, ">failing</span>", "it refuses what it is sent")
	}
	if rest := w.ask(http.MethodGet, "/v1/webhook-endpoints", w.ada.secret, "").body; strings.Contains(rest, `"failingSince":null`) {
		t.Errorf("REST says that it does not fail: %s", rest)
	}
}

// TestAnEndpointThatTillDisabled is told of on the first page to those who may mend it:
// where it is the only one, no other endpoint hears of it.
func TestAnEndpointThatTillDisabled(t *testing.T) {
	w := open(t)
	owner, support := w.as(flow.RoleOwner), w.as(flow.RoleSupport)
	at, _ := owner.endpoint()
	const told = "it answered 410 Gone. Mend it, then enable it."
	said := func(v *visitor) bool { return strings.Contains(v.get("/").body, told) }
	if said(owner) {
		t.Error("nothing happened, and it is told of")
	}
	w.answers(flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"})
	pinged, _ := owner.order(at, at+"/ping")
	w.wants(pinged, http.StatusSeeOther)
	await.Until(t, "the first page to tell of it", func() bool { return said(owner) })
	if said(support) || strings.Contains(support.get("/").body, "example.com/hook") {
		t.Error("a supporter is told, and may do nothing about it")
	}
	w.wants(owner.post(at+"/status", form("status", "ENABLED", "held", "deliver")), http.StatusSeeOther)
	w.wants(owner.post(at+"/status", form("status", "DISABLED", "confirm", "yes")), http.StatusSeeOther)
	if body := owner.get("/").body; strings.Contains(body, "Nothing is sent to") {
		t.Error("what somebody disabled themselves is told of")
	}
}

// TestRequests shows API requests without what is secret in them.
func TestRequests(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleDeveloper)
	w.wants(v.get("/developers/requests"), http.StatusOK, "No request yet")
	const body = `{"amount":500000,"customerEmail":"a@example.com","customerName":"<script>alert(1)</script>","metadata":{"note":"it's"}}`
	named := w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com","metadata":{"bvn":"22222222222"}}`, "")
	w.wants(named, http.StatusBadRequest, "invalid_field")
	opened := w.call("/v1/whatsapp/checkout/sessions", body, "once and for all")
	w.wants(opened, http.StatusCreated)
	w.call("/v1/whatsapp/checkout/sessions", body, "once and for all")
	card := w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com","customerName":"4084 0840 8408 4081"}`, "")
	w.wants(card, http.StatusBadRequest, "card_data_not_accepted")
	w.wants(w.call("/v1/refunds", `{"amount":-1}`, ""), http.StatusBadRequest)
	w.wants(w.call("/v1/verification/identities", `{"type":"BVN","number":"22222222221","consent":true}`, ""), http.StatusBadRequest)

	list := v.get("/developers/requests")
	w.wants(list, http.StatusOK, "idempotent replay", "POST /v1/refunds", "invalid_field", opened.header.Get("X-Request-Id"))
	refused := v.get("/developers/requests?status=4")
	w.wants(refused, http.StatusOK, "/v1/refunds")
	if strings.Contains(refused.body, "/developers/requests/"+opened.header.Get("X-Request-Id")) {
		t.Error("a success is among the refusals")
	}
	page := v.get("/developers/requests/" + opened.header.Get("X-Request-Id"))
	w.wants(page, http.StatusOK, "&lt;script&gt;alert(1)", "Authorization: Bearer $TILL_SECRET_KEY", `it&#39;\&#39;&#39;s`, "Idempotency-Key: $(openssl")
	w.wants(v.get("/developers/requests/"+card.header.Get("X-Request-Id")), http.StatusOK, "**** **** **** ****")
	for _, secret := range []string{"22222222222", w.ada.secret, opened.value("clientSecret")} {
		if secret == "" || strings.Contains(page.body, secret) {
			t.Errorf("the page holds %q", secret)
		}
	}
	if got := v.get("/developers/requests/" + named.header.Get("X-Request-Id")); got.status != http.StatusOK || strings.Contains(got.body, "22222222222") {
		t.Errorf("the page of what was refused: %d, or it holds the number", got.status)
	}
	identity := regexp.MustCompile(`href="(/developers/requests/[^"]+)">POST /v1/verification/identities`).FindStringSubmatch(list.body)[1]
	w.wants(v.get(identity), http.StatusOK, "never kept")
	if strings.Contains(v.get(identity).body, "22222222221") {
		t.Error("a BVN is kept")
	}
	other := w.as(flow.RoleOwner, w.merchant("Others"))
	w.wants(other.get("/developers/requests"), http.StatusOK, "No request yet")
	w.wants(other.get(identity), http.StatusNotFound)
}

// TestACopiedRequestAsksTheSameAgain gives to copy what asks the very same once more: a
// read that was refused for its body must not become a refund.
func TestACopiedRequestAsksTheSameAgain(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleDeveloper)
	opened := w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com"}`, "")
	w.payFor(opened)
	at := "/v1/whatsapp/checkout/sessions/" + opened.value("id")
	await.Until(t, "it is paid", func() bool { return w.ask(http.MethodGet, at, w.ada.secret, "").value("status") == "PAID" })
	for name, c := range map[string]struct {
		method, path, key, secret, body string
		wants                           []string
	}{
		"a read with a body": {http.MethodGet, "/v1/refunds", w.ada.secret, "", `{"paymentId":"wsp_pay_1"}`, []string{"curl -sS -X GET "}},
		"a read of no body":  {http.MethodHead, "/v1/balance", w.ada.secret, "", "", []string{"curl -sS -I "}},
		"a page of a payer":  {http.MethodGet, at, w.ada.public, opened.value("clientSecret"), "", []string{"Bearer $TILL_PUBLIC_KEY", "X-Client-Secret: $TILL_CLIENT_SECRET"}},
		"the list of banks":  {http.MethodGet, "/v1/verification/banks", w.ada.public, "", "", []string{"Bearer $TILL_PUBLIC_KEY"}},
		"a name of a file":   {http.MethodPost, "/v1/refunds", w.ada.secret, "", "@.env", []string{"--data-raw '@.env'"}}, // and not what is in it
		"a receipt":          {http.MethodGet, at + "/receipt.png", w.ada.secret, "", "", []string{"-o receipt.png", "A picture: it is not kept."}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, w.base+c.path, strings.NewReader(c.body))
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+c.key)
		if c.secret != "" {
			r.Header.Set("X-Client-Secret", c.secret)
		}
		page := v.get("/developers/requests/" + w.do(&http.Client{}, r).header.Get("X-Request-Id"))
		shown := html.UnescapeString(page.body)
		for _, want := range c.wants {
			if page.status != http.StatusOK || !strings.Contains(shown, want) {
				t.Errorf("%s: %d, or without %q: %s", name, page.status, want, regexp.MustCompile(`curl -sS[^<]*`).FindString(shown))
			}
		}
		if strings.Contains(shown, "PNG") || c.secret == "" && strings.Contains(shown, "X-Client-Secret") || c.secret != "" && strings.Contains(shown, c.secret) {
			t.Errorf("%s: the page shows a picture as a text, asks for a secret that was not sent, or holds one", name)
		}
	}
}

// TestAPingThatIsNotTaken waits for nobody among the exceptions: it tells nothing, and whoever
// sent it was told.
func TestAPingThatIsNotTaken(t *testing.T) {
	w := open(t)
	owner := w.as(flow.RoleOwner)
	at, _ := owner.endpoint()
	w.answers(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"})
	pinged, _ := owner.order(at, at+"/ping")
	w.wants(pinged, http.StatusSeeOther)
	await.Until(t, "the ping is answered", func() bool { return strings.Contains(owner.get(pinged.header.Get("Location")).body, "s-dead") })
	w.wants(owner.get("/exceptions?queue=webhooks"), http.StatusOK, "Every event arrived or is still tried.")
}

// TestADeadWebhookWithoutASession leads who may to where it is sent again.
func TestADeadWebhookWithoutASession(t *testing.T) {
	w := open(t)
	owner := w.as(flow.RoleOwner)
	_, _ = owner.endpoint()
	w.answers(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"})
	if _, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "9990001112", Amount: 123_400, Collects: w.ada.project.ID}); err != nil {
		t.Fatal(err)
	}
	var link string
	await.Until(t, "the event of money of no session is given up", func() bool {
		found := regexp.MustCompile(`<a href="(/developers/events/evt_[^"]+)">Send it again</a>`).FindStringSubmatch(owner.get("/exceptions?queue=webhooks").body)
		if found != nil {
			link = found[1]
		}
		return found != nil
	})
	w.wants(owner.get(link), http.StatusOK, "payment.unmatched")
	seen := w.as(flow.RoleSupport).get("/exceptions?queue=webhooks")
	w.wants(seen, http.StatusOK, "A developer or an owner sends it again")
	if strings.Contains(seen.body, "/developers/events/") {
		t.Error("a supporter is led to a page that they may not open")
	}
}
