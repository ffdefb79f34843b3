package api

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"till/flow"
	"till/flow/await"
	"till/rail"
)

// doubled is a request that a route takes, and another one that it would take.
type doubled struct{ path, key, body, other string }

// doubles are one request for every route that takes an Idempotency-Key.
func (d *desk) doubles() map[string]doubled {
	d.t.Helper()
	d.tomorrow() // or what came is due by the time that a payout is asked for
	made := func(path, body string) reply {
		d.t.Helper()
		r := d.ask("POST", path, d.key, body)
		if r.status >= http.StatusBadRequest {
			d.t.Fatalf("%s: %d %s", path, r.status, r.body)
		}
		return r
	}
	owner := `{"email":"` + ownerEmail + `","password":"` + ownerPass + `","businessName":"`
	d.want(d.ask("POST", "/v1/auth/signup", "", owner+`Ada Stores"}`), http.StatusCreated, nil)
	other := strings.Replace(owner, "owner@", "other@", 1)
	token, p := d.desk("Bola Stores")
	project := projectsPath + "/" + string(p.ID)
	kid, _ := d.newAPIKey(token, string(p.ID), "secret")
	session := sessions + "/" + d.session("")
	ussd := made(session+"/pay/ussd", "").text("data.paymentCode")
	card := made(session+"/pay/card", "").text("data.attemptId")
	refund, bounced := `{"chargeId":"`+d.bought()+`","amount":`, d.bounced()
	charge := made("/v1/charges", good)
	account := `{"accountNumber":"` + charge.text("data.virtualAccount.accountNumber") + `","amount":`
	another := `{"accountNumber":"` + made(sessions+"/"+d.session("")+"/pay/bank-transfer", "").text("data.accountNumber") + `","amount":`
	var credits []string
	for _, amount := range []string{`100}`, `200}`} {
		credits = append(credits, made("/v1/test/bank/transfers", another+amount).text("data.railTransactionId"))
	}
	over := made(sessions+"/"+d.session("")+"/pay/bank-transfer", "").text("data.accountNumber")
	held := paymentsPath + "/" + d.comes(over, "620000", "EXCESS")
	phone := "/v1/test/phones/" + made("/v1/test/phones", `{}`).text("data.phone") + "/messages"
	resolve := `{"bankCode":"` + rail.TestBankCode + `","accountNumber":"`
	hook := endpointsPath + "/" + d.hook()
	event := eventsPath + "/" + made(hook+"/ping", "").text("data.eventId")
	stretch := `{"from":"2026-11-21T09:00:00Z","to":"2026-11-21T10:00:00Z"`
	rename := func(path, id string) string { return strings.Replace(path, ":id", id, 1) }
	out := map[string]doubled{
		"/v1/auth/signup":                      {"", "", other + `Ada Shoes"}`, other + `Ada Boots"}`},
		"/v1/auth/login":                       {"", "", login(ownerEmail, ownerPass), login("OWNER@example.com", ownerPass)},
		logoutPath:                             {"", d.tokenFor(p), ``, `{}`},
		projectsPath:                           {"", token, `{"name":"Shoes"}`, `{"name":"Boots"}`},
		projectsPath + "/:id/keys":             {project + "/keys", token, `{"environment":"test","kind":"secret"}`, `{"environment":"test","kind":"public"}`},
		projectsPath + "/:id/keys/:kid/rotate": {project + "/keys/" + kid + "/rotate", token, ``, `{"expiresOldInHours":0}`},
		projectsPath + "/:id/kyc":              {project + "/kyc", token, `{}`, `{"legalName":"Bola"}`},
		sessions:                               {"", d.key, good, with(`"description":"a"`)},
		sessions + "/:id/cancel":               {sessions + "/" + d.session("") + "/cancel", d.key, ``, `{}`},
		sessions + "/:id/pay/bank-transfer":    {session + "/pay/bank-transfer", d.key, ``, `{"expiresInMinutes":10}`},
		sessions + "/:id/pay/ussd":             {session + "/pay/ussd", d.key, ``, `{}`},
		sessions + "/:id/pay/card":             {session + "/pay/card", d.key, `{}`, ``},
		"/v1/charges":                          {"", d.key, good, with(`"description":"a"`)},
		"/v1/charges/:id/requery":              {rename("/v1/charges/:id/requery", charge.text("data.id")), d.key, ``, `{}`},
		paymentsPath + "/:id/resolve":          {held + "/resolve", d.key, `{"action":"refund"}`, `{"action":"accept"}`},
		refundsPath:                            {"", d.key, refund + `100}`, refund + `200}`},
		refundsPath + "/:id/retry":             {refundsPath + "/" + bounced + "/retry", d.key, ``, `{}`},
		"/v1/test/settlements/run":             {"", d.key, ``, `{}`},
		endpointsPath:                          {"", d.key, `{"url":"http://127.0.0.1:9/a"}`, `{"url":"http://127.0.0.1:9/b"}`},
		endpointsPath + "/:id/rotate-secret":   {hook + "/rotate-secret", d.key, ``, `{}`},
		endpointsPath + "/:id/ping":            {hook + "/ping", d.key, ``, `{}`},
		endpointsPath + "/:id/replay":          {hook + "/replay", d.key, stretch + `}`, stretch + `,"onlyFailed":true}`},
		eventsPath + "/:id/resend":             {event + "/resend", d.key, ``, `{}`},
		verificationPath + "/accounts/resolve": {"", d.key, resolve + `0000000001"}`, resolve + `0000000009"}`},
		identitiesPath:                         {"", d.key, person("22222222221", ""), person("22222222222", "")},
		"/v1/test/bank/transfers":              {"", d.key, account + `100}`, account + `200}`},
		"/v1/test/bank/reversals":              {"", d.key, `{"railTransactionId":"` + credits[0] + `"}`, `{"railTransactionId":"` + credits[1] + `"}`},
		"/v1/test/ussd/:code/complete":         {"/v1/test/ussd/" + ussd + "/complete", d.key, `{"outcome":"failed"}`, `{"outcome":"success"}`},
		"/v1/test/cards/:id/complete":          {rename("/v1/test/cards/:id/complete", card), d.key, `{"outcome":"declined"}`, `{}`},
		"/v1/test/clock":                       {"", d.key, `{"advanceSeconds":60}`, `{"advanceSeconds":61}`},
		"/v1/test/phones":                      {"", d.key, `{"pushName":"Ada"}`, `{"pushName":"Obi"}`},
		"/v1/test/phones/:phone/messages":      {phone, d.key, `{"text":"hi"}`, `{"text":"ho"}`},
	}
	for path, one := range out {
		if one.path == "" {
			one.path = path
			out[path] = one
		}
	}
	return out
}

