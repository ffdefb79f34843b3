package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// key is an API key as it is kept, over since so many hours ago where not 0.
func key(text string, env flow.Environment, expiredHours, revokedHours int) flow.Key {
	k := flow.Key{Environment: env, Kind: flow.SecretKey, Hash: flow.HashKey(text), Hint: flow.HintKey(text)}
	if expiredHours != 0 {
		k.ExpiresAt = time.Now().Add(time.Duration(expiredHours) * time.Hour)
	}
	if revokedHours != 0 {
		k.RevokedAt = time.Now().Add(time.Duration(revokedHours) * time.Hour)
	}
	return k
}

func (s *shop) want(r reply, status int, texts map[string]string) {
	s.t.Helper()
	if r.status != status {
		s.t.Fatalf("want %d, got %d: %s", status, r.status, r.body)
	}
	for path, want := range texts {
		if got := r.text(path); got != want {
			s.t.Errorf("%s: want %q, got %q", path, want, got)
		}
	}
}

func TestSigningUpGivesKeysThatWork(t *testing.T) {
	s := open(t)
	body := `{"email":"owner@example.com","password":"correct horse battery","businessName":"Ada Stores"}`
	r := s.ask("POST", "/v1/auth/signup", "", body)
	s.want(r, http.StatusCreated, map[string]string{"data.account.email": "owner@example.com", "data.project.name": "Ada Stores", "data.keys.environment": "test"})
	secret := r.text("data.keys.secretKey")
	if !strings.HasPrefix(secret, "sk_test_") || !strings.HasPrefix(r.text("data.keys.publicKey"), "pk_test_") {
		t.Errorf("not keys: %s", r.body)
	}
	if r.header.Get("Cache-Control") != "no-store" {
		t.Error("an answer with keys may be kept by a cache")
	}
	s.want(s.ask("POST", sessions, secret, good), http.StatusCreated, nil)
	s.want(s.ask("POST", "/v1/auth/signup", "", body), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	if strings.Contains(s.log.String(), secret) || strings.Contains(s.log.String(), "horse") {
		t.Error("the log holds a secret")
	}
}

func TestASessionIsLazyAndPaidByTransfer(t *testing.T) {
	s := open(t)
	r := s.ask("POST", sessions, s.key, `{"amount":150050,"customerEmail":"ada@example.com","mode":"headless","customerPhone":"08031234567","customerName":"Ada Obi",
		"reference":"order-1","description":"Two shirts","metadata":{"cart":"7"},"callbackUrl":"http://localhost:3000/done","currency":"NGN","expiresInMinutes":90}`)
	s.want(r, http.StatusCreated, map[string]string{
		"data.mode": "headless", "data.amountMinor": "150050", "data.status": "PENDING", "data.reference": "order-1", "data.customerPhone": "+2348031234567",
		"data.metadata.cart": "7", "data.checkoutUrl": "",
	})
	id := r.text("data.id")
	if r.header.Get("Location") != sessions+"/"+id {
		t.Errorf("Location: %q", r.header.Get("Location"))
	}
	if calls := s.ask("GET", "/v1/test/bank/calls", s.key, ""); !strings.Contains(calls.body, `"items":[]`) {
		t.Errorf("the bank was called: %s", calls.body)
	}
	pay := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, `{"expiresInMinutes":10}`)
	s.want(pay, http.StatusOK, map[string]string{
		"data.bankName": "Paper Bank", "data.bankCode": "999", "data.amount": "1500.50", "data.amountMinor": "150050", "data.currency": "NGN", "data.accountName": "Ada Stores/CHECKOUT",
	})
	for ends, lasts := range map[string]time.Duration{r.text("data.expiresAt"): 90 * time.Minute, pay.text("data.expiresAt"): 10 * time.Minute} {
		if at, err := time.Parse(time.RFC3339, ends); err != nil || at.Sub(s.now()).Round(time.Minute) != lasts {
			t.Errorf("what was to last %s ends at %q", lasts, ends)
		}
	}
	if again := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, ""); again.body != pay.body {
		t.Errorf("asked again: %s", again.body)
	}
	calls := s.ask("GET", "/v1/test/bank/calls", s.key, "")
	if n := strings.Count(calls.body, `"seq"`); n != 1 || !strings.Contains(calls.body, id) || !strings.Contains(calls.body, pay.text("data.reference")) {
		t.Errorf("want one call with our session and reference: %s", calls.body)
	}
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+pay.text("data.accountNumber")+`","copies":3}`), http.StatusOK,
		map[string]string{"data.amountMinor": "150050"})
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PAID", "data.amountPaidMinor": "150050"})
	s.want(s.ask("POST", sessions+"/"+id+"/pay/ussd", s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_paid"})
	s.want(s.ask("POST", sessions+"/"+id+"/cancel", s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_not_cancellable"})
	dup := s.ask("POST", sessions, s.key, with(`"reference":"order-1"`))
	s.want(dup, http.StatusConflict, map[string]string{"error.code": "duplicate_reference", "error.details.sessionId": id, "error.fields.0.field": "reference", "error.fields.0.code": "duplicate_reference"})
}

func TestATransferWithoutAnAmountSendsWhatIsAskedForByThen(t *testing.T) {
	s := open(t)
	id := s.session("")
	account := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, "").text("data.accountNumber")
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+account+`","amount":200000}`), http.StatusOK, nil)
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+account+`"}`), http.StatusOK, map[string]string{"data.amountMinor": "300000"})
	r := s.ask("GET", sessions+"/"+id, s.key, "")
	s.want(r, http.StatusOK, map[string]string{"data.status": "PAID", "data.amountPaidMinor": "500000"})
	if !strings.Contains(r.body, `"exceptions":[]`) {
		t.Errorf("more came than was asked for: %s", r.body)
	}
}

