package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// The bounds of how long an account number lasts, in minutes.
const (
	minAccountMinutes = 5
	maxAccountMinutes = 8 * 60
)

// transferRecord is how to pay by bank transfer.
type transferRecord struct {
	flow.VirtualAccount

	AttemptID   flow.AttemptID `json:"attemptId"`
	AmountMinor string         `json:"amountMinor"`
	Currency    string         `json:"currency"`
	BankCode    string         `json:"bankCode"`
}

// ussdRecord is how to pay by dialling. Without a bank there is no code to dial
// yet, only the list to choose from.
type ussdRecord struct {
	AttemptID   flow.AttemptID  `json:"attemptId"`
	Reference   string          `json:"reference"`
	Amount      string          `json:"amount"`
	AmountMinor string          `json:"amountMinor"`
	Currency    string          `json:"currency"`
	BankCode    *string         `json:"bankCode"`
	BankName    *string         `json:"bankName"`
	PaymentCode string          `json:"paymentCode"`
	USSDCode    *string         `json:"ussdCode"`
	DialURI     *string         `json:"dialUri"`
	Banks       []flow.DialCode `json:"banks"`
	DisplayText string          `json:"displayText"`
	ExpiresAt   string          `json:"expiresAt"`
}

// cardRecord is where to pay by card.
type cardRecord struct {
	AttemptID   flow.AttemptID `json:"attemptId"`
	Reference   string         `json:"reference"`
	Amount      string         `json:"amount"`
	AmountMinor string         `json:"amountMinor"`
	Currency    string         `json:"currency"`
	CheckoutURL string         `json:"checkoutUrl"`
	ExpiresAt   string         `json:"expiresAt"`
}

// payByTransfer is POST …/pay/bank-transfer: the only call that makes a virtual
// account.
func (*Server) payByTransfer(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	usual := int64(flow.AttemptLasts / time.Minute)
	lasts := f.whole("expiresInMinutes", minAccountMinutes, maxAccountMinutes, usual)
	if err := f.done(); err != nil {
		return err
	}
	a, err := c.instruct(id, checkout.Ask{Method: flow.BankTransfer, Lasts: time.Duration(lasts) * time.Minute})
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, transferRecord{
		VirtualAccount: *flow.RecordVirtualAccount(a), AttemptID: a.ID, AmountMinor: a.Amount.Minor(), Currency: flow.Currency,
		BankCode: a.Instructions.BankCode,
	})
}

// payByUSSD is POST …/pay/ussd.
func (s *Server) payByUSSD(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	code := f.text("bankCode", text{most: 10})
	if err := f.done(); err != nil {
		return err
	}
	if code != "" && s.cfg.BankNames != nil {
		if bank, known := s.cfg.BankNames(code); !known || !bank.USSD { // before the rail is called for nothing
			return noSuchBank(code)
		}
	}
	a, err := c.instruct(id, checkout.Ask{Method: flow.USSD})
	if err != nil {
		return err
	}
	record := ussdRecord{
		AttemptID: a.ID, Reference: a.Reference, Amount: a.Amount.Major(), AmountMinor: a.Amount.Minor(), Currency: flow.Currency,
		PaymentCode: a.Instructions.PaymentCode, Banks: a.Instructions.Banks, ExpiresAt: flow.Stamp(a.ExpiresAt),
		DisplayText: fmt.Sprintf("To pay %s, choose your bank, then dial its code on the phone that the bank knows.", a.Amount.Naira()),
	}
	if record.Banks == nil {
		record.Banks = []flow.DialCode{}
	}
	if code == "" {
		return c.send(http.StatusOK, record)
	}
	dial, there := a.Instructions.Dial(code)
	if !there {
		return noSuchBank(code)
	}
	uri := "tel:" + strings.ReplaceAll(dial.USSDCode, "#", "%23") // a bare # would end the number
	record.BankCode, record.BankName, record.USSDCode, record.DialURI = &dial.BankCode, &dial.BankName, &dial.USSDCode, &uri
	record.DisplayText = fmt.Sprintf("To pay %s with %s, dial %s on the phone that the bank knows, and follow the steps.",
		a.Amount.Naira(), dial.BankName, dial.USSDCode)
	return c.send(http.StatusOK, record)
}

func noSuchBank(code string) error {
	return flow.Refuse(flow.CodeBankNotSupported, "No bank with the code %q can pay by USSD. Call without bankCode for the list.", safeName(code)).At("bankCode")
}

// payByCard is POST …/pay/card: a link to the bank's own page. No card data ever
// passes through here.
func (*Server) payByCard(c *call) error {
	id, err := alone(c, c.sessionID)
	if err != nil {
		return err
	}
	a, err := c.instruct(id, checkout.Ask{Method: flow.Card})
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, cardRecord{
		AttemptID: a.ID, Reference: a.Reference, Amount: a.Amount.Major(), AmountMinor: a.Amount.Minor(), Currency: flow.Currency,
		CheckoutURL: a.Instructions.CheckoutURL, ExpiresAt: flow.Stamp(a.ExpiresAt),
	})
}

// instruct opens a method and waits for the bank. The same attempt is answered
// as long as it lives, so these calls need no Idempotency-Key.
func (c *call) instruct(id flow.SessionID, ask checkout.Ask) (flow.Attempt, error) {
	c.began = true
	_, a, err := c.service.Instruct(c.ctx, c.project.ID, id, ask)
	if err != nil {
		return a, err
	}
	if a.Instructions == nil {
		return a, flow.Refuse(flow.CodeRailTimeout, "The bank has not answered yet. Ask again: nothing is made twice.")
	}
	return a, nil
}
