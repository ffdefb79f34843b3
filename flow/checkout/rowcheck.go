package checkout

import (
	"context"
	"fmt"
	"strings"

	"till/flow"
	"till/flow/store"
)

// rowRules are the rules of rows of a schema in the order in which they are told.
func rowRules(s store.Schema) []rule {
	const look = "keep a copy of the data before anything is changed; a backup of before this may be whole: till verify FILE"
	if s == store.Accounts {
		return []rule{
			{store.RuleRelated, "rows", "every row that belongs to another has it", "what it belongs to is not there", look},
			{store.RuleKYC, "rows", "every project stands where its last KYC step led", "its KYC is not what its last step led to", look},
			{store.RulePeople, "rows", "everybody of an account has one", "their account is not there", look},
		}
	}
	return []rule{
		{store.RuleRelated, "rows", "every row that belongs to another has it", "what it belongs to is not there", look},
		{store.RulePaymentOf, "rows", "every payment has its session and its attempt", "its session or its attempt is not there", look},
		{store.RuleAttemptOpen, "rows", "an attempt is open only while its session is", "it is ACTIVE, and its session is over", "read it with: till replay <its session>"},
		{store.RuleAttemptEnds, "rows", "every open attempt is owed its end", "nothing would ever end it", look},
		{store.RuleAttemptAsks, "rows", "an attempt asks for no more than its session, an open transfer for what is left of it", "it asks for %d kobo, and %d are left to be paid", "read it with: till replay <its session>"},
		{store.RuleSessionEnds, "rows", "every session that is over is closed, or owed that", "nothing would ever close it", look},
		{store.RuleEventOf, "rows", "every event has its session, which counted it", "it is number %d, and its session counted to %d (0: there is none)", look},
		{store.RuleEventKept, "rows", "every event that the logs tell of is there", "the logs tell of %d events of it, and %d are there", look},
		{store.RuleEventSays, "rows", "what an event says is of that event, its session and what it tells of", "its body is of another event, session, time or amount than its row, or of no such payment, refund or settlement", look},
		{store.RuleDeliveryOf, "rows", "every delivery has its event and its endpoint", "its event or its endpoint is not there", look},
		{store.RuleRefundOwed, "rows", "every refund under way is owed to the bank", "nothing would ever send it or ask about it", "read it with: GET /v1/refunds/<id>, and ask the bank what became of it"},
		{store.RulePayoutOwed, "rows", "every settlement under way is owed to the bank", "nothing would ever send it or ask about it", "read it with: GET /v1/settlements/<id>, and ask the bank what became of it"},
		{store.RuleReturnOwed, "rows", "money that goes back by itself is owed that", "nothing would ever send it back", "decide about it with: POST /v1/payments/<id>/resolve"},
		{store.RuleListedOf, "rows", "every line of a settlement has it", "its settlement is not there", look},
		{store.RuleListedIs, "rows", "every line of a settlement is as the ledger has it", "it is of %d kobo, and the ledger has %d (or another project)", look},
		{store.RuleSettledSum, "rows", "every settlement is what its lines and what was left come to", "it is of %d kobo, and they come to %d (or are not as many as it says)", look},
		{store.RuleRefundOf, "rows", "every refund is of its payment's project and session", "its payment is not there, or another project's or session's", look},
		{store.RuleTakenOf, "rows", "what was taken back had come, to the same project and session", "what it reverses is not there, or another project's or session's", look},
		{store.RuleLog, "rows", "every log is whole, and of a chat or session", "it has %d lines and ends with number %d (or its chat is not there)", look},
	}
}

// RowsOf checks what the rows of a database of a schema say of each other, beside
// money. tell hears of each rule as it was checked; nil for nobody.
func RowsOf(ctx context.Context, r store.Reader, s store.Schema, tell func(Invariant)) ([]Invariant, error) {
	return checkRules(rowRules(s), tell, func(one rule) ([]store.LedgerFault, int, int, error) {
		return r.RowFaults(ctx, s, one.name, OffendersShown)
	})
}

// BooksOf checks the rules of the ledger that its own database can prove. tell
// hears of each rule as it was checked; nil for nobody.
func BooksOf(ctx context.Context, r store.Reader, tell func(Invariant)) ([]Invariant, error) {
	return checkRules(rules(), tell, func(one rule) ([]store.LedgerFault, int, int, error) {
		return r.LedgerFaults(ctx, one.name, OffendersShown)
	})
}

func checkRules(list []rule, tell func(Invariant), check func(rule) ([]store.LedgerFault, int, int, error)) (out []Invariant, err error) {
	for _, one := range list {
		faults, wrong, of, err := check(one)
		if err != nil {
			return nil, wrap("check "+one.name, err)
		}
		found := Invariant{Name: one.invariant + " " + one.name, What: one.what, Checked: of, Wrong: wrong}
		for _, f := range faults {
			found.Offenders = append(found.Offenders, Offender{ID: f.ID, Says: one.said(f), Next: one.next})
		}
		if out = append(out, found); tell != nil {
			tell(found)
		}
	}
	return out, nil
}

// said is how an offender reads: with as many of its numbers as the rule tells, and
// when it came, so that it is found in a log.
func (r rule) said(f store.LedgerFault) string {
	numbers := []any{f.Says, f.Expects}
	text := fmt.Sprintf(r.says, numbers[:strings.Count(r.says, "%d")]...)
	if f.At.IsZero() {
		return text
	}
	return text + "; it is of " + flow.Stamp(f.At)
}
