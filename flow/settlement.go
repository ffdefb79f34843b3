package flow

import (
	"cmp"
	"strings"
	"time"
)

// SettlementID names money on its way to a merchant: wsp_stl_….
type SettlementID string

// PrefixSettlement is the prefix of the ids of settlements.
const PrefixSettlement = "wsp_stl_"

// SettlementStatus is where a settlement stands.
type SettlementStatus string

// The states of a settlement.
const (
	SettlementPending    SettlementStatus = "PENDING"    // the bank was not told yet
	SettlementProcessing SettlementStatus = "PROCESSING" // it was, and has not said that it is done
	SettlementSucceeded  SettlementStatus = "SUCCEEDED"  // the money was sent
	SettlementFailed     SettlementStatus = "FAILED"     // it was not, or came back: the next batch takes it
)

// SettlementStatuses are all states of a settlement.
func SettlementStatuses() []SettlementStatus {
	return []SettlementStatus{SettlementPending, SettlementProcessing, SettlementSucceeded, SettlementFailed}
}

// Settlement is what a project is paid out for one day: the lines of the ledger
// whose day it is, those that are against them, and what an earlier payout left.
type Settlement struct {
	ID                SettlementID
	Project           ProjectID
	SettlesOn         Date
	Status            SettlementStatus
	Amount            Kobo  // what is sent: the lines and Carried together
	Carried           Kobo  // what earlier payouts left, negative where one was paid that was thought to have failed, or twice
	Lines             int64 // of the ledger that are in it
	To                BankAccount
	BankName          string
	Tries             int  // orders that were begun
	Returned          bool // it was sent, and came back
	RailTransactionID string
	Failure           string    // why it failed
	CreatedAt         time.Time // zero while its lines are being gathered: nobody sees it before
	SentAt            time.Time // when the bank was first told, or took it on after a silence
	DoneAt            time.Time // when the bank says it was sent
}

// Gathered is what the lines of a settlement come to, in kobo.
type Gathered struct {
	Lines int64
	Net   Kobo
}

// Why a project is not paid out although money is due.
const (
	BlockedNoAccount = "no_settlement_account" // it has not said where to
	BlockedStopped   = "project_suspended"     // the operator stopped it, or suspended its merchant
)

// Close ends the gathering: what the lines come to is on its way, together with
// what lies available, in kobo. false where that is nothing, or less: then it
// waits for the money of later days.
func (b Settlement) Close(g Gathered, available Kobo, on Date, now time.Time) (Change, bool) {
	b.Amount, b.Carried, b.Lines = g.Net+available, available, g.Lines
	if b.Amount <= 0 {
		return Change{}, false
	}
	b.SettlesOn, b.CreatedAt = on, now
	return Change{Settlement: &b, Entries: []Entry{b.entry(EntrySettle, string(b.ID), now, []Posting{
		{Account: MerchantPending, Amount: g.Net}, {Account: MerchantAvailable, Amount: available}, {Account: Settled, Amount: -b.Amount},
	})}}, true
}

// Send takes in that the bank is about to be told of a settlement. It must be
// kept before the bank is called.
func (b Settlement) Send(now time.Time) (Change, error) {
	b, err := b.move(triggerSend)
	if err != nil {
		return Change{}, err
	}
	if b.SentAt.IsZero() {
		b.SentAt = now
	}
	b.Tries++
	return Change{Settlement: &b}, nil
}

// TakenOn takes in that the bank took a settlement on which it had not heard of when it
// was told before: it is asked about as one that it was told of only now.
func (b Settlement) TakenOn(now time.Time) Change {
	b.SentAt = now
	return Change{Settlement: &b}
}

// Heard takes in what the rail says became of a settlement. What is known
// already changes nothing. That nothing was sent of what was is a word of before, told
// late: it does not say that it came back, and nobody is paid out again for it.
func (b Settlement) Heard(d Disbursed, now time.Time) (Change, error) {
	switch {
	case d.Status == DisbursementDone && b.Status != SettlementSucceeded && (!b.Returned || sentAgain(b.RailTransactionID, d.RailTransactionID)):
		return b.paid(d, now)
	case d.Status == DisbursementDone && sentAgain(b.RailTransactionID, d.RailTransactionID):
		return b.besides(EntrySettlePaid, OnceMore(string(b.ID), d), b.Amount, d, now), nil
	case d.CameBack() && b.Final() && sentAgain(b.RailTransactionID, d.Reverses):
		return b.besides(EntrySettleReturned, d.RailTransactionID, -b.Amount, d, now), nil
	case d.CameBack() && b.Status == SettlementSucceeded:
		return b.bounced(d, now)
	case d.Status == DisbursementFailed && !b.Final():
		return b.fail(d, now)
	}
	return Change{}, nil
}

