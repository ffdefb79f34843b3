package flow

import "time"

// DisbursementKind says why money goes out.
type DisbursementKind string

// The kinds of disbursement.
const (
	DisburseRefund DisbursementKind = "refund" // back to whoever paid
	DisbursePayout DisbursementKind = "payout" // to a merchant's own account
)

// Disbursement is an order to a rail to send money out.
type Disbursement struct {
	Kind      DisbursementKind
	Reference string // ours: the refund or the settlement. A rail does each once
	Amount    Kobo
	Credit    string    // of a refund: the rail's name of the credit that it is of
	Project   ProjectID // whose money it is, for the rail's records; may be ""
	To        BankAccount
	Narration string // what the receiver reads, at most 50 characters of ASCII
}

// BankAccount is where a merchant is paid out to; zero for a refund, which goes
// back to where its credit came from.
type BankAccount struct {
	BankCode string `json:"bankCode"`
	Number   string `json:"accountNumber"`
	Name     string `json:"accountName"`
}

// Outcomes are what a notice about money that was sent out says, in order.
func (n Notice) Outcomes() []Disbursed {
	d := Disbursed{Status: DisbursementDone, RailTransactionID: n.RailTransactionID, At: n.PaidAt}
	if n.Kind != PaidOut {
		d.Status, d.Reason, d.Reverses, d.SentAt = DisbursementFailed, n.Reason, n.Reverses, n.SentAt
	}
	return d.Outcomes()
}

// Outcomes are what a rail's answer says, in order. One that the money came back
// also says that it was sent, which may not have been heard.
func (d Disbursed) Outcomes() []Disbursed {
	if !d.CameBack() {
		return []Disbursed{d}
	}
	sent := Disbursed{Status: DisbursementDone, RailTransactionID: d.Reverses, At: d.At}
	if !d.SentAt.IsZero() && d.SentAt.Before(d.At) {
		sent.At = d.SentAt
	}
	return []Disbursed{sent, d}
}

// CameBack says whether money was sent and came back.
func (d Disbursed) CameBack() bool { return d.Status == DisbursementFailed && d.Reverses != "" }

// DisbursementStatus is where a disbursement stands at its rail.
type DisbursementStatus string

// The states of a disbursement at its rail.
const (
	DisbursementPending DisbursementStatus = "pending" // taken on: its outcome is told, or asked for
	DisbursementDone    DisbursementStatus = "done"
	DisbursementFailed  DisbursementStatus = "failed" // for good: nothing was sent, or it came back
)

// Disbursed is what a rail says of a disbursement.
type Disbursed struct {
	Status            DisbursementStatus
	RailTransactionID string    // the rail's name of the movement, "" while there is none
	At                time.Time // since when it stands so: the value time of an outcome
	Reason            string    // of a failure, in plain words
	Reverses          string    // of what came back: the rail's name of what was sent, "" where nothing was
	SentAt            time.Time // of what came back: the value time of what was sent, zero where the rail does not say
}
