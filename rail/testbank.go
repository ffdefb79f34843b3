package rail

import (
	"context"
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
	// "success" or "failed".
	CompleteUSSD(ctx context.Context, paymentCode, outcome string) error
	// CompleteCard ends a card page by our reference with an outcome:
	// "approved" or "declined".
	CompleteCard(ctx context.Context, reference, outcome string) error
	// SetConditions changes how the bank behaves from now on.
	SetConditions(ctx context.Context, c Conditions) (Conditions, error)
	// Calls lists every call the rail received, oldest first, from a cursor.
	Calls(ctx context.Context, after int64, limit int) ([]Call, error)
}

// Transfer is one transfer to a virtual account. Amount 0 means what was asked
// for. Copies is how often the notice is sent (0 means once); Drop sends none.
// PendingMs is how long it is on its way: until then only asking knows of it, and
// there is no notice. Returned is a transfer that the bank then sends back by
// itself instead of crediting it.
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
	LatencyMs          int  `json:"latencyMs"`          // added to every rail call
	TimeoutAfterCommit bool `json:"timeoutAfterCommit"` // do what is asked, then never answer
	NotifyLossPercent  int  `json:"notifyLossPercent"`
	DuplicatePercent   int  `json:"duplicatePercent"`
}

// Call is one call that the rail received.
type Call struct {
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	Operation string    `json:"operation"` // create_virtual_account, create_ussd, create_card_page, find, check, resolve_account, look_up_identity
	Reference string    `json:"reference"`
	Session   string    `json:"sessionId"`
	Outcome   string    `json:"outcome"` // ok, refused, timeout, down
}
