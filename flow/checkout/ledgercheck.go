package checkout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// OffendersShown is how many offenders of an invariant are named.
const OffendersShown = 20

// LedgerCheck is how a ledger is checked. Statement gives everything that the
// rail ever booked; nil leaves the comparison with the rail out. InFlight is how
// young a movement of the rail may be that we have not heard of. A movement is dated
// by the clock of its environment or, where the rail has another one, by that.
type LedgerCheck struct {
	Statement func(ctx context.Context) ([]flow.Notice, error)
	Now       time.Time
	RailNow   time.Time // the rail's own clock; zero: it has that of the environment
	InFlight  time.Duration
}

// young says whether a movement of the rail may not have been heard of yet.
func (c LedgerCheck) young(at time.Time) bool {
	return c.Now.Sub(at) < c.InFlight || !c.RailNow.IsZero() && c.RailNow.Sub(at).Abs() < c.InFlight
}

// Invariant is one rule of money and what became of checking it.
type Invariant struct {
	Name      string // I1 …, and the rule
	What      string
	Checked   int
	InFlight  int
	Wrong     int
	Skipped   string // why it was not checked
	Offenders []Offender
}

// Offender is what breaks an invariant, and what to do about it.
type Offender struct {
	ID   string
	Says string
	Next string
}

// LedgerReport is what a check found.
type LedgerReport struct {
	Balances   map[flow.LedgerAccount]flow.Kobo
	Rail       flow.Kobo // what the rail's statement comes to, without what is in flight
	Invariants []Invariant
}

// Holds says whether no invariant is broken.
func (r LedgerReport) Holds() bool {
	return !slices.ContainsFunc(r.Invariants, func(i Invariant) bool { return i.Wrong > 0 })
}

// rule is how a rule of the store is told: its invariant, what it says, how an
// offender reads and what to do.
type rule struct{ name, invariant, what, says, next string }

// rules are the rules of the store in the order in which they are told.
func rules() []rule {
	const look = "read it with: till replay <its session>, and keep a copy of the data before anything is changed"
	return []rule{
		{store.RuleRows, "I1", "every transaction sums to zero", "its lines sum to %d kobo, not to %d", "the schema forbids this: somebody wrote past the program. Keep a copy, and restore a backup"},
		{store.RuleProjects, "I1", "everything of a project sums to zero", "its lines sum to %d kobo, not to %d", "look for the transactions of this project among the others named here"},
		{store.RulePayments, "I3", "every payment is booked once, as it came", "%d kobo are booked and %d came (or the fee, the project or the rail's name differ)", look},
		{store.RuleStrays, "I3", "nothing is booked for money that is not there", "%d kobo are booked at the rail, and what they are about is not there", look},
		{store.RuleReversals, "I3", "every reversal is booked once", "%d kobo are booked and %d were taken back", look},
		{store.RuleAside, "I3", "what fits nowhere is set aside whole", "%d kobo are set aside of %d", look},
		{store.RuleReasons, "I3", "what is set aside waits for something", "%d kobo are set aside, and payments of %d kobo could be waiting", look},
		{store.RuleLeft, "I3", "of no payment more is set aside than is left of it", "%d kobo are set aside, and %d are left", look},
		{store.RuleSent, "I3", "of no payment more goes back than came", "%d kobo go back, and %d came", "read its refunds with: GET /v1/refunds?paymentId=<id>, and ask the bank which of them it sent"},
		{store.RuleResolutions, "I3", "what was accepted is booked, and nothing else", "accepted in the ledger: %d, by a decision: %d", look},
		{store.RulePaid, "I3", "what a session says was paid is what was applied", "the session says %d kobo, and applied to it were %d (or what is held for it differs)", look},
		{store.RuleWhole, "I3", "a session is paid whole, or says that it is paid in part", "%d kobo are paid of %d, and it says of no part", look},
		{store.RuleRefunds, "I3", "every refund is booked for its state", "%d kobo were set aside for %d (or its state has no entry)", "read it with: GET /v1/refunds/<id>, and ask the bank what became of it"},
		{store.RulePayable, "I3", "what is to be sent back belongs to an open refund", "%d kobo wait to be sent back, and open refunds are of %d", "read its refunds with: GET /v1/refunds?paymentId=<id>"},
		{store.RuleSettlements, "I3", "every settlement is booked for its state", "%d kobo are on their way for %d (or its state has no entry)", "read it with: GET /v1/settlements/<id>, and ask the bank what became of it"},
		{store.RuleSettled, "I3", "what is on its way to merchants belongs to an open settlement", "%d kobo are on their way, and open settlements are of %d", "read them with: GET /v1/settlements?status=PROCESSING"},
		{store.RulePending, "I3", "what waits for its settlement day is listed line by line", "%d kobo wait, and the lines that are listed come to %d", look},
		{store.RuleSuccess, "I4", "a paid session has exactly one charge.success, another has none", "it has %d and should have %d", look},
	}
}

