package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/rail"
)

// The bounds of what goes over the wire.
const (
	maxBody   = 64 << 10 // bytes of a request, an answer or a notice
	movesPage = 40       // movements in an answer
	callsPage = 100      // calls in an answer
	maxPages  = 50       // pages of movements that are asked for
)

// order is what the rail asks the bank to make. Amount is in kobo.
type order struct {
	Reference   string    `json:"reference"`
	Session     string    `json:"session"`
	Amount      int64     `json:"amount"`
	AccountName string    `json:"accountName"` // whom the payer pays
	ExpiresAt   time.Time `json:"expiresAt"`

	credit  string         // of a refund: what it is of
	project flow.ProjectID // whose money it is about, where that is known
}

// instrument is what the bank made: how an order can be paid.
type instrument struct {
	Reference     string          `json:"reference"`
	Method        flow.Method     `json:"method"`
	Amount        int64           `json:"amount"` // kobo
	AccountName   string          `json:"accountName,omitempty"`
	AccountNumber string          `json:"accountNumber,omitempty"`
	BankCode      string          `json:"bankCode,omitempty"`
	BankName      string          `json:"bankName,omitempty"`
	PaymentCode   string          `json:"paymentCode,omitempty"`
	DialCodes     []flow.DialCode `json:"dialCodes,omitempty"`
	CheckoutURL   string          `json:"checkoutUrl,omitempty"`
	ExpiresAt     time.Time       `json:"expiresAt"`
	Outcome       string          `json:"outcome"` // "", or how a USSD or card payment ended
}

// movement is what the bank booked, or a payment that it refused.
type movement struct {
	Seq           int64           `json:"seq"`
	ID            string          `json:"id"`
	Kind          flow.NoticeKind `json:"kind"`
	Reference     string          `json:"reference"` // "" for money nobody asked for
	AccountNumber string          `json:"accountNumber,omitempty"`
	Amount        int64           `json:"amount"`             // kobo
	Currency      string          `json:"currency,omitempty"` // "" from a bank of before it said one: naira
	Channel       flow.Method     `json:"channel"`
	ValueTime     time.Time       `json:"valueTime"`
	PayerName     string          `json:"payerName"`
	PayerBank     string          `json:"payerBank"`
	PayerAccount  string          `json:"payerAccount"` // masked
	NIPSessionID  string          `json:"nipSessionId,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	Reverses      string          `json:"reverses,omitempty"` // id of the credit that a reversal takes back, or of the payout that came back
	SentAt        time.Time       `json:"sentAt,omitzero"`    // of a payout that came back: when it was sent
	Collects      flow.ProjectID  `json:"collects,omitempty"` // whose collection account it came to
}

// movements is a page of an order's movements, oldest first.
type movements struct {
	Items []movement `json:"items"`
	Next  int64      `json:"next"` // ask again after this one; 0: that was all
}

// disbursement is an order to send money out. Amount is in kobo.
type disbursement struct {
	Reference     string                `json:"reference"`
	Kind          flow.DisbursementKind `json:"kind"`
	Amount        int64                 `json:"amount"`
	Credit        string                `json:"credit,omitempty"`        // of a refund: the id of the credit
	BankCode      string                `json:"bankCode,omitempty"`      // of a payout: where it goes
	AccountNumber string                `json:"accountNumber,omitempty"` //
	AccountName   string                `json:"accountName,omitempty"`   //
	Narration     string                `json:"narration,omitempty"`
	Project       flow.ProjectID        `json:"project,omitempty"` // whose money it is, for the bank's records
}

// disbursed is the answer about a disbursement.
type disbursed struct {
	disbursement

	Found             bool                    `json:"found"`  // false: never taken on
	Status            flow.DisbursementStatus `json:"status"` // pending, done, failed
	RailTransactionID string                  `json:"railTransactionId,omitempty"`
	At                time.Time               `json:"at,omitzero"` // since when it stands so
	Reason            string                  `json:"reason,omitempty"`
	Reverses          string                  `json:"reverses,omitempty"` // id of what was sent, where it came back
	SentAt            time.Time               `json:"sentAt,omitzero"`    // when that was
}

// client is where notices go, and the secret of both directions.
type client struct {
	NotifyURL string `json:"notifyUrl"`
	Secret    string `json:"secret"`
}

// ended is how a payer ends a USSD or card payment.
type ended struct {
	Outcome string `json:"outcome"`
}

// reversal asks to take a booked credit back.
type reversal struct {
	RailTransactionID string `json:"railTransactionId"`
}

// conditions is a change of rail.Conditions: what is missing stays as it is.
type conditions struct {
	Up                 *bool `json:"up"`
	LatencyMs          *int  `json:"latencyMs"`
	TimeoutAfterCommit *bool `json:"timeoutAfterCommit"`
	NotifyLossPercent  *int  `json:"notifyLossPercent"`
	DuplicatePercent   *int  `json:"duplicatePercent"`

	Refunds *rail.Fate `json:"refunds"`
	Payouts *rail.Fate `json:"payouts"`
}

// problem is a refusal as it goes over the wire.
type problem struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Outcome string `json:"outcome,omitempty"` // of a payment that ended before: how
}

func (p *problem) Error() string { return p.Code + ": " + p.Message }

func refuse(status int, code, message string) *problem {
	return &problem{status: status, Code: code, Message: message}
}

// errorBody is what a refused request is answered with.
type errorBody struct {
	Error *problem `json:"error"`
}

// decode reads one JSON value and nothing else.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read JSON: something follows the value")
	}
	return nil
}

// readPlain reads an object of the bank's. What it adds to it is its own business.
func readPlain(body []byte, into any) error {
	if err := plainly(body, "items", "dialcodes"); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

// plainly refuses an object with one name for two values, in whatever case: of
// encoding/json the last counts, of others the first, and it may be an amount. So it
// does with the objects in its lists of some names.
func plainly(body []byte, lists ...string) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("it is no object")
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		text = strings.ToLower(strings.ToUpper(text)) // as encoding/json: ſ is an s too
		if seen[text] {
			return fmt.Errorf("%q is given twice", text)
		}
		seen[text] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if !slices.Contains(lists, text) {
			continue
		}
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return err
		}
		for _, item := range items {
			if err := plainly(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// readJSON reads a request's body: JSON by its type, bounded, known fields only.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if r.Header.Get("Content-Type") != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "send application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "a body has at most 64 KiB")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "unreadable", "the body did not arrive whole")
	}
	if err := decode(body, into); err != nil {
		return refuse(http.StatusBadRequest, "malformed_json", err.Error())
	}
	return nil
}

// writeJSON answers; an error of writing is the caller's, who has gone.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
