package api

import (
	"net/http"
	"strings"
	"testing"
)

// What people are to read can be seen: of a name of spaces alone a chat, a receipt and a
// list would show nothing. A pair's value is the merchant's own, and may be empty.
func TestWhatIsToBeReadCanBeSeen(t *testing.T) {
	d := openDesk(t)
	session := func(field string) string {
		return `{"amount":500000,"customerEmail":"ada@example.com",` + field + `}`
	}
	endpoint := d.ask("POST", "/v1/webhook-endpoints", d.key, `{"url":"https://hooks.example.com/one"}`).text("data.id")
	kyc := "/v1/projects/" + string(d.project.ID) + "/kyc"
	token := d.tokenFor(d.project)
	for _, one := range []struct{ method, path, key, field, body string }{
		{"POST", sessions, d.key, "customerName", session(`"customerName":"%s"`)},
		{"POST", sessions, d.key, "description", session(`"description":"%s"`)},
		{"POST", sessions, d.key, "metadata", session(`"metadata":{"%s":"1"}`)},
		{"POST", "/v1/charges", d.key, "customerName", session(`"customerName":"%s"`)},
		{"POST", refundsPath, d.key, "reason", `{"paymentId":"wsp_pay_01k9z3m5x8v2c7n4b6t1q0w9fe","reason":"%s"}`},
		{"POST", paymentsPath + "/wsp_pay_01k9z3m5x8v2c7n4b6t1q0w9fe/resolve", d.key, "reason", `{"action":"accept","reason":"%s"}`},
		{"POST", "/v1/webhook-endpoints", d.key, "description", `{"url":"https://hooks.example.com/two","description":"%s"}`},
		{"PATCH", "/v1/webhook-endpoints/" + endpoint, d.key, "description", `{"description":"%s"}`},
		{"POST", kyc, token, "legalName", `{"legalName":"%s"}`},
		{"POST", kyc, token, "registrationNumber", `{"registrationNumber":"%s"}`},
		{"POST", kyc, token, "address", `{"address":"%s"}`},
		{"POST", kyc, token, "contactName", `{"contactName":"%s"}`},
		{"POST", "/v1/test/phones", d.key, "pushName", `{"pushName":"%s"}`},
		{"POST", "/v1/test/bank/transfers", d.key, "senderName", `{"accountNumber":"9012345678","senderName":"%s"}`},
	} {
		for _, blank := range []string{"   ", "\u00a0", "\u200b"} {
			got := d.ask(one.method, one.path, one.key, strings.Replace(one.body, "%s", blank, 1))
			if got.status != http.StatusBadRequest || got.code() != "invalid_field" || !strings.HasPrefix(got.text("error.fields.0.field"), one.field) {
				t.Errorf("%s %s with %s %q: %d %s", one.method, one.path, one.field, blank, got.status, got.body)
			}
		}
	}
	if got := d.ask("POST", sessions, d.key, session(`"metadata":{"note":" "}`)); got.status != http.StatusCreated {
		t.Errorf("a pair's value of a space: %d %s", got.status, got.body)
	}
}
