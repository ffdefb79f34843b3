package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"till/flow"
	"till/flow/await"
)

// The ids and numbers that stand in the document's examples.
const (
	exampleSession = "wsp_sess_01k9z3m5x8v2c7n4b6t1q0w9ef"
	exampleCharge  = "wsp_chg_01k9z3m5x8v2c7n4b6t1q0w9eg"
	exampleCard    = "wsp_att_01k9z3m5x8v2c7n4b6t1q0w9en"
	exampleProject = "wsp_prj_01k9z3m5x8v2c7n4b6t1q0w9es"
	exampleKey     = "wsp_key_01k9z3m5x8v2c7n4b6t1q0w9ey"
	exampleLookUp  = "wsp_ver_01k9z3m5x8v2c7n4b6t1q0w9ez"
	examplePayment = "wsp_pay_01k9z3m5x8v2c7n4b6t1q0w9ev"
	exampleWaiting = "wsp_pay_01k9z3m5x8v2c7n4b6t1q0w9fe"  // one that waits for a decision
	exampleReceipt = "wsp_sess_01k9z3m5x8v2c7n4b6t1q0w9gr" // a session that is paid
	exampleBought  = "wsp_chg_01k9z3m5x8v2c7n4b6t1q0w9fc"  // a charge that is paid
	exampleRefund  = "wsp_rfd_01k9z3m5x8v2c7n4b6t1q0w9fa"
	exampleBounced = "wsp_rfd_01k9z3m5x8v2c7n4b6t1q0w9fb"
	exampleHook    = "wsp_we_01k9z3m5x8v2c7n4b6t1q0w9eq"
	exampleEvent   = "evt_01k9z3m5x8v2c7n4b6t1q0w9et"
	exampleSettled = "wsp_stl_01k9z3m5x8v2c7n4b6t1q0w9fe"
	exampleAccount = "9012345678"
	examplePaid    = "tx_01k9z3m5x8v2c7n4b6t1q0w9ef"
	exampleCode    = "/ussd/4821/"
	examplePhone   = "/phones/+2348031234500"
	exampleOrder   = "/by-reference/order-1001"
)

// example is a request of the document, brought to life in a world of its own.
type example struct {
	*desk

	op    *openapi3.Operation
	url   string
	body  string
	token string
}

// takes says whether the example names something, in whose place a thing that is there is put.
func (e *example) takes(what string, thing func() string) {
	if strings.Contains(e.url+e.body, what) {
		there := thing()
		e.url, e.body = strings.ReplaceAll(e.url, what, there), strings.ReplaceAll(e.body, what, there)
	}
}

// live puts things that are there in the place of the names in the example.
func (e *example) live() {
	pay := func(method, field string) string {
		return e.call("POST", sessions+"/"+e.open()+"/pay/"+method, e.key, "").text("data." + field)
	}
	charge := func(more string) reply {
		return e.call("POST", "/v1/charges", e.key, `{"amount":500000,"customerEmail":"ada@example.com"`+more+`}`)
	}
	e.takes(exampleSession, e.open)
	e.takes(exampleCharge, func() string { return charge("").text("data.id") })
	e.takes(exampleOrder, func() string { charge(`,"reference":"order-1001"`); return exampleOrder })
	e.takes(exampleCard, func() string { return pay("card", "attemptId") })
	e.takes(exampleAccount, func() string { return pay("bank-transfer", "accountNumber") })
	e.takes(exampleHook, e.hook)
	e.takes(exampleEvent, func() string {
		return e.call("POST", endpointsPath+"/"+e.hook()+"/ping", e.key, "").text("data.eventId")
	})
	e.takes(examplePaid, e.paid)
	e.takes(exampleBought, e.bought)
	e.takes(exampleReceipt, func() string {
		return e.call("GET", chargesPath+"/"+e.bought(), e.key, "").text("data.sessionId")
	})
	e.takes(examplePayment, func() string { return e.refund().text("data.paymentId") })
	e.takes(exampleWaiting, e.waiting)
	e.takes(exampleRefund, func() string { return e.refund().text("data.id") })
	e.takes(exampleBounced, e.bounced)
	e.takes(exampleSettled, func() string { return e.payout(e.key) })
	e.takes(exampleCode, func() string { return "/ussd/" + pay("ussd", "paymentCode") + "/" })
	e.takes(examplePhone, func() string {
		return "/phones/" + e.call("POST", "/v1/test/phones", e.key, `{}`).text("data.phone")
	})
	e.takes(exampleLookUp, func() string {
		return e.patiently("POST", identitiesURL, e.key, person("22222222221", "")).text("data.id")
	})
	project := string(e.project.ID)
	e.takes(exampleKey, func() string {
		id, _ := e.newAPIKey(e.token, project, "secret")
		return id
	})
	e.takes(exampleProject, func() string { return project })
	if e.op.OperationID == "logIn" {
		e.call("POST", "/v1/auth/signup", "", strings.Replace(e.body, "{", `{"businessName":"Ada Stores",`, 1))
	}
}