// sentAgain says whether what a bank calls name is another than what it called was when
// it had sent that: a bank that gives no names cannot be understood to say so.
func sentAgain(was, name string) bool { return was != "" && name != "" && name != was }

// HeardAll takes in what a bank says became of a settlement, one after the other, as
// Heard does.
func (b Settlement) HeardAll(all []Disbursed, now time.Time) (c Change, err error) {
	for _, d := range all {
		change, err := b.Heard(d, now)
		if err != nil {
			return Change{}, err
		}
		if change.Settlement != nil {
			b, c = *change.Settlement, c.Then(change)
		}
	}
	return c, nil
}

// paid takes in that the money was sent. One that was said to have failed, or came back,
// had been made available again: it is taken from there, because it is gone.
func (b Settlement) paid(d Disbursed, now time.Time) (Change, error) {
	from, subject := Settled, string(b.ID)
	if b.Status == SettlementFailed {
		from = MerchantAvailable
	}
	if b.Returned { // it stands there already, as what was sent first
		subject, b.Returned = OnceMore(subject, d), false
	}
	b, err := b.move(triggerPay)
	if err != nil {
		return Change{}, err
	}
	if b.DoneAt = d.At; b.DoneAt.UnixMilli() <= 0 { // the bank gave no value time
		b.DoneAt = now
	}
	b.RailTransactionID, b.Failure = d.RailTransactionID, ""
	sent := b.entry(EntrySettlePaid, subject, now, []Posting{{Account: from, Amount: b.Amount}, {Account: RailClearing, Amount: -b.Amount}})
	sent.RailID, sent.ValueAt = d.RailTransactionID, b.DoneAt
	return b.told(SettlementSuccessKind, sent), nil
}

// fail takes in that nothing was sent, for good.
func (b Settlement) fail(d Disbursed, now time.Time) (Change, error) {
	b, err := b.move(triggerFail)
	if err != nil {
		return Change{}, err
	}
	b.Failure = cmp.Or(d.Reason, "The bank refused to send it.")
	return b.told(SettlementFailedKind, b.entry(EntrySettleFailed, string(b.ID), now, []Posting{
		{Account: Settled, Amount: b.Amount}, {Account: MerchantAvailable, Amount: -b.Amount},
	})), nil
}

// bounced takes in that money which was sent came back.
func (b Settlement) bounced(d Disbursed, now time.Time) (Change, error) {
	b, err := b.move(triggerBounce)
	if err != nil {
		return Change{}, err
	}
	b.Returned, b.DoneAt = true, time.Time{}
	b.Failure = cmp.Or(d.Reason, "It came back after it had been sent.")
	back := b.entry(EntrySettleReturned, cmp.Or(d.RailTransactionID, string(b.ID)), now, []Posting{
		{Account: RailClearing, Amount: b.Amount}, {Account: MerchantAvailable, Amount: -b.Amount},
	})
	back.RailID, back.ValueAt = d.RailTransactionID, d.At
	return b.told(SettlementFailedKind, back), nil
}

// besides books that a bank sent a settlement once more than it was ordered to, or that
// this came back: out of what the merchant is paid next, which has it already, and into
// that again. The settlement stays as it is.
func (b Settlement) besides(kind EntryKind, subject string, out Kobo, d Disbursed, now time.Time) Change {
	e := b.entry(kind, subject, now, []Posting{{Account: MerchantAvailable, Amount: out}, {Account: RailClearing, Amount: -out}})
	e.RailID, e.ValueAt = d.RailTransactionID, d.At
	return Change{Settlement: &b, Entries: []Entry{e}}
}

// NextAsk is when the bank is to be asked about a settlement next, false when it
// was asked often enough: then it is asked once a day, and on each day of payouts.
// first and heard are as of a refund.
func (b Settlement) NextAsk(now time.Time, first, heard bool) (time.Time, bool) {
	return nextAsk(b.SentAt, now, first, heard)
}

// Order is what the rail is told of a settlement.
func (b Settlement) Order() Disbursement {
	return Disbursement{
		Kind: DisbursePayout, Reference: string(b.ID), Amount: b.Amount, Project: b.Project, To: b.To, Narration: "Settlement " + string(b.ID),
	}
}

// Final says whether nothing is to be done about a settlement any more.
func (b Settlement) Final() bool {
	return b.Status == SettlementSucceeded || b.Status == SettlementFailed
}

// entry is a transaction of the ledger about a settlement.
func (b Settlement) entry(kind EntryKind, subject string, now time.Time, lines []Posting) Entry {
	return Entry{Kind: kind, Subject: subject, Project: b.Project, At: now, Postings: lines}
}

// told is a settlement's new state, what it posts and what its merchant is told.
func (b Settlement) told(kind EventKind, entry Entry) Change {
	return Change{Settlement: &b, Entries: []Entry{entry}, Facts: []Fact{{Kind: kind, Settlement: &b}}}
}

