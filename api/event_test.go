package api

import (
	"net/http"
	"strings"
	"testing"

	"till/flow"
)

func TestEventsOfASessionWithoutAChargeSayNullWhereThereIsNothingYet(t *testing.T) {
	d := openDesk(t)
	d.listens(flow.SessionCreated, flow.InstructionsIssued, flow.ChargeFailed, flow.ChargeUnderpaid, flow.ChargeSuccess)
	id := d.session("")
	hears := func(kind flow.EventKind, want ...string) reply {
		t.Helper()
		r := d.told(`"event":"` + string(kind) + `"`)
		for _, w := range want {
			if !strings.Contains(r.body, w) {
				t.Errorf("want %s in %s", w, r.body)
			}
		}
		return r
	}
	hears(flow.SessionCreated, `"reference":null`, `"data":{"id":"`+id+`"`)
	attempt := d.ask("POST", sessions+"/"+id+"/pay/card", d.key, "").text("data.attemptId")
	hears(flow.InstructionsIssued, `"reference":"wsp_ref_`)
	d.want(d.call("POST", "/v1/test/cards/"+attempt+"/complete", d.key, `{"outcome":"declined"}`), http.StatusOK, nil)
	hears(flow.ChargeFailed, `"reference":"wsp_ref_`, `"data":{"id":null,"sessionId":"`+id+`"`, `"serviceReference":"wsp_ref_`)
	account := d.ask("POST", sessions+"/"+id+"/pay/bank-transfer", d.key, "").text("data.accountNumber")
	d.want(d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`","amount":200000}`), http.StatusOK, nil)
	hears(flow.ChargeUnderpaid, `"data":{"id":null,`)
	d.want(d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`","amount":300000}`), http.StatusOK, nil)
	paid := hears(flow.ChargeSuccess, `"data":{"id":"wsp_chg_`)
	d.want(d.call("GET", chargesPath+"/"+paid.text("data.id"), d.key, ""), http.StatusOK, map[string]string{"data.sessionId": id})
}