// patiently makes a call again while a part of the server is still starting.
func (e *example) patiently(method, path, key, body string) reply {
	e.t.Helper()
	var r reply
	await.Until(e.t, method+" "+path+" is ready", func() bool {
		r = e.call(method, path, key, body)
		return r.status != http.StatusServiceUnavailable
	})
	return r
}

// open opens a session over the wire.
func (e *example) open() string {
	return e.call("POST", sessions, e.key, good).text("data.id")
}

// paid is the bank's name of a payment that has come.
func (e *example) paid() string {
	e.t.Helper()
	id := e.open()
	account := e.call("POST", sessions+"/"+id+"/pay/bank-transfer", e.key, "").text("data.accountNumber")
	transfer := e.call("POST", "/v1/test/bank/transfers", e.key, `{"accountNumber":"`+account+`"}`)
	e.until(id, "PAID")
	return transfer.text("data.railTransactionId")
}

// bought is a charge that is paid.
func (d *desk) bought() string {
	d.t.Helper()
	charge := d.call("POST", chargesPath, d.key, good)
	d.want(d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+charge.text("data.virtualAccount.accountNumber")+`"}`), http.StatusOK, nil)
	d.until(charge.text("data.sessionId"), "PAID")
	return charge.text("data.id")
}

// waiting is a payment that waits for a decision: more than was asked for.
func (e *example) waiting() string {
	e.t.Helper()
	charge := e.call("POST", chargesPath, e.key, good)
	e.want(e.call("POST", "/v1/test/bank/transfers", e.key, `{"accountNumber":"`+charge.text("data.virtualAccount.accountNumber")+`","amount":600000}`), http.StatusOK, nil)
	e.until(charge.text("data.sessionId"), "PAID")
	return e.call("GET", paymentsPath+"?matchStatus=EXCESS", e.key, "").text("data.items.0.id")
}

// refund is a refund of a kobo.
func (d *desk) refund() reply {
	d.t.Helper()
	r := d.call("POST", refundsPath, d.key, `{"chargeId":"`+d.bought()+`","amount":1}`)
	d.want(r, http.StatusCreated, nil)
	return r
}

// bounced is a refund that came back after it had been sent.
func (d *desk) bounced() string {
	d.t.Helper()
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{"refunds":"bounce"}`), http.StatusOK, nil)
	id := d.refund().text("data.id")
	var is reply
	back := false
	d.t.Cleanup(func() {
		if !back {
			story := d.ask("GET", "/v1/charges/"+is.text("data.chargeId")+"/timeline?limit=100", d.key, "")
			d.t.Logf("the refund that does not come back: %d %s\n%s", is.status, is.body, story.body)
		}
	})
	await.Until(d.t, "a refund comes back", func() bool {
		is = d.call("GET", refundsPath+"/"+id, d.key, "")
		back = is.text("data.status") == string(flow.RefundAttention)
		return back
	})
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{}`), http.StatusOK, nil)
	return id
}

// expected is the one status of success that an operation has; 304 is for those who ask again.
func expected(t *testing.T, op *openapi3.Operation) int {
	t.Helper()
	for status := range op.Responses.Map() {
		if n, err := strconv.Atoi(status); err == nil && n < 300 {
			return n
		}
	}
	t.Fatalf("%s never succeeds", op.OperationID)
	return 0
}

