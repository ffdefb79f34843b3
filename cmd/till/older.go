package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"till/cmd/till/sealing"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail/sandbox"
)

// This file notices that a database was put back to what it was before: it does not
// know the money that was last ordered from the bank, which the data dir remembers,
// and would order it a second time. A restore of Till's own holds money anyway; this
// is for PostgreSQL's, and for files that somebody copied. A data dir that is new, or
// that goes back as well, notices nothing.

// lastOrders remembers in the data dir which money was last ordered from an
// environment's bank.
type lastOrders struct {
	file   string
	of     string // whose: a data dir may be used with another database
	shared bool   // other processes order too
	log    *slog.Logger
	mu     sync.Mutex
}

// maxOrders is how many orders are remembered. One is not enough: an order that the
// bank did not take is tried again behind newer ones.
const maxOrders = 100

// lastOrdersOf are those of an environment.
func (a *app) lastOrdersOf(ctx context.Context, env flow.Environment) (*lastOrders, error) {
	pepper, err := a.kept(ctx, sealing.ClientPepper(string(env)))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte("the database of " + pepper))
	return &lastOrders{file: under(a.set.DataDir, "ordered-"+string(env)), of: hex.EncodeToString(sum[:8]), shared: a.shares(), log: a.log}, nil
}

// read are the references of the last orders of this database, in the order in which
// each was given first.
func (o *lastOrders) read() (references []string, err error) {
	text, err := os.ReadFile(o.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if of, reference, _ := strings.Cut(strings.TrimSpace(line), " "); of == o.of && reference != "" {
			references = append(references, reference)
		}
	}
	return references, err
}

// keep remembers an order, before the bank is told: when it returns, the disk has it.
// Nobody ever reads half of it. Without it the order goes all the same.
func (o *lastOrders) keep(ctx context.Context, reference string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.turn(ctx)()
	known, err := o.read()
	if err == nil && slices.Contains(known, reference) {
		return
	}
	if err == nil {
		known = append(known, reference)
		var text strings.Builder
		for _, one := range known[max(0, len(known)-maxOrders):] {
			text.WriteString(o.of + " " + one + "\n")
		}
		err = replaceFile(o.file, text.String())
	}
	if err != nil {
		o.log.LogAttrs(ctx, slog.LevelWarn, "what was ordered from the bank is not remembered in the data dir: that the database was put back would not be noticed",
			slog.String("error", err.Error()))
	}
}

// How long the turn of another process is waited for.
const (
	turnTries = 1000
	turnWait  = 5 * time.Millisecond
)

// turn waits until no other process writes the file: of two that read it, each would put
// what it knows in place of what the other one just remembered. Where it cannot be waited
// for, the order goes all the same. The system lets nobody know when a lock is free without
// a thread that waits for it, so that it is asked now and then; who dies lets go of it.
func (o *lastOrders) turn(ctx context.Context) (over func()) {
	for tries := turnTries; o.shared && tries > 0; tries-- {
		unlock, err := lockFile(o.file + ".lock")
		if err == nil {
			return func() { _ = unlock() }
		}
		if _, never := errors.AsType[*fs.PathError](err); never {
			break
		}
		select {
		case <-time.After(turnWait):
		case <-ctx.Done():
			return func() {}
		}
	}
	return func() {}
}

// replaceFile puts a text in place of a file. When it returns, the disk has it.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ourTemporary+"*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(path)) // a new name is kept by its directory
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// remembering is a bank's rail, each of whose orders is remembered.
type remembering struct {
	*sandbox.Rail

	last *lastOrders
}

// Disburse implements rail.Rail.
func (r remembering) Disburse(ctx context.Context, d flow.Disbursement) (flow.Disbursed, error) {
	r.last.keep(ctx, d.Reference)
	return r.Rail.Disburse(ctx, d)
}

// holdIfOlder holds what leaves an environment whose database does not know all of the
// last orders. It is done once in a database: whoever released it there has looked.
func (a *app) holdIfOlder(ctx context.Context, env flow.Environment, db *store.DB, board *checkout.Board) error {
	last, err := a.lastOrdersOf(ctx, env)
	if err != nil {
		return err
	}
	references, err := last.read()
	if err != nil {
		return fmt.Errorf("look what was last ordered from the bank: %w", err)
	}
	unknown := ""
	for _, reference := range slices.Backward(references) {
		begun, err := checkout.Begun(ctx, db.Reader, reference)
		if err != nil {
			return err
		}
		if !begun {
			unknown = reference
			break
		}
	}
	if unknown == "" {
		return nil
	}
	held := flow.SwitchMove{
		Kind: flow.SwitchMoney, Name: flow.MoneyOut, To: flow.MoneyHeld, By: "till",
		Reason: "the database does not know " + unknown + ", which was ordered from the bank: it was restored from before",
	}
	moves, err := board.Moves(ctx, movesSeen)
	if err != nil || slices.ContainsFunc(moves, func(m flow.SwitchMove) bool { return m.By == held.By && m.Reason == held.Reason }) {
		return err
	}
	if _, err = board.Move(ctx, held); err != nil {
		return fmt.Errorf("hold what leaves %s: %w", env, err)
	}
	a.log.LogAttrs(ctx, slog.LevelError, "the database was restored from before what was last ordered from the bank. Payouts and refunds are held: till reconcile, till ledger check, then till ledger release",
		slog.String("environment", string(env)), slog.String("unknown", unknown))
	return nil
}

// movesSeen is how many acts of operators back it is looked whether money was held.
const movesSeen = 1000
