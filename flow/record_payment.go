package flow

// PaymentRecord is money that was seen, as its merchant reads it.
type PaymentRecord struct {
	ID                PaymentID   `json:"id"`
	AttemptID         *string     `json:"attemptId"`
	SessionID         *string     `json:"sessionId"`
	AmountMinor       string      `json:"amountMinor"`
	AppliedMinor      string      `json:"appliedMinor"`   // taken for the merchant
	UnappliedMinor    string      `json:"unappliedMinor"` // set aside now
	RefundedMinor     string      `json:"refundedMinor"`  // back with who paid it, or on its way there
	FeeMinor          string      `json:"feeMinor"`
	NetMinor          string      `json:"netMinor"`
	Channel           Method      `json:"channel"`
	PaidAt            string      `json:"paidAt"`
	ReceivedAt        string      `json:"receivedAt"`
	Payer             PaidBy      `json:"payer"`
	NIPSessionID      *string     `json:"nipSessionId"`
	RailTransactionID string      `json:"railTransactionId"`
	MatchStatus       MatchStatus `json:"matchStatus"`
	Resolution        *string     `json:"resolution"`
	ResolvedAt        *string     `json:"resolvedAt"`
	ResolvedBy        *string     `json:"resolvedBy"`
	ResolveReason     *string     `json:"resolveReason"`
	ReturnsAt         *string     `json:"returnsAt"`
	ReversedMinor     string      `json:"reversedMinor,omitempty"` // what the bank took back of it
}

// RecordPayment makes the record of a payment.
func RecordPayment(p Payment) PaymentRecord {
	r := PaymentRecord{
		ID: p.ID, AttemptID: OrNull(p.Attempt), SessionID: OrNull(p.Session), AmountMinor: p.Amount.Minor(),
		AppliedMinor: p.Applied.Minor(), UnappliedMinor: p.Unapplied.Minor(), RefundedMinor: p.Refunded.Minor(),
		FeeMinor: p.FeeKept().Minor(), NetMinor: p.Net().Minor(), Channel: p.Channel, PaidAt: Stamp(p.PaidAt), ReceivedAt: Stamp(p.ReceivedAt),
		Payer: p.Payer, NIPSessionID: OrNull(p.NIPSessionID), RailTransactionID: p.RailTransactionID, MatchStatus: p.Match,
		Resolution: OrNull(p.Resolution), ResolvedAt: StampOrNull(p.ResolvedAt), ResolvedBy: OrNull(p.ResolvedBy),
		ResolveReason: OrNull(p.ResolvedWhy), ReturnsAt: StampOrNull(p.ReturnsAt),
	}
	if p.Reversed > 0 {
		r.ReversedMinor = p.Reversed.Minor()
	}
	return r
}