// bodies are the request examples of an operation; one that is empty for none.
func bodies(t *testing.T, op *openapi3.Operation) map[string]string {
	t.Helper()
	out := map[string]string{}
	if op.RequestBody == nil {
		return map[string]string{"": ""}
	}
	media := op.RequestBody.Value.Content["application/json"]
	all := map[string]any{}
	if media.Example != nil {
		all["example"] = media.Example
	}
	for name, one := range media.Examples {
		all[name] = one.Value.Value
	}
	for name, v := range all {
		text, err := json.Marshal(v)
		must(t, err)
		out[name] = string(text)
	}
	if !op.RequestBody.Value.Required {
		out["no body"] = ""
	}
	return out
}

// Every request of the document is sent, over a network, to a real server with
// the sandbox bank behind it, and is answered as the document says.
func TestEveryExampleOfTheDocumentRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	for call, op := range operations(t) {
		method, path, _ := strings.Cut(call, " ")
		if op.OperationID == "hearBank" {
			continue // a bank's words are signed: TestABanksNoticeIsHeard
		}
		for name, body := range bodies(t, op) {
			t.Run(op.OperationID+" "+name, func(t *testing.T) {
				t.Parallel()
				e := &example{desk: openDesk(t), op: op, url: fill(t, path, op), body: body}
				e.token = e.tokenFor(e.project)
				e.live()
				key := map[string]string{"": "", "dashboardToken": e.token}
				given, own := key[keyOf(op)]
				if !own {
					given = e.key
				}
				got := e.patiently(method, e.url, given, e.body)
				if want := expected(t, op); got.status != want {
					t.Errorf("%s with %s: want %d, got %d %s", call, body, want, got.status, got.body)
				}
				e.again(method, got.status)
			})
		}
	}
}

// again makes the call once more with a public key, where the document says
// that one may.
func (e *example) again(method string, status int) {
	e.t.Helper()
	var got reply
	switch ways := keyOf(e.op); {
	case strings.Contains(ways, "clientSecret"):
		id := strings.Split(e.url, "/")[5]
		secret := e.call("GET", sessions+"/"+id, e.key, "").text("data.clientSecret")
		got = e.call(method, e.url, e.public, e.body, "X-Client-Secret", secret)
	case strings.Contains(ways, "publicKey"):
		got = e.call(method, e.url, e.public, e.body)
	default:
		return
	}
	if got.status != status {
		e.t.Errorf("with a public key: want %d, got %d %s", status, got.status, got.body)
	}
}

// fill puts the document's examples in the place of a path's parameters.
func fill(t *testing.T, path string, op *openapi3.Operation) string {
	t.Helper()
	params := append(slices.Clone(contract(t).Doc.Paths.Value(path).Parameters), op.Parameters...)
	for _, p := range params {
		text, ok := p.Value.Example.(string)
		switch {
		case ok && p.Value.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", text)
		case ok && p.Value.In == "query" && p.Value.Required:
			path = asking(path, p.Value.Name, text)
		}
	}
	return path
}

// asking is a URL with one parameter of its query set to a value.
func asking(at, name, value string) string {
	path, query, _ := strings.Cut(at, "?")
	values, _ := url.ParseQuery(query) // of our own making
	values.Set(name, value)
	return path + "?" + values.Encode()
}

func TestABanksNoticeIsHeard(t *testing.T) {
	s := open(t)
	account := s.ask("POST", sessions+"/"+s.session("")+"/pay/bank-transfer", s.key, "").text("data.accountNumber")
	o, err := s.bank.order(func(i flow.Instructions) bool { return i.AccountNumber == account })
	must(t, err)
	body, err := json.Marshal(flow.Notice{
		Kind: flow.Credit, RailTransactionID: "tx_1", Reference: o.Reference, Amount: o.Amount, Channel: o.Method, PaidAt: s.now().Truncate(time.Millisecond),
	})
	must(t, err)
	r := s.ask("POST", "/v1/rails/sandbox/notifications", "", string(body), http.Header{"X-Paper-Signature": {s.bank.sign(body)}})
	s.want(r, http.StatusOK, map[string]string{"data.received": "true"})
}
