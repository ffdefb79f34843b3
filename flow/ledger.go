package flow

import "slices"

// LedgerAccount is one of the accounts of the double-entry ledger.
type LedgerAccount string

// The accounts. RailClearing belongs to the rail, the others to a project or
// to nobody (money without an owner).
const (
	RailClearing    LedgerAccount = "rail_clearing"
	MerchantPending LedgerAccount = "merchant_pending"
	Fees            LedgerAccount = "fees"
	Unapplied       LedgerAccount = "unapplied"
)

// Posting is one line of a ledger transaction. Amount is signed: what comes in
// at the rail is positive there and negative where it is owed.
type Posting struct {
	Account LedgerAccount
	Amount  Kobo
}

// sum is what a ledger transaction adds up to: zero, or it is a bug.
func sum(postings []Posting) Kobo {
	var total Kobo
	for _, p := range postings {
		total += p.Amount
	}
	return total
}

// post makes the lines for money that came in: applied of it counts towards
// the session, release was held from earlier and counts now too, fee is ours,
// the rest stays unapplied.
func post(came, applied, release, fee Kobo) []Posting {
	var lines []Posting
	add := func(account LedgerAccount, amount Kobo) {
		if amount != 0 {
			lines = append(lines, Posting{Account: account, Amount: amount})
		}
	}
	add(RailClearing, came)
	add(Unapplied, release-(came-applied))
	add(MerchantPending, -(applied + release - fee))
	add(Fees, -fee)
	return lines
}

// takeBack makes the lines for money that the bank took back of a payment.
// booked is everything posted for that payment so far. Taking back all that is
// left of it undoes every account, our fee too. Of a part, what was set aside
// goes first and the rest is the merchant's; the fee stays until all is gone.
//
// A part that a later payment completed was released by that one's lines, not by
// its own: taken back alone it leaves the unapplied account short, which is what
// it is, and both together leave nothing.
func takeBack(booked []Posting, amount Kobo) []Posting {
	var accounts []LedgerAccount
	left := map[LedgerAccount]Kobo{}
	for _, line := range booked {
		if !slices.Contains(accounts, line.Account) {
			accounts = append(accounts, line.Account)
		}
		left[line.Account] += line.Amount
	}
	var lines []Posting
	if amount == left[RailClearing] {
		for _, account := range accounts {
			if left[account] != 0 {
				lines = append(lines, Posting{Account: account, Amount: -left[account]})
			}
		}
		return lines
	}
	aside := min(max(-left[Unapplied], 0), amount)
	lines = append(lines, Posting{Account: RailClearing, Amount: -amount})
	if aside > 0 {
		lines = append(lines, Posting{Account: Unapplied, Amount: aside})
	}
	if amount > aside {
		lines = append(lines, Posting{Account: MerchantPending, Amount: amount - aside})
	}
	return lines
}
