package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// The records are what merchants read, in the API's answers and in webhooks
// alike. They are made here because an event's bytes are made in the
// transaction of its cause.

// SessionRecord is a session as its merchant reads it.
type SessionRecord struct {
	ID              SessionID         `json:"id"`
	Mode            Mode              `json:"mode"`
	AmountMinor     string            `json:"amountMinor"`
	AmountPaidMinor string            `json:"amountPaidMinor"`
	Currency        string            `json:"currency"`
	Status          SessionStatus     `json:"status"`
	Exceptions      []Exception       `json:"exceptions"`
	PaymentMethods  []MethodRecord    `json:"paymentMethods"`
	Reference       *string           `json:"reference"`
	CustomerEmail   string            `json:"customerEmail"`
	CustomerPhone   *string           `json:"customerPhone"`
	CustomerName    *string           `json:"customerName"`
	Description     *string           `json:"description"`
	Metadata        map[string]string `json:"metadata"`
	CallbackURL     *string           `json:"callbackUrl"`
	ClientSecret    string            `json:"clientSecret,omitempty"`
	CheckoutURL     string            `json:"checkoutUrl,omitempty"`
	ExpiresAt       string            `json:"expiresAt"`
	CreatedAt       string            `json:"createdAt"`
	Livemode        bool              `json:"livemode"`
}

// MethodRecord is one offered method and how to ask for it.
type MethodRecord struct {
	Method Method       `json:"method"`
	Status OfferStatus  `json:"status"`
	Reason string       `json:"reason,omitempty"`
	Action MethodAction `json:"action"`
}

// MethodAction is the call that makes a method's instructions.
type MethodAction struct {
	Verb     string `json:"verb"`
	Endpoint string `json:"endpoint"`
}

// Surroundings is what a record needs beside the rows: the environment, and
// how links and client secrets are made.
type Surroundings struct {
	Live         bool
	ClientSecret func(SessionID) string
	CheckoutURL  func(Session) string
}

// checkoutURL is the link into the chat, "" for a session that is not shown there.
func (a Surroundings) checkoutURL(s Session) string {
	if a.CheckoutURL == nil || s.Mode != InChat && !s.ChargeAsked {
		return ""
	}
	return a.CheckoutURL(s)
}