// Every POST of the table takes an Idempotency-Key: the same request again is
// answered with the same bytes, and has no effect; another one under the key is
// refused. A route that is new here says what it is asked.
func TestEveryPostOfTheTableIsDoneOnce(t *testing.T) {
	d := openDesk(t)
	all := d.doubles()
	for _, r := range Routes() {
		if r.Method != http.MethodPost || r.Key == KeyPhone || r.Path == noticesPath {
			continue
		}
		one, there := all[r.Path]
		if !there {
			t.Errorf("%s: say here what it is asked with an Idempotency-Key", r.Path)
			continue
		}
		once := http.Header{"Idempotency-Key": {"of " + r.Path}}
		first := d.ask("POST", one.path, one.key, one.body, once)
		again := d.ask("POST", one.path, one.key, one.body, once)
		if first.status >= http.StatusMultipleChoices || again.status != first.status || again.body != first.body {
			t.Errorf("%s: %d %s\nagain: %d %s", r.Path, first.status, first.body, again.status, again.body)
		}
		if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: replayed %q, then %q", r.Path, first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed"))
		}
		for _, name := range []string{"Location", "Content-Type", "Cache-Control"} {
			if first.header.Get(name) != again.header.Get(name) {
				t.Errorf("%s: %s was %q and is %q", r.Path, name, first.header.Get(name), again.header.Get(name))
			}
		}
		d.want(d.ask("POST", one.path, one.key, one.other, once), http.StatusUnprocessableEntity, map[string]string{"error.code": "idempotency_key_reused"})
		if bad := d.ask("POST", one.path, one.key, one.body, http.Header{"Idempotency-Key": {strings.Repeat("k", 256)}}); r.Path != logoutPath &&
			(bad.status != http.StatusBadRequest || bad.code() != string(flow.CodeInvalidField)) {
			t.Errorf("%s takes a key that is too long: %d %s", r.Path, bad.status, bad.body)
		}
	}
	charge := strings.TrimSuffix(strings.TrimPrefix(all["/v1/charges/:id/requery"].path, "/v1/charges/"), "/requery") // whose account was transferred to
	booked := func() int {
		return strings.Count(d.ask("GET", "/v1/charges/"+charge+"/timeline?limit=100", d.key, "").body, "rail_clearing")
	}
	await.Until(t, "the bank has told of the transfer", func() bool { return booked() > 0 })
	if n := booked(); n != 1 {
		t.Errorf("a transfer that was asked for twice with one key was booked %d times", n)
	}
}

// What was done before its project was stopped is answered by its Idempotency-Key
// all the same: whoever lost the answer would take it for refused, and do it once
// more when the project goes on.
func TestWhatWasDoneIsAnsweredThoughItsProjectIsStopped(t *testing.T) {
	d := openDesk(t)
	all := d.doubles()
	once := func(path string) reply {
		one := all[path]
		return d.ask("POST", one.path, one.key, one.body, http.Header{"Idempotency-Key": {"of " + path}})
	}
	done := map[string]reply{}
	for path := range all {
		done[path] = once(path)
	}
	_, err := d.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(d.project.ID), To: flow.MerchantStopped, By: "ops"})
	must(t, err)
	d.want(d.ask("POST", sessions, d.key, good), http.StatusForbidden, map[string]string{"error.code": "project_suspended"})
	for path, first := range done {
		if again := once(path); first.status >= http.StatusMultipleChoices || again.status != first.status || again.body != first.body {
			t.Errorf("%s: %d %s\nagain: %d %s", path, first.status, first.body, again.status, again.body)
		}
	}
}

// Whose project is stopped reads that of the methods of its sessions too, and not
// that the bank is away: nobody there would ask the operator about a bank.
func TestASessionSaysThatItsProjectIsStopped(t *testing.T) {
	d := openDesk(t)
	id := d.session("")
	for _, to := range []string{flow.MerchantStopped, ""} {
		_, err := d.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(d.project.ID), To: to, By: "ops"})
		must(t, err)
		answer := d.ask("GET", sessions+"/"+id, d.key, "")
		if told, stopped := strings.Count(answer.body, `"reason":"project_suspended"`), to != ""; stopped != (told == len(flow.Methods())) || strings.Contains(answer.body, "rail_down") {
			t.Errorf("stopped: %v, and its methods say %s", stopped, answer.body)
		}
		d.want(d.ask("GET", "/v1/project", d.key, ""), http.StatusOK, map[string]string{"data.stopped": strconv.FormatBool(to != "")})
	}
}
