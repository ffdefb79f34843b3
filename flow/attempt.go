package flow

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// AttemptStatus is where an attempt stands.
type AttemptStatus string

// The states of an attempt. Only an ACTIVE one can be live.
const (
	AttemptActive     AttemptStatus = "ACTIVE"
	AttemptSucceeded  AttemptStatus = "SUCCEEDED"
	AttemptFailed     AttemptStatus = "FAILED"
	AttemptExpired    AttemptStatus = "EXPIRED"
	AttemptSuperseded AttemptStatus = "SUPERSEDED"
)

// Attempt is one method's try at paying a session. It is saved before the rail
// is called; Instructions is nil until the rail has answered.
type Attempt struct {
	ID           AttemptID
	Session      SessionID
	Method       Method
	Reference    string // ours, wsp_ref_…: the rail's idempotency key
	Amount       Kobo   // to be paid by this attempt
	Status       AttemptStatus
	Tries        int // calls to the rail that were begun
	Instructions *Instructions
	Reason       string // why it failed
	Chat         ChatID // the chat it was chosen in, "" for REST
	CreatedAt    time.Time
	ExpiresAt    time.Time
}

// Live says whether the attempt's instructions can still be paid on time.
func (a Attempt) Live(now time.Time) bool {
	return a.Status == AttemptActive && now.Before(a.ExpiresAt)
}

// payable says whether the attempt's instructions can be shown to whoever they were
// made for: they are live, or another chat's stand in their place, and the bank takes
// the money of both. They ask for what is due: the code or the page for the rest of a
// part that went back since asks for too little.
func (a Attempt) payable(s Session, now time.Time) bool {
	return a.taken(now) && a.Amount == s.Outstanding()
}

// taken says whether the bank takes money for an attempt on time, also where another
// took its place.
func (a Attempt) taken(now time.Time) bool {
	return a.Live(now) || a.Status == AttemptSuperseded && now.Before(a.ExpiresAt)
}

// misleads says whether the bank takes money for a code or a page that asks for another
// amount than is due: who pays it pays too much, or not all.
func (a Attempt) misleads(s Session, now time.Time) bool {
	return a.taken(now) && a.Instructions != nil && a.Method != BankTransfer && a.Amount != s.Outstanding()
}

// ofAnother says whether an attempt is that of another chat than the one that asks,
// "" for REST, which asks for all of them.
func (a Attempt) ofAnother(chat ChatID) bool { return a.Chat != "" && chat != "" && a.Chat != chat }

// Awaited says whether somebody can still wait for an attempt: it is active, or
// another chat's among the others of its session took its place.
func (a Attempt) Awaited(others []Attempt) bool {
	return a.Status == AttemptActive || a.Status == AttemptSuperseded && a.Instructions != nil &&
		slices.ContainsFunc(others, func(o Attempt) bool { return o.Method == a.Method && o.ofAnother(a.Chat) })
}

// shownIn is an attempt that REST asked for once a chat is the first to ask for
// it too: from then on its money is that chat's, and no other chat of the session
// is told of it.
func (a Attempt) shownIn(chat ChatID) (Attempt, bool) {
	if chat == "" || a.Chat != "" {
		return a, false
	}
	a.Chat = chat
	return a, true
}

// Asking is the attempt of a session whose account payers are to send money to, zero
// where there is none. There is one at most, and parts may come to others still. One
// that the bank has not answered for asks nobody yet: what it was ordered with stands,
// or the bank takes the same reference for another order.
func Asking(attempts []Attempt) Attempt {
	if i := slices.IndexFunc(attempts, Attempt.asking); i >= 0 {
		return attempts[i]
	}
	return Attempt{}
}

func (a Attempt) asking() bool {
	return a.Status == AttemptActive && a.Method == BankTransfer && a.Instructions != nil
}

// coming says whether the bank still makes an account, which will ask for what is due
// once it is there.
func (a Attempt) coming() bool {
	return a.Status == AttemptActive && a.Method == BankTransfer && a.Instructions == nil
}

// AskForRest is that attempt once another amount is due, false where it asks for that
// already or asks for nothing any more.
func (s Session) AskForRest(a Attempt) (Attempt, bool) {
	if !a.asking() || a.Amount == s.Outstanding() {
		return a, false
	}
	a.Amount = s.Outstanding()
	return a, true
}

// AskedOn is what the account of an attempt asks for by now: what is left, also where it
// was switched away from, for a part may have come to it.
func (s Session) AskedOn(a Attempt) Kobo {
	if s.Open() {
		return s.Outstanding()
	}
	return a.Amount
}

// Instructions is what a rail answered: how to pay. Which fields are set
// depends on the method.
type Instructions struct {
	RailReference string     `json:"railReference"`
	BankName      string     `json:"bankName,omitempty"`      // transfer
	BankCode      string     `json:"bankCode,omitempty"`      // transfer
	AccountNumber string     `json:"accountNumber,omitempty"` // transfer: ten digits
	AccountName   string     `json:"accountName,omitempty"`   // transfer
	PaymentCode   string     `json:"paymentCode,omitempty"`   // ussd
	Banks         []DialCode `json:"banks,omitempty"`         // ussd: the rail's own dial strings
	CheckoutURL   string     `json:"checkoutUrl,omitempty"`   // card: a one-time page of the rail
	ExpiresAt     time.Time  `json:"expiresAt"`
}

// DialCode is what a bank's customer dials to pay: the rail's data, never computed.
type DialCode struct {
	BankCode string `json:"bankCode"`
	BankName string `json:"bankName"`
	USSDCode string `json:"ussdCode"`
}

// Dial is the dial string of a bank, false where the rail gave none.
func (i *Instructions) Dial(bankCode string) (DialCode, bool) {
	if i == nil {
		return DialCode{}, false
	}
	for _, d := range i.Banks {
		if d.BankCode == bankCode {
			return d, true
		}
	}
	return DialCode{}, false
}

// Order is what a rail is asked for: instructions for one attempt.
type Order struct {
	Reference     string // ours: the same reference never makes two instruments
	Session       SessionID
	Method        Method
	Amount        Kobo
	AccountName   string // what a transfer's payer sees as beneficiary
	CustomerName  string
	CustomerEmail string
	ExpiresAt     time.Time
	// Again is set when an earlier call's outcome is unknown: the rail must be
	// asked by reference before anything is made.
	Again bool
}

// maxAccountName is how long the name of an account may be, in characters.
const maxAccountName = 100

// AccountName is what a payer sees as beneficiary of a merchant's accounts. What
// does not print is not in it, and it is cut to fit: a bank that takes less cuts
// more of it by itself.
func AccountName(merchant string) string {
	const suffix = "CHECKOUT"
	name := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, OneLine(merchant)))
	name = name[:min(len(name), maxAccountName-len("/"+suffix))]
	if cut := strings.TrimSpace(string(name)); cut != "" {
		return cut + "/" + suffix
	}
	return suffix
}

// Bank is an institution that a payer can pay from.
type Bank struct {
	Code     string // three digits for deposit banks: "058"
	Name     string
	Short    string // a word a payer knows it by: "GTBank"
	Slug     string // its name in lower case and dashes: "guaranty-trust-bank"
	USSD     bool   // can pay by USSD
	NIPCode  string
	BaseDial string // "*737#"
}
