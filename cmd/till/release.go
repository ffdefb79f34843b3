package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"text/tabwriter"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// ledgerHoldCmd holds what leaves.
type ledgerHoldCmd struct{ act }

func (ledgerHoldCmd) Help() string {
	return "Example:\n\n    till ledger hold --live --reason 'pg_restore of 08:00'\n\nA restore does it by itself; after one of PostgreSQL's own, do it before the server starts. " +
		"What the bank may have been told of is asked about all the same."
}

// Run holds it.
func (c *ledgerHoldCmd) Run(w *world) error {
	return c.withBoard(w, func(b *checkout.Board) error {
		return c.move(w, b, flow.SwitchMove{Kind: flow.SwitchMoney, Name: flow.MoneyOut, To: flow.MoneyHeld})
	})
}

// holdMoney keeps in what is restored that no money may leave: what left since the
// backup is not known to it.
func holdMoney(w *world, dir string, list manifest) error {
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		if _, err := os.Stat(under(dir, string(env)+".db")); errors.Is(err, fs.ErrNotExist) {
			continue // it was never made
		}
		db, err := store.Open(w.ctx, inDir(config.Settings{DataDir: dir}, store.Checkout, string(env)))
		if err != nil {
			return fmt.Errorf("hold what leaves %s: %w", env, err)
		}
		_, err = checkout.NewBoard(db, time.Now, time.Now, logger(w.err, config.Settings{})).Move(w.ctx, flow.SwitchMove{
			Kind: flow.SwitchMoney, Name: flow.MoneyOut, To: flow.MoneyHeld, Reason: "a backup of " + list.At + " was restored", By: whoIs(),
		})
		if err := errors.Join(err, db.Close()); err != nil {
			return fmt.Errorf("hold what leaves %s: %w", env, err)
		}
	}
	return nil
}

// ledgerReleaseCmd lets go what is held.
type ledgerReleaseCmd struct {
	books

	Reason string `help:"Why; it is kept with who did it and when."`
	Yes    bool   `help:"Although the bank sent money that the ledger does not know: you have seen to it."`
}

func (ledgerReleaseCmd) Help() string {
	return "Example:\n\n    till ledger release --reason 'reconciled 21 and 22 November'\n\nFirst: till reconcile --date for each day since the backup, and till ledger check. " +
		"It lists what the bank's statement has as sent and the ledger does not know, and then releases nothing: the same money would be sent a second time. " +
		"Where --yes is given it does: stop the merchants in question before (till merchants stop)."
}

// Run releases it.
func (c *ledgerReleaseCmd) Run(w *world) error {
	return c.open(w, func(db *store.DB, bank rail.Rail, now time.Time) error {
		var unknown []flow.Notice
		if bank != nil {
			err := patiently(w, "still comparing", func() error {
				lines, err := checkout.WholeStatement(w.ctx, bank.Statement, now)
				if err != nil {
					return bankFault(err)
				}
				unknown, err = checkout.Unknown(w.ctx, db.Reader, lines)
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := printUnknown(w, unknown); err != nil {
			return err
		}
		if len(unknown) > 0 && !c.Yes {
			return refusedError{fmt.Errorf("the bank sent %d times money that the ledger does not know; what it still owes for that would be sent again. Nothing was released (see: till ledger release --help)", len(unknown))}
		}
		b := checkout.NewBoard(db, time.Now, time.Now, logger(w.err, c.Settings))
		a := act{environment: c.environment, Reason: c.Reason}
		return a.move(w, b, flow.SwitchMove{Kind: flow.SwitchMoney, Name: flow.MoneyOut})
	})
}

// printUnknown lists on stderr what the bank sent and the ledger does not know.
func printUnknown(w *world, list []flow.Notice) error {
	if len(list) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w.err, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "SENT AT\tAMOUNT\tBANK'S NAME\tOURS, NOT KNOWN HERE")
	for _, n := range list {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", flow.Stamp(n.PaidAt), n.Amount.Naira(), plain(n.RailTransactionID), plain(n.Reference))
	}
	return out.Flush()
}
