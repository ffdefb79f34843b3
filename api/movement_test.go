package api

import (
	"net/http"
	"strings"
	"testing"

	"till/flow"
	"till/flow/await"
)

// What a bank says of a transfer beside that it came shows in what merchants
// read, over the network.
func TestATransferOnItsWayAndOneThatIsSentBack(t *testing.T) {
	s := open(t)
	s.meetSandbox()
	charge := s.ask("POST", chargesPath, s.key, good)
	id, account := charge.text("data.sessionId"), charge.text("data.virtualAccount.accountNumber")
	transfer := func(more string) {
		t.Helper()
		s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+account+`"`+more+`}`), http.StatusOK, nil)
	}
	story := func() string {
		return s.ask("GET", chargesPath+"/"+charge.text("data.id")+"/timeline?limit=100", s.key, "").body
	}
	transfer(`,"amount":300000,"returned":true`)
	await.Until(t, "the bank to send it back", func() bool { return strings.Contains(story(), "returned ₦3,000") })
	if strings.Contains(story(), "rail_clearing") {
		t.Error("what never was ours is booked")
	}
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PENDING", "data.amountPaidMinor": "0"})

	transfer(`,"pendingMs":600000`)
	s.want(s.ask("POST", chargesPath+"/"+charge.text("data.id")+"/requery", s.key, ""), http.StatusOK, map[string]string{"data.status": "PROCESSING"})
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PROCESSING"})
	s.want(s.ask("POST", sessions+"/"+id+"/cancel", s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_not_cancellable"})
	transfer(``) // another one, which comes first
	s.until(id, "PAID")
}

func TestAPaymentIsTakenBackThroughTheTestDoor(t *testing.T) {
	d := openDesk(t)
	d.listens(flow.ChargeSuccess, flow.ChargeReversed)
	charge := d.ask("POST", chargesPath, d.key, good)
	id := charge.text("data.sessionId")
	paid := d.ask("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+charge.text("data.virtualAccount.accountNumber")+`"}`)
	d.told(`"event":"charge.success"`)
	back := `{"railTransactionId":"` + paid.text("data.railTransactionId") + `"}`
	_, _, stranger := d.merchant("Bola Stores")
	d.want(d.ask("POST", "/v1/test/bank/reversals", stranger, back), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.ask("POST", "/v1/test/bank/reversals", d.key, `{"railTransactionId":"nothing"}`), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.ask("POST", "/v1/test/bank/reversals", d.key, `{}`), http.StatusBadRequest, map[string]string{"error.code": "missing_field"})
	d.want(d.ask("POST", "/v1/test/bank/reversals", d.key, back), http.StatusOK, map[string]string{"data.amountMinor": "500000"})
	event := d.told(`"event":"charge.reversed"`)
	for _, want := range []string{`"status":"SUCCEEDED"`, `"exceptions":["REVERSED"]`, `"matchStatus":"MATCHED"`, `"reversedMinor":"500000"`} {
		if !strings.Contains(event.body, want) {
			t.Errorf("want %s in %s", want, event.body)
		}
	}
	d.want(d.ask("GET", sessions+"/"+id, d.key, ""), http.StatusOK, map[string]string{"data.status": "PAID", "data.exceptions.0": "REVERSED"})
	d.want(d.ask("POST", "/v1/test/bank/reversals", d.key, back), http.StatusBadGateway, map[string]string{"error.code": "rail_rejected"})
}
