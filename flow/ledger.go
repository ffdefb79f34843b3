package flow

import (
	"slices"
	"time"
)

// LedgerAccount is one of the accounts of the double-entry ledger.
type LedgerAccount string

// The accounts. What lies at the rail is positive; what we owe is negative. Each
// line belongs to a project, or to nobody where the money has no owner.
const (
	RailClearing      LedgerAccount = "rail_clearing"      // at the rail
	MerchantPending   LedgerAccount = "merchant_pending"   // the merchant's, until its settlement day
	MerchantAvailable LedgerAccount = "merchant_available" // the merchant's, due for payout
	Fees              LedgerAccount = "fees"               // ours
	Unapplied         LedgerAccount = "unapplied"          // what did not fit, and waits for a decision
	RefundsPayable    LedgerAccount = "refunds_payable"    // on its way back to payers
	Settled           LedgerAccount = "settled"            // on its way to merchants: cleared when the rail confirms
)

// LedgerAccounts is every account, in the order of the ledger's columns.
func LedgerAccounts() []LedgerAccount {
	return []LedgerAccount{RailClearing, MerchantPending, MerchantAvailable, Fees, Unapplied, RefundsPayable, Settled}
}

// EntryKind says what a ledger transaction is about.
type EntryKind string

// The kinds of ledger transaction. Of one subject each is posted once.
const (
	EntryPayment        EntryKind = "payment"         // subject: payment
	EntryReversal       EntryKind = "reversal"        // subject: the rail's name for it
	EntryAccept         EntryKind = "accept"          // subject: payment; set-aside money is taken for the merchant
	EntryRefund         EntryKind = "refund"          // subject: refund; money is set aside for it
	EntryRefundPaid     EntryKind = "refund_paid"     // subject: what the rail knows the refund by, and its own name where that had come back; it was sent
	EntryRefundFailed   EntryKind = "refund_failed"   // subject: what the rail knows the refund by; it goes back to where it was taken from
	EntryRefundReturned EntryKind = "refund_returned" // subject: the rail's name; a refund that was sent came back
	EntrySettle         EntryKind = "settle"          // subject: settlement; a batch is on its way
	EntrySettlePaid     EntryKind = "settle_paid"     // subject: settlement, and the rail's name where it had come back; the rail confirmed
	EntrySettleFailed   EntryKind = "settle_failed"   // subject: settlement; it is available again
	EntrySettleReturned EntryKind = "settle_returned" // subject: the rail's name; a payout that was sent came back
)

// EntryKinds are all kinds of ledger transactions.
func EntryKinds() []EntryKind {
	return []EntryKind{
		EntryPayment, EntryReversal, EntryAccept, EntryRefund, EntryRefundPaid, EntryRefundFailed, EntryRefundReturned,
		EntrySettle, EntrySettlePaid, EntrySettleFailed, EntrySettleReturned,
	}
}

// OfRefund says whether a transaction has a reference of a refund for its subject.
func (k EntryKind) OfRefund() bool {
	return k == EntryRefund || k == EntryRefundPaid || k == EntryRefundFailed
}

// Entry is one transaction of the ledger: what moved between accounts, and why.
// Its postings sum to zero.
type Entry struct {
	Kind     EntryKind
	Subject  string
	Payment  PaymentID // whose money it is about, "" of a settlement
	Project  ProjectID // "" for money of nobody
	At       time.Time
	Postings []Posting

	RailID  string    // the rail's name of the movement, "" where nothing moved at the rail
	ValueAt time.Time // of that movement, as the bank says; zero: At
}

// Posting is one line of a ledger transaction. Amount is signed: what comes in
// at the rail is positive there and negative where it is owed.
type Posting struct {
	Account LedgerAccount
	Amount  Kobo
}

// lines are postings without those that move nothing.
func lines(all ...Posting) []Posting {
	return slices.DeleteFunc(all, func(p Posting) bool { return p.Amount == 0 })
}

// post makes the lines for money that came in: applied of it counts towards the
// session, fee is ours, the rest stays unapplied. What was held from earlier is
// released by a transaction of its own, so that each payment's lines tell what
// became of that payment.
func post(came, applied, fee Kobo) []Posting {
	return lines(
		Posting{Account: RailClearing, Amount: came},
		Posting{Account: Unapplied, Amount: applied - came},
		Posting{Account: MerchantPending, Amount: fee - applied},
		Posting{Account: Fees, Amount: -fee},
	)
}

// takeBack makes the lines for money that the bank took back of a payment.
// booked is everything posted for that payment so far, and all says that nothing
// of it is left at the bank. What is set aside goes first, the rest is the
// merchant's: also what was sent back to the payer before. Our fee stays until all
// is gone.
func takeBack(booked []Posting, amount Kobo, all bool) []Posting {
	left := map[LedgerAccount]Kobo{}
	for _, line := range booked {
		left[line.Account] += line.Amount
	}
	aside, fee := min(max(-left[Unapplied], 0), amount), Kobo(0)
	if all {
		fee = -left[Fees]
	}
	return lines(
		Posting{Account: RailClearing, Amount: -amount},
		Posting{Account: Unapplied, Amount: aside},
		Posting{Account: MerchantPending, Amount: amount - aside - fee},
		Posting{Account: Fees, Amount: fee},
	)
}

// Balance is what the ledger holds for one project, in kobo. What is owed to it,
// or to its payers, is positive; a merchant who owes us has a negative Pending.
type Balance struct {
	Pending        Kobo // the merchant's, until its settlement day
	Available      Kobo // the merchant's, due for payout
	Unapplied      Kobo // set aside: held for the rest of it, or waiting for a decision
	RefundsPayable Kobo // on its way back to payers
	Settling       Kobo // on its way to the merchant
	Fees           Kobo // what we took for it, ever
}

// BalanceRecord is a balance as its merchant reads it.
type BalanceRecord struct {
	Currency            string  `json:"currency"`
	PendingMinor        string  `json:"pendingMinor"`
	AvailableMinor      string  `json:"availableMinor"`
	UnappliedMinor      string  `json:"unappliedMinor"`
	RefundsPayableMinor string  `json:"refundsPayableMinor"`
	SettlingMinor       string  `json:"settlingMinor"`
	FeesMinor           string  `json:"feesMinor"`
	BlockedReason       *string `json:"blockedReason"` // why nobody is paid out
	Livemode            bool    `json:"livemode"`
}

// RecordBalance makes the record of a balance; blocked says why the project is not
// paid out, "" where nothing is in the way.
func RecordBalance(b Balance, blocked string, around Surroundings) BalanceRecord {
	return BalanceRecord{
		Currency: Currency, PendingMinor: b.Pending.Minor(), AvailableMinor: b.Available.Minor(), UnappliedMinor: b.Unapplied.Minor(),
		RefundsPayableMinor: b.RefundsPayable.Minor(), SettlingMinor: b.Settling.Minor(), FeesMinor: b.Fees.Minor(), BlockedReason: OrNull(blocked), Livemode: around.Live,
	}
}
