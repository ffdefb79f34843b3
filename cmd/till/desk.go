package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"till/bot"
	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// deskCmd is what people do who answer payers.
type deskCmd struct {
	List    deskListCmd    `cmd:"" default:"withargs" help:"List the chats that wait for a person, have one, or should be looked at."`
	Claim   deskClaimCmd   `cmd:"" help:"Take a chat over: the bot is silent in it, but for news of money."`
	Reply   deskReplyCmd   `cmd:"" help:"Write to the payer of a chat that you have."`
	Release deskReleaseCmd `cmd:"" help:"Give a chat back to the bot."`
}

// deskListCmd lists the queue.
type deskListCmd struct{ environment }

func (deskListCmd) Help() string { return "Example:\n\n    till desk" }

// Run prints one line for each chat, the one that waits longest first.
func (c *deskListCmd) Run(w *world) error {
	return c.desk(w, func(s *checkout.Service) error {
		list, _, err := s.DeskOf(w.ctx, "")
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(w, deskJSON(list))
		}
		err = printTable(w, "CHAT\tDESK\tSINCE\tAGENT\tPAYER\tWHY", list, func(row checkout.Waiting) string {
			since, why := "", []string{}
			if row.Desk.Since != 0 {
				since = stamp(time.UnixMilli(row.Desk.Since))
			}
			if row.Flag != "" {
				why = append(why, row.Flag)
			}
			if owed := row.Desk.Unanswered(); !owed.IsZero() {
				why = append(why, "not answered since "+stamp(owed))
			}
			if row.Desk.Since == 0 && !row.Wrote.IsZero() {
				why = append(why, "last wrote "+stamp(row.Wrote))
			}
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", row.ID, cmp.Or(string(row.Desk.State), "bot"), since, row.Desk.By, row.Phone, strings.Join(why, ", "))
		})
		if err == nil && len(list) == 0 {
			_, err = fmt.Fprintln(w.out, "(nobody waits)")
		}
		return err
	})
}

// deskLine is a chat of the queue, for programs.
type deskLine struct {
	Chat  flow.ChatID `json:"chat"`
	Desk  string      `json:"desk"`
	Since *string     `json:"since"`
	Agent string      `json:"agent"`
	Phone string      `json:"phone"`
	Why   string      `json:"why"`
	Wrote *string     `json:"lastWrote"`
	Owed  *string     `json:"unansweredSince"`
}

func deskJSON(list []checkout.Waiting) []deskLine {
	out := make([]deskLine, 0, len(list))
	for _, row := range list {
		line := deskLine{Chat: row.ID, Desk: cmp.Or(string(row.Desk.State), "bot"), Agent: row.Desk.By, Phone: fmt.Sprint(row.Phone), Why: fmt.Sprint(row.Flag), Wrote: flow.StampOrNull(row.Wrote), Owed: flow.StampOrNull(row.Desk.Unanswered())}
		if row.Desk.Since != 0 {
			line.Since = flow.StampOrNull(time.UnixMilli(row.Desk.Since))
		}
		out = append(out, line)
	}
	return out
}

// deskOrder is what every order about one chat is told.
type deskOrder struct {
	environment

	Chat string `arg:"" help:"Id of the chat: chat_…"`
	As   string `help:"Who you are; it stands in the log." env:"TILL_AGENT" required:""`
}

type (
	deskClaimCmd struct {
		deskOrder

		Reason string `help:"Why you take it over, in a few words; it is kept in the audit log." required:""`
	}
	deskReleaseCmd struct{ deskOrder }
	deskReplyCmd   struct {
		deskOrder

		Text []string `arg:"" help:"What the payer reads."`
	}
)

func (deskClaimCmd) Help() string {
	return "Example:\n\n    till desk claim chat_01jd… --as ngozi --reason 'waits since half past eight'"
}

func (deskReleaseCmd) Help() string {
	return "Example:\n\n    till desk release chat_01jd… --as ngozi"
}

func (deskReplyCmd) Help() string {
	return "Example:\n\n    till desk reply chat_01jd… --as ngozi 'Good day. I am looking at your transfer.'"
}