// CheckLedger proves the ledger: that it sums to zero (I1), that it holds what
// the rail's own statement says (I2), that all money has one outcome (I3) and
// that all that was paid was told once (I4). It stops nobody. What a rule compares is of
// one moment of the store, and not all of the same: a moment that is read for long
// keeps SQLite's log from being used again. The statement is read after the ledger:
// what came in between is in flight, and what of that was still found in the ledger is
// not.
func CheckLedger(ctx context.Context, db *store.DB, c LedgerCheck) (LedgerReport, error) {
	var out LedgerReport
	var ledger []flow.Movement
	var err error
	out.Invariants, err = checkRules(rules(), nil, func(one rule) (faults []store.LedgerFault, wrong, of int, err error) {
		return db.LedgerFaults(ctx, one.name, OffendersShown)
	})
	if err == nil {
		out.Balances, err = db.Balances(ctx, "")
	}
	if err == nil {
		ledger, err = db.AllMovements(ctx)
	}
	if err != nil {
		return LedgerReport{}, wrap("check the ledger", err)
	}
	rail := []Invariant{
		{Name: "I2 rail", What: "what the rail's statement comes to is what the ledger says lies there"},
		{Name: "I3 rail", What: "every movement of the rail is booked once, and nothing else is"},
	}
	if err := c.compare(ctx, db, ledger, &out, rail); err != nil {
		return LedgerReport{}, wrap("check the ledger", err)
	}
	out.Invariants = append(out.Invariants, rail...)
	slices.SortStableFunc(out.Invariants, func(a, b Invariant) int { return int(a.Name[1]) - int(b.Name[1]) })
	return out, nil
}

// forever is after every value time.
var forever = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// compare holds the ledger against all that the rail ever booked: the sums in the
// first invariant, each movement in the second.
func (c LedgerCheck) compare(ctx context.Context, db *store.DB, ledger []flow.Movement, out *LedgerReport, found []Invariant) error {
	if c.Statement == nil {
		for i := range found {
			found[i].Skipped = "no bank is connected whose statement could be read"
		}
		return nil
	}
	lines, err := c.Statement(ctx)
	if err != nil {
		return err
	}
	var atRail []flow.Movement
	for _, n := range lines {
		if m, ok := flow.MovementSaid(n); ok {
			atRail = append(atRail, m)
			out.Rail += m.Amount
		}
	}
	since, err := unheardOf(ctx, db.Reader, lines)
	if err != nil {
		return err
	}
	unheard := map[string]bool{}
	for _, n := range since {
		unheard[n.RailTransactionID] = true
	}
	sums, each := &found[0], &found[1]
	sums.Checked, each.Checked = len(flow.LedgerAccounts()), len(atRail)
	for _, d := range flow.Reconcile(atRail, allSilent(ledger), nil) {
		// Heard of while we looked, or too young to have been heard of.
		if d.Kind == flow.MissingInLedger && (!unheard[d.RailTransactionID] || c.young(d.ValueAt)) {
			each.InFlight++
			out.Rail -= *d.Rail
			continue
		}
		if each.Wrong++; len(each.Offenders) < OffendersShown {
			each.Offenders = append(each.Offenders, offends(d))
		}
	}
	sums.InFlight = each.InFlight
	var booked flow.Kobo
	for _, m := range ledger {
		booked += m.Amount
	}
	if booked != out.Rail {
		sums.Wrong++
		sums.Offenders = []Offender{{
			ID: string(flow.RailClearing), Says: fmt.Sprintf("the ledger says %s (%s kobo) and the rail %s (%s kobo)", booked.Naira(), booked.Minor(), out.Rail.Naira(), out.Rail.Minor()),
			Next: "the movements that differ are named below",
		}}
	}
	return nil
}

// allSilent is a ledger of which nobody asks whether it was told.
func allSilent(ledger []flow.Movement) []flow.Movement {
	out := slices.Clone(ledger)
	for i := range out {
		out[i].Silent = true
	}
	return out
}

// offends tells of a difference with the rail.
func offends(d flow.Difference) Offender {
	next := map[flow.DifferenceKind]string{
		flow.MissingInLedger: "it is found when the bank is asked next, or on the statement of its day at the latest: look again then, with: till reconcile --date " + string(flow.DateOf(d.ValueAt)),
		flow.MissingAtRail:   "ask the bank: nothing may be booked that it does not know",
	}[d.Kind]
	switch {
	case d.Kind == flow.MissingInLedger && (d.Movement == flow.MoveRefund || d.Movement == flow.MovePayout):
		next = "unless a restore took away what ordered it, " + next
	case next == "":
		next = "ask the bank for its record of this movement, and compare it with: till reconcile --date " + string(flow.DateOf(d.ValueAt))
	}
	says := []string{string(d.Kind) + ":"}
	for _, who := range []struct {
		name   string
		amount *flow.Kobo
	}{{"the rail says", d.Rail}, {"the ledger says", d.Ledger}} {
		if who.amount != nil {
			says = append(says, fmt.Sprintf("%s %s kobo,", who.name, who.amount.Minor()))
		}
	}
	return Offender{ID: d.RailTransactionID, Says: fmt.Sprintf("%s %s of %s", strings.Join(says, " "), d.Movement, flow.Stamp(d.ValueAt)), Next: next}
}

// WholeStatement reads everything that a rail ever booked, in pieces where that
// is too much for one answer.
func WholeStatement(ctx context.Context, read func(ctx context.Context, from, to time.Time) ([]flow.Notice, error), now time.Time) ([]flow.Notice, error) {
	list, err := read(ctx, time.Unix(0, 0), forever)
	if err == nil || ctx.Err() != nil {
		return list, err
	}
	list = nil
	from := time.Unix(0, 0)
	for to := flow.DateOf(now.AddDate(-wholeYears, 0, 0)).Start(); from.Before(forever); from, to = to, to.AddDate(0, 0, 1) {
		if to.After(now.AddDate(0, 0, 1)) {
			to = forever
		}
		some, err := read(ctx, from, to)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// wholeYears is how far back a statement that is too long is read day by day; what
// is older is read at once.
const wholeYears = 2
