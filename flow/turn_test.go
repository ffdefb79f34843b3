package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"till/flow"
)

// A turn is kept for good with what was decided on it: it says nothing of who paid, of
// whom the merchant knows, or of who decided.
func TestATurnSaysNothingOfPeople(t *testing.T) {
	s := open()
	s.CustomerEmail, s.CustomerPhone, s.CustomerName, s.CallbackURL = "secret@example.com", "2348030secret", "A secret name", "https://shop.test/secret"
	s.Metadata = map[string]string{"note": "secret"}
	p := came(flow.Late)
	p.Payer = flow.PaidBy{Name: "SECRET PAYER", BankName: "Secret Bank", AccountNumberMasked: "******secret"}
	p.ResolvedBy, p.ResolvedWhy = "wsp_usr_secret", "a secret reason"
	turn, err := json.Marshal(flow.Look(s, nil, []flow.Payment{p}, nil))
	if err != nil || strings.Contains(strings.ToLower(string(turn)), "secret") || !strings.Contains(string(turn), string(p.ID)) {
		t.Errorf("%s, %v", turn, err)
	}
}
