package rail

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// TestBank is what a pretend bank can be told to do, beside being a rail. Only
// the sandbox has one; a live rail never does.
type TestBank interface {
	// Transfer plays a payer who sends money to an account number.
	Transfer(ctx context.Context, t Transfer) (TransferResult, error)
	// Reverse plays the bank taking a credit back, once, by the rail's name of
	// the credit.
	Reverse(ctx context.Context, railTransactionID string) (TransferResult, error)
	// CompleteUSSD plays a payer who dials, and ends it with an outcome:
	// "success" or "failed". A payment ends once: told again, the bank refuses, and
	// the flow.Error says how it ended.
	CompleteUSSD(ctx context.Context, paymentCode, outcome string) error
	// CompleteCard ends a card page by our reference with an outcome:
	// "approved" or "declined", once too.
	CompleteCard(ctx context.Context, reference, outcome string) error
	// SetConditions changes how the bank behaves from now on.
	SetConditions(ctx context.Context, c Conditions) (Conditions, error)
	// Calls lists the calls that the bank took in from the rail, oldest first, from a
	// cursor: those that are not long past, for there is a bound.
	Calls(ctx context.Context, after int64, limit int) ([]Call, error)
}

// Transfer is one transfer to a virtual account. Amount 0 means what was asked
// for, less what came in parts already. Copies is how often the notice is sent (0
// means once); Drop sends none. PendingMs is how long it is on its way: until then
// only asking knows of it, and there is no notice. Returned is a transfer that the bank then sends back by
// itself instead of crediting it. Collects is the project whose collection
// account the number is, which the notice then tells. Of transfers with one
// name in Once there is one: the same again is answered with what it booked.
type Transfer struct {
	AccountNumber  string    `json:"accountNumber"`
	Amount         flow.Kobo `json:"amount"`
	SenderName     string    `json:"senderName"`
	SenderBankCode string    `json:"senderBankCode"`
	ValueTime      time.Time `json:"valueTime,omitzero"`
	PendingMs      int       `json:"pendingMs,omitempty"`
	Returned       bool      `json:"returned,omitempty"`
	DelayMs        int       `json:"delayMs"`
	Copies         int       `json:"copies"`
	Drop           bool      `json:"drop"`
	NIPSessionID   string    `json:"nipSessionId"`

	Collects flow.ProjectID `json:"collects,omitempty"`
	Once     string         `json:"once,omitempty"` // 32 hexadecimal digits
}

// TransferResult is what the bank booked.
type TransferResult struct {
	RailTransactionID string    `json:"railTransactionId"`
	NIPSessionID      string    `json:"nipSessionId"`
	AccountNumber     string    `json:"accountNumber"`
	AmountMinor       string    `json:"amountMinor"`
	ValueTime         time.Time `json:"valueTime"`
}

// Conditions is how the pretend bank behaves.
type Conditions struct {
	Up                 bool `json:"up"`                 // false: every rail call is refused
	LatencyMs          int  `json:"latencyMs"`          // added to every rail call that is not refused so
	TimeoutAfterCommit bool `json:"timeoutAfterCommit"` // do what is asked, then never answer
	NotifyLossPercent  int  `json:"notifyLossPercent"`
	DuplicatePercent   int  `json:"duplicatePercent"`

	Refunds Fate `json:"refunds"` // what becomes of refunds that are ordered
	Payouts Fate `json:"payouts"` // and of payouts
}

// Fate is what becomes of the money that the pretend bank is ordered to send.
// In JSON FateOK is "ok".
type Fate string

// The fates. What is held as pending meets the fate that is set next; there,
// what would be refused fails, for it was taken on already.
const (
	FateOK      Fate = ""        // taken on, and sent a moment later
	FateFail    Fate = "fail"    // taken on; a moment later the bank says that it cannot be sent
	FateReject  Fate = "reject"  // refused at once
	FatePending Fate = "pending" // taken on, and nothing more
	FateBounce  Fate = "bounce"  // sent, and then it comes back
)

// Fates are what a Fate may be called in JSON, the default first.
func Fates() []string {
	return []string{"ok", string(FateFail), string(FateReject), string(FatePending), string(FateBounce)}
}

// MarshalText is the name of a fate.
func (f Fate) MarshalText() ([]byte, error) {
	if f == FateOK {
		return []byte("ok"), nil
	}
	return []byte(f), nil
}

// FateOf is the fate of a name; false for a name that is none's.
func FateOf(name string) (Fate, bool) {
	if name == "ok" {
		return FateOK, true
	}
	return Fate(name), slices.Contains(Fates(), name)
}

// UnmarshalText reads the name of a fate; an error for one that is none's.
func (f *Fate) UnmarshalText(text []byte) error {
	fate, ok := FateOf(string(text))
	if !ok {
		return errors.New("a fate is one of " + strings.Join(Fates(), ", "))
	}
	*f = fate
	return nil
}

// Call is one call that the rail received.
type Call struct {
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	Operation string    `json:"operation"` // create_virtual_account, create_ussd, create_card_page, find, check, resolve_account, look_up_identity, disburse, find_disbursement, statement
	Reference string    `json:"reference"`
	Session   string    `json:"sessionId"` // of a refund: the session that was paid
	Outcome   string    `json:"outcome"`   // ok, refused, timeout, down

	Project flow.ProjectID `json:"projectId,omitempty"` // whose money it is about, "" where the bank does not know
}
