package checkout

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// This file takes the words of chats that are over, and what endpoints answered, once
// the time is over for which they are kept. What was understood and decided stays, and
// so do money, events, that endpoints were told and who the payer is: those a Forgetter
// takes.

// The bounds of retention.
const (
	// retentionEvery is how often all chats are walked.
	retentionEvery = 24 * time.Hour
	// retentionAgain is when a walk goes on that met a fault.
	retentionAgain = 10 * time.Minute
	// wornChats and wornLines bound one transaction, so that nobody else waits for
	// long.
	wornChats   = 50
	wornLines   = 200
	wornAnswers = 500
	// retentionAt is the setting that keeps which chat a walk was at: it goes on
	// there, whichever process takes it up.
	retentionAt = "retention_at"
	// allChats is the subject of the task of retention.
	allChats = "all"
)

// keepRetention keeps that what is old is looked for each day. A walk that is kept
// already stays: it may be overdue, and no start walks anew.
func (s *Service) keepRetention(ctx context.Context) error {
	if s.cfg.KeepChats <= 0 && s.cfg.KeepAnswers <= 0 {
		return nil
	}
	return wrap("keep the next walk over chats", s.update(ctx, func(w *saving) error {
		return w.tx.KeepTask(w.ctx, flow.Task{Kind: flow.TaskRetention, Subject: allChats, Due: w.now.Add(retentionEvery)})
	}))
}

// retention takes the words of some chats and some answers, and goes on at once while
// there are more. Its task never ends and is never given up: it is put off to the next
// walk.
func (s *Service) retention(ctx context.Context) error {
	var lines, answers int
	var more bool
	err := s.update(ctx, func(w *saving) (err error) {
		if keep := s.cfg.KeepChats; keep > 0 {
			if lines, more, err = w.wearSome(w.old(keep)); err != nil {
				return err
			}
		}
		if keep := s.cfg.KeepAnswers; keep > 0 {
			answers, err = w.tx.WearAnswers(w.ctx, w.old(keep), wornAnswers)
			more = more || answers == wornAnswers
		}
		return err
	})
	level, wait := slog.LevelDebug, retentionEvery
	switch {
	case err != nil:
		level, wait = slog.LevelError, retentionAgain
	case more:
		wait = 0
	}
	if err != nil || lines+answers > 0 {
		s.cfg.Log.LogAttrs(ctx, level, "the words of old chats and old answers are taken", slog.Int("lines", lines), slog.Int("answers", answers), slog.Bool("more", more), slog.Any("error", err))
	}
	return &NotYetError{Wait: wait}
}

// old is the time before which words are old that are kept for so long. Lines bear the
// environment's time: where that was moved ahead they are kept for longer.
func (w *saving) old(keep time.Duration) time.Time {
	now := w.now
	if machine := w.s.cfg.Real(); machine.Before(now) {
		now = machine
	}
	return now.Add(-keep)
}

// wearSome takes the words of chats in which nothing happened since a time, from
// where the walk is, within the bounds of one transaction. more says that the walk
// is not at its end.
func (w *saving) wearSome(before time.Time) (lines int, more bool, err error) {
	at, err := w.tx.Setting(w.ctx, retentionAt)
	if err != nil {
		return 0, false, err
	}
	rows, err := w.tx.ChatsAfter(w.ctx, flow.ChatID(at), wornChats)
	if err != nil {
		return 0, false, err
	}
	more = len(rows) == wornChats
	reached := ""
	for _, row := range rows {
		n, whole, err := w.wear(row, before, wornLines-lines)
		if err != nil {
			return lines, false, err
		}
		if lines += n; !whole {
			more = true
			break
		}
		at = string(row.ID)
	}
	if more {
		reached = at
	}
	return lines, more, w.tx.PutSetting(w.ctx, retentionAt, reached)
}

// wear takes the words of one chat, of at most room lines of it; whole says that
// none are left to be taken.
func (w *saving) wear(row store.ChatRow, before time.Time, room int) (lines int, whole bool, err error) {
	end, written, err := w.tx.LastLine(w.ctx, string(row.ID))
	if err != nil || end == 0 || !written.Before(before) {
		return 0, true, err
	}
	after, err := w.tx.Worn(w.ctx, row.ID)
	if err != nil || after >= end {
		return 0, true, err
	}
	if goesOn, err := w.goesOn(row); err != nil || goesOn {
		return 0, true, err
	}
	if room <= 0 {
		return 0, false, nil
	}
	list, err := w.tx.LinesBehind(w.ctx, string(row.ID), after, room)
	if err != nil {
		return 0, false, err
	}
	for _, l := range list {
		data, err := replay.Wear(l.Kind, l.Data)
		if err != nil {
			return 0, false, fmt.Errorf("take the words of line %d of %s: %w", l.Seq, l.Stream, err)
		}
		if string(data) == string(l.Data) {
			continue
		}
		l.Data = data
		if err := w.tx.RewriteLine(w.ctx, l); err != nil {
			return 0, false, err
		}
	}
	last := list[len(list)-1].Seq
	return len(list), last == end, w.tx.Wear(w.ctx, row.ID, after, last)
}

// goesOn says whether a chat is not over, however long nothing was said: a person
// has it or should look at it, a message is still to be sent, or a session that was
// spoken of, its money included, is not over.
func (w *saving) goesOn(row store.ChatRow) (bool, error) {
	if row.Desk.State != flow.DeskBot || row.Flag != "" {
		return true, nil
	}
	owed, err := w.tx.Owed(w.ctx, row.ID, 1)
	if err != nil || len(owed) > 0 {
		return true, err
	}
	sessions, err := w.tx.Watched(w.ctx, row.ID)
	if err != nil {
		return true, err
	}
	for _, s := range sessions {
		if open, err := w.tx.UnsettledOf(w.ctx, s.ID, w.now); err != nil || len(open) > 0 {
			return true, err
		}
	}
	return false, nil
}
