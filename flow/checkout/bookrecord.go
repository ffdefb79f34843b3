package checkout

import "till/flow"

// This file is how a reconciliation and a check of the ledger are read by others.

// ReconciliationRecord is a reconciled day as its reader gets it.
type ReconciliationRecord struct {
	Date        flow.Date          `json:"date"`
	StatementAt string             `json:"statementAt"`
	Complete    bool               `json:"complete"`
	Balanced    bool               `json:"balanced"`
	Totals      []TotalRecord      `json:"totals"`
	Differences []DifferenceRecord `json:"differences"`
}

// TotalRecord is what the three say of one kind of movement.
type TotalRecord struct {
	Movement flow.MovementKind `json:"movement"`
	Rail     SumRecord         `json:"rail"`
	Ledger   SumRecord         `json:"ledger"`
	Events   SumRecord         `json:"events"`
}

// SumRecord is how many movements there were and what they come to: negative
// where money went out.
type SumRecord struct {
	Count       int    `json:"count"`
	AmountMinor string `json:"amountMinor"`
}

// DifferenceRecord is a movement that the three do not agree about. An amount is
// null where one of them does not know it.
type DifferenceRecord struct {
	Kind              flow.DifferenceKind `json:"kind"`
	Movement          flow.MovementKind   `json:"movement"`
	RailTransactionID string              `json:"railTransactionId"`
	PaymentID         *string             `json:"paymentId"`
	SessionID         *string             `json:"sessionId"`
	Reference         *string             `json:"reference"`
	RailAmountMinor   *string             `json:"railAmountMinor"`
	LedgerAmountMinor *string             `json:"ledgerAmountMinor"`
	EventAmountMinor  *string             `json:"eventAmountMinor"`
	ValueTime         *string             `json:"valueTime"`
}

// RecordReconciliation makes the record of a day with some of its differences.
func RecordReconciliation(r Reconciliation, shown []flow.Difference) ReconciliationRecord {
	out := ReconciliationRecord{
		Date: r.Date, StatementAt: flow.Stamp(r.Read), Complete: r.Complete, Balanced: r.Balanced(), Totals: []TotalRecord{}, Differences: []DifferenceRecord{},
	}
	for _, kind := range flow.MovementKinds() {
		out.Totals = append(out.Totals, TotalRecord{Movement: kind, Rail: recordSum(r.Rail[kind]), Ledger: recordSum(r.Ledger[kind]), Events: recordSum(r.Events[kind])})
	}
	for _, d := range shown {
		out.Differences = append(out.Differences, DifferenceRecord{
			Kind: d.Kind, Movement: d.Movement, RailTransactionID: d.RailTransactionID, PaymentID: flow.OrNull(d.Payment), SessionID: flow.OrNull(d.Session),
			Reference: flow.OrNull(d.Subject), RailAmountMinor: minorOrNull(d.Rail), LedgerAmountMinor: minorOrNull(d.Ledger), EventAmountMinor: minorOrNull(d.Event),
			ValueTime: flow.StampOrNull(d.ValueAt),
		})
	}
	return out
}

func recordSum(t flow.Total) SumRecord {
	return SumRecord{Count: t.Count, AmountMinor: t.Amount.Minor()}
}

func minorOrNull(k *flow.Kobo) *string {
	if k == nil {
		return nil
	}
	return flow.OrNull(k.Minor())
}

// LedgerRecord is a check of the ledger as programs read it.
type LedgerRecord struct {
	Holds      bool              `json:"holds"`
	RailMinor  string            `json:"railMinor"`
	Accounts   map[string]string `json:"accountsMinor"`
	Invariants []InvariantRecord `json:"invariants"`
}

// InvariantRecord is one invariant of a check.
type InvariantRecord struct {
	Name      string           `json:"name"`
	What      string           `json:"what"`
	Checked   int              `json:"checked"`
	InFlight  int              `json:"inFlight"`
	Wrong     int              `json:"wrong"`
	Skipped   string           `json:"skipped,omitempty"`
	Offenders []OffenderRecord `json:"offenders"`
}

// OffenderRecord is what breaks an invariant.
type OffenderRecord struct {
	ID   string `json:"id"`
	Says string `json:"says"`
	Next string `json:"next"`
}

// RecordLedger makes the record of a check.
func RecordLedger(r LedgerReport) LedgerRecord {
	out := LedgerRecord{Holds: r.Holds(), RailMinor: r.Rail.Minor(), Accounts: RecordBalances(r.Balances), Invariants: []InvariantRecord{}}
	for _, i := range r.Invariants {
		record := InvariantRecord{Name: i.Name, What: i.What, Checked: i.Checked, InFlight: i.InFlight, Wrong: i.Wrong, Skipped: i.Skipped, Offenders: []OffenderRecord{}}
		for _, o := range i.Offenders {
			record.Offenders = append(record.Offenders, OffenderRecord(o))
		}
		out.Invariants = append(out.Invariants, record)
	}
	return out
}

// RecordBalances is what lies in each account, in kobo.
func RecordBalances(balances map[flow.LedgerAccount]flow.Kobo) map[string]string {
	out := map[string]string{}
	for _, account := range flow.LedgerAccounts() {
		out[string(account)] = balances[account].Minor()
	}
	return out
}
