package sim

import (
	"net/http"
	"slices"
	"strings"

	"till/rail"
)

func transferTo(account string, amount int64, w *world) rail.Transfer {
	return rail.Transfer{AccountNumber: account, Amount: kobo(amount), ValueTime: w.now()}
}

// mistake is a call that must be refused, and with which code. SESSION stands for
// a session of the merchant.
type mistake struct {
	method, path, key, body, code string
	header                        map[string]string
}

const goodBody = `{"amount":500000,"customerEmail":"ada@example.com"}`

func goodWith(fields string) string { return goodBody[:len(goodBody)-1] + "," + fields + "}" }

// mistakesOf is every mistake that one call can be.
func mistakesOf(m *merchant, old merchant) []mistake {
	post, get := http.MethodPost, http.MethodGet
	bad := func(body, code string) mistake { return mistake{post, sessionsPath, m.secret, body, code, nil} }
	one := sessionsPath + "/wsp_sess_" + nobody
	return []mistake{
		bad(`{"amount":`, "malformed_json"), bad(`{}`, "missing_field"), bad(goodWith(`"colour":"red"`), "unknown_field"),
		bad(`{"amount":5000.0,"customerEmail":"a@b.co"}`, "amount_must_be_integer"), bad(`{"amount":99,"customerEmail":"a@b.co"}`, "amount_below_minimum"),
		bad(`{"amount":2500000001,"customerEmail":"a@b.co"}`, "amount_above_maximum"), bad(goodWith(`"currency":"USD"`), "currency_not_supported"),
		bad(goodWith(`"mode":"hosted"`), "invalid_mode"), bad(`{"amount":500000,"customerEmail":"ada"}`, "invalid_email"),
		bad(goodWith(`"customerPhone":"0803"`), "invalid_phone"), bad(goodWith(`"reference":"a b"`), "invalid_field"),
		bad(goodWith(`"description":"4111 1111 1111 1111"`), "card_data_not_accepted"), bad(goodWith(`"description":"`+strings.Repeat("x", 70_000)+`"`), "payload_too_large"),
		{get, sessionsPath + "?cursor=abc", m.secret, "", "invalid_cursor", nil},
		{post, sessionsPath, "", goodBody, "missing_api_key", nil},
		{post, sessionsPath, "sk_test_nonsense", goodBody, "invalid_api_key", nil},
		{get, sessionsPath, old.expired, "", "expired_api_key", nil},
		{get, sessionsPath, old.revoked, "", "revoked_api_key", nil},
		{get, sessionsPath, old.live, "", "kyc_required", nil},
		{get, "/v1/test/bank/calls", m.live, "", "test_only", nil},
		{post, sessionsPath, m.public, goodBody, "secret_key_required", nil},
		{get, one, m.secret, "", "resource_not_found", nil},
		{get, "/v1/nothing", m.secret, "", "route_not_found", nil},
		{http.MethodDelete, sessionsPath, m.secret, "", "method_not_allowed", nil},
		{post, sessionsPath, m.secret, goodBody, "unsupported_media_type", map[string]string{"Content-Type": "text/plain"}},
		{post, noticePath, "", `{}`, "invalid_signature", nil},
		{post, "/v1/verification/accounts/resolve", m.secret, `{"bankCode":"999","accountNumber":"0000000002"}`, "account_not_resolved", nil},
		{get, "/v1/charges/wsp_chg_" + nobody, m.secret, "", "resource_not_found", nil},
		{post, "/v1/refunds", m.secret, `{"paymentId":"wsp_pay_` + nobody + `"}`, "resource_not_found", nil},
	}
}

// mistakes has a merchant make a few, and judges how they are refused.
func (w *world) mistakes() {
	m := w.merchants[w.rng.IntN(2)]
	list := mistakesOf(m, w.tpl.old)
	for range 3 {
		x := pick(w, list...)
		line := w.bank.line
		w.ask("mistake "+x.code, request{method: x.method, path: x.path, key: x.key, body: x.body, header: x.header}, func(out reply) {
			if out.status == 0 || out.code == x.code || out.code == "project_suspended" { // which an operator may have done meanwhile

				return
			}
			if slices.Contains(out.fields, x.code) {
				return
			}
			if x.code == "account_not_resolved" && strings.HasPrefix(out.code, "rail_") && line+w.bank.line != "" { // the bank's line fares badly
				return
			}
			w.breaks("sim", "the mistake %s is answered %d %s", x.code, out.status, out.body)
		})
	}
}