// RecordSession makes the record of a session.
func RecordSession(s Session, offers []Offer, around Surroundings) SessionRecord {
	r := SessionRecord{
		ID: s.ID, Mode: s.Mode, AmountMinor: s.Amount.Minor(), AmountPaidMinor: s.AmountPaid.Minor(), Currency: Currency,
		Status: s.Status, Exceptions: s.Exceptions, Reference: OrNull(s.Reference), CustomerEmail: s.CustomerEmail,
		CustomerPhone: phone(s.CustomerPhone), CustomerName: OrNull(s.CustomerName), Description: OrNull(s.Description),
		Metadata: s.Metadata, CallbackURL: OrNull(s.CallbackURL),
		ExpiresAt: Stamp(s.ExpiresAt), CreatedAt: Stamp(s.CreatedAt), Livemode: around.Live,
	}
	if around.ClientSecret != nil {
		r.ClientSecret = around.ClientSecret(s.ID)
	}
	r.CheckoutURL = around.checkoutURL(s)
	if r.Exceptions == nil {
		r.Exceptions = []Exception{}
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	r.PaymentMethods = make([]MethodRecord, 0, len(offers))
	for _, o := range offers {
		r.PaymentMethods = append(r.PaymentMethods, MethodRecord{
			Method: o.Method, Status: o.Status, Reason: o.Reason,
			Action: MethodAction{Verb: "POST", Endpoint: fmt.Sprintf("/v1/whatsapp/checkout/sessions/%s/pay/%s", s.ID, o.Method.Slug())},
		})
	}
	return r
}

// ChargeStatus is where a charge stands; it follows its session.
type ChargeStatus string

// The states of a charge.
const (
	ChargePending    ChargeStatus = "PENDING"
	ChargeProcessing ChargeStatus = "PROCESSING"
	ChargeSucceeded  ChargeStatus = "SUCCEEDED"
	ChargeExpiredSt  ChargeStatus = "EXPIRED"
	ChargeCancelSt   ChargeStatus = "CANCELLED"
)

// ChargeRecord is a charge as its merchant reads it.
type ChargeRecord struct {
	ID                ChargeID          `json:"id"`
	SessionID         SessionID         `json:"sessionId"`
	Reference         string            `json:"reference"`
	MerchantReference *string           `json:"merchantReference"`
	Status            ChargeStatus      `json:"status"`
	AmountMinor       string            `json:"amountMinor"`
	Currency          string            `json:"currency"`
	CheckoutURL       string            `json:"checkoutUrl,omitempty"`
	VirtualAccount    *VirtualAccount   `json:"virtualAccount"`
	Customer          CustomerRecord    `json:"customer"`
	CreatedAt         string            `json:"createdAt"`
	ExpiresAt         string            `json:"expiresAt"`
	Livemode          bool              `json:"livemode"`
	Metadata          map[string]string `json:"metadata"`
	Exceptions        []Exception       `json:"exceptions"`
	PaidAt            string            `json:"paidAt,omitempty"`
	AmountPaidMinor   string            `json:"amountPaidMinor,omitempty"`
	ExcessMinor       string            `json:"excessMinor,omitempty"`
	RefundedMinor     string            `json:"refundedMinor,omitempty"` // back with who paid it, or on its way there
	FeeMinor          string            `json:"feeMinor,omitempty"`
	NetMinor          string            `json:"netMinor,omitempty"`
	Channel           Method            `json:"channel,omitempty"`
	Payer             *PaidBy           `json:"payer,omitempty"`
	NIPSessionID      string            `json:"nipSessionId,omitempty"`
}

// CustomerRecord is who pays.
type CustomerRecord struct {
	Email string  `json:"email"`
	Phone *string `json:"phone"`
	Name  *string `json:"name"`
}

// VirtualAccount is the six fields of bank-transfer instructions.
type VirtualAccount struct {
	BankName      string `json:"bankName"`
	AccountNumber string `json:"accountNumber"`
	AccountName   string `json:"accountName"`
	Amount        string `json:"amount"` // naira, not kobo
	Reference     string `json:"reference"`
	ExpiresAt     string `json:"expiresAt"`
}

// RecordVirtualAccount makes the six fields; nil while there are none.
func RecordVirtualAccount(a Attempt) *VirtualAccount {
	if a.Instructions == nil || a.Method != BankTransfer {
		return nil
	}
	return &VirtualAccount{
		BankName: a.Instructions.BankName, AccountNumber: a.Instructions.AccountNumber, AccountName: a.Instructions.AccountName,
		Amount: a.Amount.Major(), Reference: a.Reference, ExpiresAt: Stamp(a.ExpiresAt),
	}
}

// RecordCharge makes the record of a session's charge out of the session, its
// attempts and the payments that were seen for it, oldest first.
func RecordCharge(s Session, attempts []Attempt, payments []Payment, around Surroundings) ChargeRecord {
	r := ChargeRecord{
		ID: s.Charge, SessionID: s.ID, MerchantReference: OrNull(s.Reference), Status: chargeStatus(s.Status),
		AmountMinor: s.Amount.Minor(), Currency: Currency,
		Customer:  CustomerRecord{Email: s.CustomerEmail, Phone: phone(s.CustomerPhone), Name: OrNull(s.CustomerName)},
		CreatedAt: Stamp(s.CreatedAt), ExpiresAt: Stamp(s.ExpiresAt), Livemode: around.Live, Metadata: s.Metadata, Exceptions: s.Exceptions,
	}
	r.CheckoutURL = around.checkoutURL(s)
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	if r.Exceptions == nil {
		r.Exceptions = []Exception{}
	}
	for _, a := range attempts {
		if account := RecordVirtualAccount(a); account != nil {
			account.Amount = s.AskedOn(a).Major()
			r.VirtualAccount = account
		}
	}
	r.Reference = serviceReference(attempts)
	var refunded Kobo
	for _, p := range payments {
		switch {
		case s.Status != SessionPaid:
			refunded += p.Refunded
		case p.Counts(): // what went back of it before, and not to the bank, was none of what the session was paid with
			before := p.Amount - p.brought(s) - (p.Reversed - p.Lost - p.FeeBack)
			refunded += max(p.Refunded-max(before, 0), 0)
		}
	}
	if refunded > 0 {
		r.RefundedMinor = refunded.Minor()
	}
	if s.Status == SessionPaid {
		r.paid(s, payments)
	}
	return r
}

// paid fills what is known only once the session is paid.
func (r *ChargeRecord) paid(s Session, payments []Payment) {
	var fee, lost, came, taken Kobo
	for _, p := range payments {
		if p.Match != Duplicate { // of what was sent back the bank may have taken as much again
			lost += p.Lost + p.FeeBack
		}
		if !p.CountsFor(s) || p.Match == Partial && p.Applied == 0 && p.Fee == 0 && p.Reversed == p.Amount {
			continue // a part that was taken back was paid again, or the session would not be
		}
		fee, came, taken = fee+p.FeeKept(), came+p.brought(s), taken+p.Applied
		if r.Payer != nil && p.Match == Partial {
			continue // parts come before what completed them, but may share its millisecond
		}
		r.Channel, r.NIPSessionID = p.Channel, p.NIPSessionID
		payer := p.Payer
		r.Payer = &payer
	}
	r.PaidAt = Stamp(s.PaidAt)
	r.AmountPaidMinor, r.FeeMinor, r.NetMinor = s.AmountPaid.Minor(), fee.Minor(), (max(s.AmountPaid, taken) - fee - lost).Minor()
	if came > s.AmountPaid && slices.Contains(s.Exceptions, Overpaid) {
		r.ExcessMinor = (came - s.AmountPaid).Minor()
	}
}

// owedBack says whether a payment is a part that its session's policy sends back, and
// could not yet: the session is not paid with it.
func (p Payment) owedBack(s Session) bool {
	return p.Match == Partial && p.Applied == 0 && p.Fee == 0 && s.Policy.Underpayment == "refund"
}

// brought is what of a payment was there when it paid its session, in kobo: what
// went back of a part, or of late money, while it waited was not. Where too much came
// and goes back that is not told apart, and all of it counts.
func (p Payment) brought(s Session) Kobo {
	if p.Match != Partial && p.Match != Late {
		return p.Amount
	}
	over := slices.Contains(s.Exceptions, Overpaid)
	if p.Resolution == ResolvedRefunded && over || p.Resolution == ResolvedAccepted && over && s.Policy.Overpayment == "refund_excess" {
		return p.Amount - (p.Reversed - p.Lost - p.FeeBack)
	}
	return p.Applied + p.Unapplied
}

// serviceReference is the reference of the attempt that succeeded, else of the
// newest one.
func serviceReference(attempts []Attempt) string {
	ref := ""
	for _, a := range attempts {
		ref = a.Reference
		if a.Status == AttemptSucceeded {
			return ref
		}
	}
	return ref
}

func chargeStatus(s SessionStatus) ChargeStatus {
	switch s {
	case SessionPending:
		return ChargePending
	case SessionProcessing:
		return ChargeProcessing
	case SessionPaid:
		return ChargeSucceeded
	case SessionExpired:
		return ChargeExpiredSt
	case SessionCancelled:
		return ChargeCancelSt
	}
	return ChargePending
}

// eventBody is the body of a webhook.
type eventBody struct {
	ID         EventID   `json:"id"`
	Event      EventKind `json:"event"`
	Reference  *string   `json:"reference"`
	CreatedAt  string    `json:"createdAt"`
	Livemode   bool      `json:"livemode"`
	APIVersion string    `json:"apiVersion"`
	Sequence   int64     `json:"sequence"`
	Data       any       `json:"data"`
}

// chargeData is the data of every charge event: the record and whose it is. A
// session has no charge until it is paid or one is asked for, but may have
// events that are about money: their id is null.
type chargeData struct {
	ID *string `json:"id"`
	ChargeRecord
	ServiceReference string         `json:"serviceReference"`
	AttemptID        *string        `json:"attemptId"`
	Payment          *PaymentRecord `json:"payment,omitempty"` // the money this event is about
}

// ComposeEvent makes the bytes of an event; its reference is null where there
// is none.
func ComposeEvent(e Event, reference string, data any, live bool) ([]byte, error) {
	body, err := json.Marshal(eventBody{
		ID: e.ID, Event: e.Kind, Reference: OrNull(reference), CreatedAt: Stamp(e.CreatedAt), Livemode: live, APIVersion: "v1",
		Sequence: e.Sequence, Data: data,
	})
	if err != nil {
		return nil, fmt.Errorf("compose event %s: %w", e.ID, err)
	}
	return body, nil
}

// ChargeData is the data of a charge event; about is the payment that caused
// it, nil where none did.
func ChargeData(r ChargeRecord, attempt AttemptID, about *Payment) any {
	data := chargeData{ID: OrNull(r.ID), ChargeRecord: r, ServiceReference: r.Reference, AttemptID: OrNull(attempt)}
	if about != nil {
		record := RecordPayment(*about)
		data.Payment = &record
	}
	return data
}

// EventReference is the reference a webhook carries: the merchant's own where
// there is one, else the service's, "" while there is neither.
func EventReference(s Session, serviceReference string) string {
	if s.Reference != "" {
		return s.Reference
	}
	return serviceReference
}

// OrNull is nil for "", so that JSON says null.
func OrNull[T ~string](v T) *string {
	if v == "" {
		return nil
	}
	text := string(v)
	return &text
}

// StampOrNull is Stamp, nil for no time.
func StampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return OrNull(Stamp(t))
}

func phone(p Phone) *string {
	if p == "" {
		return nil
	}
	full := "+" + string(p)
	return &full
}

// Millis is a time as the store keeps it: milliseconds since 1970, 0 for none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMillis reads what Millis wrote, as UTC.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// ParseMinor reads what Kobo.Minor wrote.
func ParseMinor(s string) (Kobo, error) {
	k, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the amount %q: %w", s, err)
	}
	return Kobo(k), nil
}
