package checkout

import (
	"slices"
	"time"

	"till/flow"
	"till/flow/store"
)

// This file is what is found out about a message beside what it means: when it was
// written, which of our own messages it is about or could have been read by then.

// wrote is when a message was written, by our clock: in the test environment that may
// have been moved, and the network's was not.
func (w *saving) wrote(in Inbound) int64 {
	if in.Wrote.IsZero() {
		return 0
	}
	return flow.Millis(in.Wrote.Add(w.now.Sub(w.s.cfg.Real()).Truncate(time.Second)))
}

// echo says whether what was written at our number is what we said ourselves: where
// one phone is linked twice, each line is shown what the other one sends.
func (w *saving) echo(row store.ChatRow, in Inbound) (bool, error) {
	if in.Intent.Kind != flow.MeansTakeover {
		return false, nil
	}
	said, found, err := w.tx.Said(w.ctx, in.Message)
	return found && said.Chat == row.ID, err
}

// unread says of a word that confirms whether our question whether to cancel is not
// sent yet.
func (w *saving) unread(row store.ChatRow, in Inbound) (bool, error) {
	if in.Intent.Kind != flow.MeansConfirm {
		return false, nil
	}
	owed, err := w.tx.Owed(w.ctx, row.ID, sayAtOnce)
	return slices.ContainsFunc(owed, func(s store.Said) bool { return s.Key == "cancel_confirm" }), err
}

// quoted is the session that a quoted message of ours was about, "" for none.
func (w *saving) quoted(row store.ChatRow, message string) (flow.SessionID, error) {
	if message == "" {
		return "", nil
	}
	said, found, err := w.tx.Said(w.ctx, message)
	if err != nil || !found || said.Chat != row.ID {
		return "", err
	}
	line, err := w.tx.Line(w.ctx, string(row.ID), said.Seq)
	return line.Session, err
}