// Run takes a chat over.
func (c *deskClaimCmd) Run(w *world) error {
	if err := reasoned(c.Reason); err != nil {
		return err
	}
	if flow.Says(c.Reason) < checkout.LeastWhy {
		return usageError{errors.New("--reason must say why, in a few words: it is kept in the audit log")}
	}
	return c.order(w, "chat.claim", c.Reason, "is yours. Read it with:  till replay "+c.Chat+" --text", func(s *checkout.Service) error {
		return s.Claim(w.ctx, flow.ChatID(c.Chat), c.As, 0)
	})
}

// Run gives a chat back.
func (c *deskReleaseCmd) Run(w *world) error {
	return c.order(w, "chat.release", "", "goes back to the bot; the server tells the payer", func(s *checkout.Service) error {
		return s.Release(w.ctx, flow.ChatID(c.Chat), c.As)
	})
}

// Run writes to a payer.
func (c *deskReplyCmd) Run(w *world) error {
	text := strings.Join(c.Text, " ")
	if err := checkout.MayReply(text); err != nil { // before it is kept that it is sent
		return usageError{err}
	}
	return c.order(w, "chat.reply", "", "has your reply; the server sends it", func(s *checkout.Service) error {
		return s.Reply(w.ctx, flow.ChatID(c.Chat), c.As, text, checkout.Call{})
	})
}

// order does something in a chat and says what came of it. It is kept first who does
// it and why, as it is in the console.
func (c *deskOrder) order(w *world, action, reason, done string, do func(*checkout.Service) error) error {
	if err := keepable("--as", c.As); err != nil {
		return err
	}
	if flow.Says(c.As) == 0 {
		return usageError{errors.New("--as must say who you are: it stands in the log")}
	}
	return c.desk(w, func(s *checkout.Service) error {
		chat, err := s.DeskChat(w.ctx, "", flow.ChatID(c.Chat))
		if err == nil {
			err = c.kept(w, chat, action, reason, func() error { return do(s) })
		}
		if flow.CodeOf(err) == flow.CodeNotFound {
			return fmt.Errorf("there is no chat %q (see: till desk)", c.Chat)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(w, map[string]string{"chat": c.Chat, "by": c.As, "says": done})
		}
		_, err = fmt.Fprintf(w.out, "%s %s\n", c.Chat, done)
		return err
	})
}

// kept does something in a chat, and keeps it in the audit log. The owner reads it whose
// payment is spoken of there.
func (c *deskOrder) kept(w *world, chat checkout.Waiting, action, reason string, do func() error) error {
	told := "as " + c.As
	if reason != "" {
		told += ": " + reason
	}
	return withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		row := flow.Audited{Project: chat.Session.Project, Environment: c.env(), Action: action, Subject: c.Chat, Reason: told}
		if row.Project != "" {
			m, err := a.Merchant(w.ctx, row.Project)
			if err != nil {
				return err
			}
			row.Account = m.Project.Account
		}
		return audited(w, a, row, do)
	})
}

// desk opens an environment beside the server that works on it. What is owed is
// done by that server: this process runs no worker.
func (e *environment) desk(w *world, do func(*checkout.Service) error) error {
	return e.beside(w, "there are no chats", func(db *store.DB) error {
		s, err := deskIn(w, e.Settings, e.env(), db)
		if err != nil {
			return err
		}
		return do(s)
	})
}

// deskIn is the desk of an environment's store.
func deskIn(w *world, set config.Settings, env flow.Environment, db *store.DB) (*checkout.Service, error) {
	words, err := bot.LoadWords()
	if err != nil {
		return nil, err
	}
	return checkout.New(checkout.Config{
		DB: db, Rail: rail.Closed{}, Words: words.Render, Copy: words.Version(), Build: version, Banks: rail.USSDMenu(),
		Now: clockOf(set, env), Rand: rand.Reader, Log: logger(w.err, set),
	})
}

// givenBack gives the bot back the chats of somebody who is to be shut out, in each
// environment that there is.
func givenBack(w *world, set config.Settings, agent string) error {
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		err := beside(w, set, store.Checkout, string(env), "there are no chats", func(db *store.DB) error {
			s, err := deskIn(w, set, env, db)
			if err != nil {
				return err
			}
			return s.GiveBack(w.ctx, agent)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