// SettlementRecord is a settlement as its merchant reads it.
type SettlementRecord struct {
	ID                SettlementID      `json:"id"`
	Status            SettlementStatus  `json:"status"`
	AmountMinor       string            `json:"amountMinor"`
	Currency          string            `json:"currency"`
	SettlesOn         Date              `json:"settlesOn"`
	TransactionCount  int64             `json:"transactionCount"`
	CarriedMinor      string            `json:"carriedMinor"`
	BankAccount       BankAccountRecord `json:"bankAccount"`
	FailureReason     *string           `json:"failureReason"`
	RailTransactionID *string           `json:"railTransactionId"`
	CreatedAt         string            `json:"createdAt"`
	PaidAt            *string           `json:"paidAt"`
	Livemode          bool              `json:"livemode"`
}

// BankAccountRecord is a merchant's own account as the merchant reads it.
type BankAccountRecord struct {
	BankCode            string `json:"bankCode"`
	BankName            string `json:"bankName"`
	AccountNumberMasked string `json:"accountNumberMasked"`
	AccountName         string `json:"accountName"`
}

// RecordBankAccount makes the record of an account.
func RecordBankAccount(a BankAccount, bank string) BankAccountRecord {
	return BankAccountRecord{BankCode: a.BankCode, BankName: bank, AccountNumberMasked: a.Masked(), AccountName: a.Name}
}

// RecordSettlement makes the record of a settlement.
func RecordSettlement(b Settlement, around Surroundings) SettlementRecord {
	return SettlementRecord{
		ID: b.ID, Status: b.Status, AmountMinor: b.Amount.Minor(), Currency: Currency, SettlesOn: b.SettlesOn, TransactionCount: b.Lines,
		CarriedMinor: b.Carried.Minor(), BankAccount: RecordBankAccount(b.To, b.BankName), FailureReason: OrNull(b.Failure),
		RailTransactionID: OrNull(b.RailTransactionID), CreatedAt: Stamp(b.CreatedAt), PaidAt: StampOrNull(b.DoneAt), Livemode: around.Live,
	}
}

// SettlementLine is a line of the ledger that is in a settlement. Net is what the
// merchant gets for it and Fee what we do, in kobo; both are negative for what
// went back.
type SettlementLine struct {
	Kind    EntryKind
	Subject string
	Payment PaymentID
	Net     Kobo
	Fee     Kobo
	At      time.Time

	Session   SessionID // that the payment is of, "" for money of none
	Reference string    // the merchant's own, of that session
	Customer  string    // of that session: a name, or the e-mail address
}

// SettlementShare is what of a session's money is in a settlement.
type SettlementShare struct {
	Settlement

	Net Kobo // what its merchant gets for it there, in kobo; negative where more went back than came
}

// SettlementSum is what the lines of one kind come to in a settlement, in kobo.
type SettlementSum struct {
	Kind  EntryKind
	Lines int64
	Net   Kobo
	Fee   Kobo
}

// SettlementLineRecord is such a line as its merchant reads it.
type SettlementLineRecord struct {
	Type        string    `json:"type"`
	PaymentID   PaymentID `json:"paymentId"`
	RefundID    *string   `json:"refundId"`
	SessionID   *string   `json:"sessionId"`
	Reference   *string   `json:"reference"` // the merchant's own, of that session
	AmountMinor string    `json:"amountMinor"`
	FeeMinor    string    `json:"feeMinor"`
	NetMinor    string    `json:"netMinor"`
	At          string    `json:"at"`
}

// Told is what a line of a settlement is called: a refund that was sent after all is a
// refund like any other.
func (k EntryKind) Told() EntryKind {
	if k == EntryRefundPaid {
		return EntryRefund
	}
	return k
}

// RecordSettlementLine makes the record of a line.
func RecordSettlementLine(l SettlementLine) SettlementLineRecord {
	record := SettlementLineRecord{
		Type: string(l.Kind.Told()), PaymentID: l.Payment, AmountMinor: (l.Net + l.Fee).Minor(), FeeMinor: l.Fee.Minor(), NetMinor: l.Net.Minor(),
		SessionID: OrNull(l.Session), Reference: OrNull(l.Reference), At: Stamp(l.At),
	}
	if l.Kind.OfRefund() {
		record.RefundID = OrNull(string(RefundOf(l.Subject)))
	}
	return record
}

// SettlementAccount is where a project is paid out to. Standard says that it is
// the test environment's, for want of one of the project's own.
type SettlementAccount struct {
	BankAccount

	Standard  bool
	UpdatedAt time.Time
}

// Masked is an account's number with all but its last four digits hidden.
func (a BankAccount) Masked() string {
	shown := max(len(a.Number)-4, 0)
	return strings.Repeat("*", shown) + a.Number[shown:]
}
