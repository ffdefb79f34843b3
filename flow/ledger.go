package flow

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