func TestPayingByUSSD(t *testing.T) {
	s := open(t)
	id := s.session("")
	open := s.ask("POST", sessions+"/"+id+"/pay/ussd", s.key, "")
	for _, null := range []string{`"bankCode":null`, `"bankName":null`, `"ussdCode":null`, `"dialUri":null`, `"bankCode":"058"`, `"bankCode":"044"`} {
		if !strings.Contains(open.body, null) {
			t.Errorf("want %s in %s", null, open.body)
		}
	}
	code := open.text("data.paymentCode")
	chosen := s.ask("POST", sessions+"/"+id+"/pay/ussd", s.key, `{"bankCode":"058"}`)
	s.want(chosen, http.StatusOK, map[string]string{
		"data.bankName": "GTBank", "data.paymentCode": code, "data.ussdCode": "*737*000*" + code + "#", "data.dialUri": "tel:*737*000*" + code + "%23", "data.amount": "5000",
	})
	if !strings.Contains(chosen.text("data.displayText"), "*737*000*"+code+"#") {
		t.Errorf("displayText: %s", chosen.text("data.displayText"))
	}
	s.want(s.ask("POST", "/v1/test/ussd/"+code+"/complete", s.key, `{"outcome":"maybe"}`), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	s.want(s.ask("POST", "/v1/test/ussd/"+code+"/complete", s.key, `{"outcome":"success"}`), http.StatusOK, nil)
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PAID"})
	for _, c := range []string{`"allowedMethods":["card"]`, `"amount":10000100`, `"amount":500050`} {
		body := `{"customerEmail":"a@b.co",` + c + `}`
		if !strings.Contains(c, "amount\"") {
			body = with(c)
		}
		other := s.ask("POST", sessions, s.key, body).text("data.id")
		s.want(s.ask("POST", sessions+"/"+other+"/pay/ussd", s.key, ""), http.StatusBadRequest, map[string]string{"error.code": "method_not_allowed_for_session"})
	}
}

func TestPayingByCard(t *testing.T) {
	s := open(t)
	id := s.session("")
	pay := s.ask("POST", sessions+"/"+id+"/pay/card", s.key, `{}`)
	s.want(pay, http.StatusOK, map[string]string{"data.amount": "5000", "data.amountMinor": "500000"})
	if !strings.HasPrefix(pay.text("data.checkoutUrl"), "http") {
		t.Errorf("no link: %s", pay.body)
	}
	attempt := pay.text("data.attemptId")
	s.want(s.ask("POST", "/v1/test/cards/"+attempt+"/complete", s.key, `{"outcome":"declined"}`), http.StatusOK, nil)
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PENDING"})
	next := s.ask("POST", sessions+"/"+id+"/pay/card", s.key, "").text("data.attemptId")
	if next == attempt {
		t.Error("a declined card is offered again")
	}
	s.want(s.ask("POST", "/v1/test/cards/"+next+"/complete", s.key, `{"outcome":"approved"}`), http.StatusOK, nil)
	s.want(s.ask("GET", sessions+"/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "PAID"})
}

func TestACharge(t *testing.T) {
	s := open(t)
	r := s.ask("POST", "/v1/charges", s.key, good, http.Header{"Idempotency-Key": {"charge-1"}})
	s.want(r, http.StatusCreated, map[string]string{"data.status": "PENDING", "data.amountMinor": "500000", "data.virtualAccount.bankName": "Paper Bank", "data.virtualAccount.amount": "5000"})
	id := r.text("data.id")
	if r.header.Get("Location") != "/v1/charges/"+id || !strings.Contains(r.text("data.checkoutUrl"), "https://wa.me/2348000000001?text=Pay%20") {
		t.Errorf("%v %s", r.header, r.body)
	}
	again := s.ask("POST", "/v1/charges", s.key, good, http.Header{"Idempotency-Key": {"charge-1"}})
	if again.body != r.body || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != "/v1/charges/"+id {
		t.Errorf("said again: %v %s", again.header, again.body)
	}
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+r.text("data.virtualAccount.accountNumber")+`","senderName":"BOLA"}`), http.StatusOK, nil)
	s.want(s.ask("GET", "/v1/charges/"+id, s.key, ""), http.StatusOK, map[string]string{"data.status": "SUCCEEDED", "data.feeMinor": "17500", "data.netMinor": "482500", "data.payer.name": "BOLA"})
	session := s.session("")
	s.want(s.ask("POST", "/v1/charges", s.key, `{"sessionId":"`+session+`"}`), http.StatusCreated, map[string]string{"data.sessionId": session})
	s.want(s.ask("POST", "/v1/charges", s.key, `{"sessionId":"`+session+`","amount":5000,"colour":"red"}`), http.StatusBadRequest, map[string]string{
		"error.fields.0.field": "amount", "error.fields.0.code": "unknown_field",
		"error.fields.0.message": "amount is of a new session: send sessionId without it, or leave sessionId out.",
		"error.fields.1.message": "colour is not a field of this request.",
	})
}

func TestSayingItAgainDoesNothingTwice(t *testing.T) {
	s := open(t)
	once := http.Header{"Idempotency-Key": {"a key"}}
	first := s.ask("POST", sessions, s.key, good, once)
	again := s.ask("POST", sessions, s.key, good, once)
	if first.status != http.StatusCreated || again.body != first.body || again.status != first.status || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s\n%d %s", first.status, first.body, again.status, again.body)
	}
	if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("%v\n%v", first.header, again.header)
	}
	for _, other := range []reply{
		s.ask("POST", sessions, s.key, with(`"mode":"headless"`), once), s.ask("POST", "/v1/charges", s.key, good, once),
		s.ask("POST", sessions+"/"+first.text("data.id")+"/cancel", s.key, "", once),
	} {
		s.want(other, http.StatusUnprocessableEntity, map[string]string{"error.code": "idempotency_key_reused"})
	}
	_, _, stranger := s.merchant("Bola Stores")
	if r := s.ask("POST", sessions, stranger, good, once); r.status != http.StatusCreated || r.text("data.id") == first.text("data.id") {
		t.Errorf("another merchant met our key: %s", r.body)
	}
	cancel := http.Header{"Idempotency-Key": {"cancel"}}
	url := sessions + "/" + first.text("data.id") + "/cancel"
	s.want(s.ask("POST", url, s.key, "", cancel), http.StatusOK, map[string]string{"data.status": "CANCELLED"})
	s.want(s.ask("POST", url, s.key, "", cancel), http.StatusOK, map[string]string{"data.status": "CANCELLED"})
	s.want(s.ask("POST", url, s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_not_cancellable"})
	s.want(s.ask("POST", sessions+"/"+first.text("data.id")+"/pay/card", s.key, ""), http.StatusConflict, map[string]string{"error.code": "session_cancelled"})
}

func TestAPublicKeyPaysTheSessionOfItsSecret(t *testing.T) {
	s := open(t)
	id, other := s.session(""), s.session("")
	secret := http.Header{"X-Client-Secret": {"cs_" + id}}
	s.want(s.ask("GET", sessions+"/"+id, s.public, "", secret), http.StatusOK, map[string]string{"data.id": id})
	s.want(s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.public, "", secret), http.StatusOK, nil)
	s.want(s.ask("GET", sessions+"/"+other, s.public, "", secret), http.StatusForbidden, nil)
	s.want(s.ask("GET", sessions, s.public, "", secret), http.StatusForbidden, nil)
}

