package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// ledgerCmd is what an operator asks of the ledger.
type ledgerCmd struct {
	Check   ledgerCheckCmd   `cmd:"" help:"Prove the ledger: it sums to zero, the bank's own statement agrees to the kobo, and all money has one outcome."`
	Balance ledgerBalanceCmd `cmd:"" help:"Show what lies in each account."`
	Hold    ledgerHoldCmd    `cmd:"" help:"Order no payout and no refund from the bank until they are released, as a restore does."`
	Release ledgerReleaseCmd `cmd:"" help:"Let payouts and refunds go again, after a look at what the bank sent that the ledger does not know."`
}

// ledgerCheckCmd proves the ledger.
type ledgerCheckCmd struct{ books }

func (ledgerCheckCmd) Help() string {
	return "Example:\n\n    till ledger check\n\nIt may be run beside a server that runs, or on a data dir of one that does not. Exits with 1 where an invariant is broken, and names the first 20 offenders of each."
}

// errBroken ends a check that found something.
var errBroken = errors.New("the ledger breaks an invariant")

// inFlight is how young a movement at the bank may be that we have not heard of.
const inFlight = time.Minute

// Run checks every invariant.
func (c *ledgerCheckCmd) Run(w *world) error {
	return c.open(w, func(db *store.DB, bank rail.Rail, now time.Time) error {
		check := checkout.LedgerCheck{Now: c.now(), RailNow: now, InFlight: inFlight}
		if bank != nil {
			check.Statement = func(ctx context.Context) ([]flow.Notice, error) {
				list, err := checkout.WholeStatement(ctx, bank.Statement, now)
				return list, bankFault(err)
			}
		}
		var report checkout.LedgerReport
		err := patiently(w, "still checking", func() (err error) {
			report, err = checkout.CheckLedger(w.ctx, db, check)
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(w, checkout.RecordLedger(report))
		} else {
			err = printCheck(w.out, report)
		}
		if err == nil && !report.Holds() {
			err = errBroken
		}
		return err
	})
}

// printCheck prints each invariant and what breaks it.
func printCheck(to io.Writer, report checkout.LedgerReport) error {
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, i := range report.Invariants {
		verdict := "holds"
		switch {
		case i.Skipped != "":
			verdict = "not checked: " + i.Skipped
		case i.Wrong > 0:
			verdict = fmt.Sprintf("BROKEN by %d", i.Wrong)
		}
		if i.InFlight > 0 {
			verdict += fmt.Sprintf(", %d in flight", i.InFlight)
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%d checked\t%s\n", i.Name, i.What, i.Checked, verdict)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, i := range report.Invariants {
		for _, o := range i.Offenders {
			if _, err := fmt.Fprintf(to, "\n%s  %s\n  %s\n  next: %s\n", i.Name, o.ID, o.Says, o.Next); err != nil {
				return err
			}
		}
		if more := i.Wrong - len(i.Offenders); more > 0 {
			if _, err := fmt.Fprintf(to, "\n%s  and %d more\n", i.Name, more); err != nil {
				return err
			}
		}
	}
	return nil
}

// ledgerBalanceCmd shows the accounts.
type ledgerBalanceCmd struct {
	books

	Project string `help:"Only what is this project's: wsp_prj_…"`
}

func (ledgerBalanceCmd) Help() string {
	return "Example:\n\n    till ledger balance --project wsp_prj_01jd…\n\nWhat lies at the bank is positive, what is owed is negative: together they are zero."
}

// Run prints one line for each account.
func (c *ledgerBalanceCmd) Run(w *world) error {
	if c.Project != "" {
		if err := known(w, c.Settings, c.Project); err != nil {
			return err
		}
	}
	return besideEnv(w, c.Settings, c.env(), flow.ProjectID(c.Project), "there is no ledger", func(db *store.DB) error {
		var balances map[flow.LedgerAccount]flow.Kobo
		err := db.View(w.ctx, func(r store.Reader) (err error) {
			balances, err = r.Balances(w.ctx, flow.ProjectID(c.Project))
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(w, checkout.RecordBalances(balances))
		}
		out := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, account := range flow.LedgerAccounts() {
			_, _ = fmt.Fprintf(out, "%s\t%s\t%s kobo\t\n", account, balances[account].Naira(), balances[account].Minor())
		}
		return out.Flush()
	})
}
