package checkout

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/store"
)

// sayWithin is how long a message that cannot be sent is tried: what is older
// would only confuse whoever reads it, and holds back what came after it.
const sayWithin = 24 * time.Hour

// Tick takes in what became of a message of ours. Ticks of messages that are
// not ours are no error: the number may be used by a person too.
func (s *Service) Tick(ctx context.Context, t Tick) error {
	said, found, err := s.cfg.DB.Said(ctx, t.Message)
	if err != nil || !found {
		return err
	}
	err = s.update(ctx, func(w *saving) error {
		moved, err := w.tx.MarkSaid(ctx, said.ID, t.State)
		if err != nil || !moved {
			return err
		}
		return w.said(said, t.State)
	})
	return wrap("take a tick in", err)
}

// said logs what became of a message of ours.
func (w *saving) said(said store.Said, state string) error {
	line, err := w.tx.Line(w.ctx, string(said.Chat), said.Seq)
	if err != nil {
		return err
	}
	_, err = w.tx.Append(w.ctx, store.Line{
		Stream: string(said.Chat), At: w.now, Kind: state, Cause: said.Seq, Session: line.Session, Message: said.ID,
	})
	return err
}

// say sends what a chat is owed, in order. Nothing is sent past a message that
// could not be, until that one is given up.
func (s *Service) say(ctx context.Context, id flow.ChatID) error {
	row, err := s.cfg.DB.Chat(ctx, id)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		said, owed, err := s.cfg.DB.NextSaid(ctx, id)
		if err != nil || !owed {
			return err
		}
		state := "sent"
		if err := s.cfg.Send(ctx, Outgoing{Number: row.Number, Person: row.Person, ID: said.ID, Text: said.Text}); err != nil {
			line, lost := s.cfg.DB.Line(ctx, string(said.Chat), said.Seq)
			if lost != nil || s.cfg.Now().Sub(line.At) < sayWithin {
				return fmt.Errorf("send message %s: %w", said.ID, err)
			}
			state = "failed"
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "a message to a payer is given up",
				slog.String("chat", string(id)), slog.String("message", said.ID), slog.String("error", err.Error()))
		}
		err = s.update(context.WithoutCancel(ctx), func(w *saving) error {
			moved, err := w.tx.MarkSaid(w.ctx, said.ID, state)
			if err != nil || !moved {
				return err
			}
			return w.said(said, state)
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