func TestPagesOfSessions(t *testing.T) {
	s := open(t)
	for i := range 5 {
		s.session(fmt.Sprintf(`,"reference":"o%d"`, i))
	}
	var got []string
	url := sessions + "?limit=2"
	for range 5 {
		r := s.ask("GET", url, s.key, "")
		var list struct {
			Data struct {
				Items      []struct{ ID string }
				HasMore    bool
				NextCursor *string
			}
		}
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for _, item := range list.Data.Items {
			got = append(got, item.ID)
		}
		if list.Data.HasMore != (list.Data.NextCursor != nil) {
			t.Errorf("hasMore and nextCursor differ: %s", r.body)
		}
		if !list.Data.HasMore {
			break
		}
		url = sessions + "?limit=2&cursor=" + *list.Data.NextCursor
	}
	if len(got) != 5 || len(map[string]bool{got[0]: true, got[1]: true, got[2]: true, got[3]: true, got[4]: true}) != 5 {
		t.Errorf("want all five once, got %v", got)
	}
	for query, want := range map[string]int{
		"?reference=o3": 1, "?status=PENDING": 5, "?status=PAID": 0, "?customerEmail=ada%40example.com": 5, "?customerEmail=b%40example.com": 0,
		"?createdAfter=2020-01-01T00:00:00Z": 5, "?createdBefore=2020-01-01T00:00:00Z": 0,
	} {
		if r := s.ask("GET", sessions+query, s.key, ""); strings.Count(r.body, `"mode"`) != want {
			t.Errorf("%s: want %d: %s", query, want, r.body)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?status=OPEN", "?createdAfter=yesterday"} {
		s.want(s.ask("GET", sessions+query, s.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	}
}

func TestEndpointsShowTheirSecretOnce(t *testing.T) {
	s := open(t)
	r := s.ask("POST", "/v1/webhook-endpoints", s.key, `{"url":"https://shop.example/hook","events":["charge.success","session.created"],"description":"shop"}`)
	s.want(r, http.StatusCreated, map[string]string{"data.url": "https://shop.example/hook", "data.status": "ENABLED", "data.description": "shop"})
	secret := r.text("data.secret")
	if !strings.HasPrefix(secret, "whsec_") || r.header.Get("Location") != "/v1/webhook-endpoints/"+r.text("data.id") {
		t.Errorf("%v %s", r.header, r.body)
	}
	list := s.ask("GET", "/v1/webhook-endpoints", s.key, "")
	if strings.Contains(list.body, secret) || !strings.Contains(list.body, `"secretHint":"whsec_…`) || !strings.Contains(list.body, r.text("data.id")) {
		t.Errorf("%s", list.body)
	}
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log holds the secret")
	}
}
