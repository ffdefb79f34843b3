package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// maxReply bounds what an agent writes at once, in characters.
const maxReply = 4000

// maxDesk bounds how many chats of the queue are read at once.
const maxDesk = 200

// maxWithdrawn bounds how many messages of the bot's are taken back at once.
const maxWithdrawn = 500

// Desk is the queue of the chats that a person has or should look at, the one
// that waits longest first.
func (s *Service) Desk(ctx context.Context) ([]store.ChatRow, error) {
	list, err := s.cfg.DB.Desk(ctx, maxDesk)
	for i := range list {
		if err == nil {
			err = s.called(ctx, &list[i])
		}
	}
	return list, err
}

// called adds to why somebody should look at a chat what its person was asked for:
// the decision that did so says it.
func (s *Service) called(ctx context.Context, row *store.ChatRow) error {
	if row.Desk.State != flow.DeskWaiting {
		return nil
	}
	lines, err := s.cfg.DB.DecidedAt(ctx, string(row.ID), row.Desk.Since)
	if err != nil {
		return err
	}
	for _, line := range lines {
		var d replay.Outcome
		if err := json.Unmarshal(line.Data, &d); err != nil {
			return fmt.Errorf("read why chat %s waits: %w", row.ID, err)
		}
		if d.Chat.Desk.State != flow.DeskWaiting {
			continue
		}
		if row.Flag != "" {
			d.Why += ": " + row.Flag
		}
		row.Flag = d.Why
		return nil
	}
	return nil // what was decided so long ago is not kept
}

// Claim gives a chat to an agent: from now on the bot is silent in it, and only
// speaks of money. What it had still to send is withdrawn in the same
// transaction, so that it never talks over the agent. seen is the Seq of the
// state that the agent looked at, 0 for whatever it is now.
// Errors: flow.ErrDesk, resource_not_found, invalid_field where its payer was forgotten.
func (s *Service) Claim(ctx context.Context, id flow.ChatID, agent string, seen int64) error {
	return s.ClaimAbout(ctx, id, "", agent, seen)
}

// ClaimAbout is Claim for a payment: the one that a person was asked for about, or the
// one that the payer speaks of now, once nobody came to the other.
func (s *Service) ClaimAbout(ctx context.Context, id flow.ChatID, about flow.SessionID, agent string, seen int64) error {
	return s.desk(ctx, id, about, seen, flow.News{Kind: flow.NewsClaimed, By: agent}, Call{})
}

// MayReply is whether an agent may write a text to a payer.
// Errors: invalid_field, card_data_not_accepted.
func MayReply(text string) error {
	if flow.Says(text) == 0 || utf8.RuneCountInString(text) > maxReply {
		return flow.Refuse(flow.CodeInvalidField, "A reply has 1 to %d characters, and something to read in them.", maxReply)
	}
	return flow.MayKeep("The reply", "", text)
}

// Reply sends what an agent writes to the payer of a chat that the agent has.
// Errors: flow.ErrDesk, resource_not_found, invalid_field, card_data_not_accepted,
// idempotency_key_reused.
func (s *Service) Reply(ctx context.Context, id flow.ChatID, agent, text string, c Call) error {
	text = strings.TrimSpace(text)
	if err := MayReply(text); err != nil {
		return err
	}
	return s.desk(ctx, id, "", 0, flow.News{Kind: flow.NewsReply, By: agent, Reason: text}, c)
}

// Release gives a chat back to the bot.
// Errors: flow.ErrDesk, resource_not_found.
func (s *Service) Release(ctx context.Context, id flow.ChatID, agent string) error {
	return s.desk(ctx, id, "", 0, flow.News{Kind: flow.NewsReleased, By: agent}, Call{})
}

// GiveBack gives the bot back the chats of an agent who is to be shut out: nobody
// else could, and the bot would be silent in them for two hours more.
func (s *Service) GiveBack(ctx context.Context, agent string) error {
	for after, more := flow.ChatID(""), true; more; {
		list, err := s.cfg.DB.ClaimedBy(ctx, agent, after, maxDesk)
		if err != nil {
			return err
		}
		for _, row := range list {
			if err := s.Release(ctx, row.ID, agent); err != nil && !errors.Is(err, flow.ErrDesk) { // it is not theirs any more
				return err
			}
			after = row.ID
		}
		more = len(list) == maxDesk
	}
	return nil
}

// deskActs are what an agent does.
var deskActs = map[flow.NewsKind]string{flow.NewsClaimed: "take a chat over", flow.NewsReply: "answer in a chat", flow.NewsReleased: "give a chat back"}

// desk takes a turn of a chat over what an agent does. wanted is what they claim it for.
func (s *Service) desk(ctx context.Context, id flow.ChatID, wanted flow.SessionID, seen int64, n flow.News, c Call) error {
	if n.By = strings.TrimSpace(n.By); n.By == "" {
		return flow.Refuse(flow.CodeInvalidField, "Say who you are.")
	}
	return s.plain(ctx, c, deskActs[n.Kind], func(w *saving) error {
		row, err := w.tx.Chat(w.ctx, id)
		if err != nil {
			return err
		}
		if Forgotten(row.Person) && n.Kind != flow.NewsReleased {
			return toNobody()
		}
		chat, err := w.stands(row)
		if err != nil {
			return err
		}
		if seen != 0 && seen != chat.Seq {
			return fmt.Errorf("%w: something happened in it meanwhile, look again", flow.ErrDesk)
		}
		if err := chat.Desk.May(n.Kind, n.By); err != nil {
			return err
		}
		if n.Kind == flow.NewsClaimed {
			if err := w.withdraw(id); err != nil {
				return err
			}
		}
		about := chat.Focus
		if n.Kind == flow.NewsClaimed { // goes to what a person is waited for about
			if about = cmp.Or(chat.Desk.About, about); wanted == chat.Focus && chat.NobodyCame() {
				about = wanted
			}
		}
		return w.turn(row, flow.Turn{News: &n, About: about}, store.Line{Kind: replay.News})
	})
}

// withdraw takes back what the bot has not sent yet in a chat, but for what no
// person holds back.
func (w *saving) withdraw(id flow.ChatID) error {
	pending, err := w.tx.Owed(w.ctx, id, maxWithdrawn)
	if err != nil {
		return err
	}
	pending = slices.DeleteFunc(pending, func(s store.Said) bool { return !flow.Withheld(s.Key) })
	return w.withdrawn(pending, "a person has taken the chat over")
}

// withdrawn gives messages up that are not to be sent any more.
func (w *saving) withdrawn(list []store.Said, reason string) error {
	for _, said := range list {
		moved, err := w.tx.MarkSaid(w.ctx, said.ID, stateFailed)
		if err != nil {
			return err
		}
		if !moved {
			continue
		}
		if err := w.said(said, stateFailed, reason); err != nil {
			return err
		}
	}
	return nil
}

// timer lets a chat do what is due by itself.
func (s *Service) timer(ctx context.Context, id flow.ChatID) error {
	return s.update(ctx, func(w *saving) error {
		row, err := w.tx.Chat(ctx, id)
		if err != nil {
			return err
		}
		chat, err := w.stands(row)
		if err != nil {
			return err
		}
		due, ok := chat.Due()
		switch {
		case !ok:
			return nil
		case due.After(w.now):
			return w.owe(flow.TaskTimer, string(id), due)
		}
		return w.turn(row, flow.Turn{News: &flow.News{Kind: flow.NewsTimer}}, store.Line{Kind: replay.News})
	})
}
