package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
	"unicode"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// numbersCmd is what an operator does about WhatsApp numbers.
type numbersCmd struct {
	List   numbersListCmd   `cmd:"" default:"withargs" help:"List our WhatsApp numbers: where each stands and what to do about it."`
	Drain  numbersDrainCmd  `cmd:"" help:"Give out no new links to a number; open chats go on."`
	Resume numbersResumeCmd `cmd:"" help:"Let a number do everything again."`
	Kill   numbersKillCmd   `cmd:"" help:"Send nothing with a number and answer nothing on it; what payers write is kept."`
	Set    numbersSetCmd    `cmd:"" help:"Set a number's share of new chats, and how many it takes a day."`
}

// withBoard opens an environment's switches and numbers.
func (e *environment) withBoard(w *world, do func(b *checkout.Board) error) error {
	return e.withBoardOf(w, "", do)
}

// withBoardOf is withBoard for what is about one project, or about all.
func (e *environment) withBoardOf(w *world, project flow.ProjectID, do func(b *checkout.Board) error) error {
	return besideEnv(w, e.Settings, e.env(), project, "there is nothing", func(db *store.DB) error {
		b := checkout.NewBoard(db, time.Now, time.Now, logger(w.err, e.Settings))
		if err := b.Refresh(w.ctx); err != nil {
			return err
		}
		return do(b)
	})
}

// act is an act of an operator with a reason.
type act struct {
	environment

	Reason string `help:"Why; it is kept with who did it and when."`
}

// reasoned refuses a reason that cannot be kept.
func reasoned(reason string) error {
	if len(reason) > maxReason || strings.ContainsFunc(reason, unicode.IsControl) {
		return usageError{fmt.Errorf("--reason must be one line of at most %d characters", maxReason)}
	}
	return keepable("--reason", reason)
}

// keepable refuses a text that is kept and holds what may not be. A card number of
// several words is only seen here: before, each argument was judged by itself.
func keepable(what, text string) error {
	if held := flow.Held("", text); held != "" {
		return usageError{fmt.Errorf("%s is kept: %s does not belong in it. Nothing was done", what, held)}
	}
	return nil
}

// move moves a switch, and ends once every server that runs has heard of it.
func (a *act) move(w *world, b *checkout.Board, m flow.SwitchMove) error {
	if err := reasoned(a.Reason); err != nil {
		return err
	}
	m.Reason, m.By = a.Reason, whoIs()
	m, err := b.Move(w.ctx, m)
	if err != nil {
		return err
	}
	heard(w)
	return printDone(w, a.JSON, recordMove(m), "%s  %s -> %s\n", m.Name, cmp.Or(m.From, "on"), cmp.Or(m.To, "on"))
}

// heard waits until every server that runs has heard of what was changed.
func heard(w *world) {
	select {
	case <-time.After(max(checkout.BoardMemory, checkout.KeyMemory)):
	case <-w.ctx.Done():
	}
}

// whoIs is the operator as this machine knows them.
func whoIs() string {
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return cmp.Or(name, "?")
	}
	return cmp.Or(name, "?") + "@" + host
}

// numbersListCmd lists numbers.
type numbersListCmd struct{ environment }

func (numbersListCmd) Help() string {
	return "Example:\n\n    till numbers\n    till numbers list --json"
}

// numberLine is a number as it is listed.
type numberLine struct {
	Slot       int              `json:"slot"`
	Number     string           `json:"number"`
	State      flow.NumberState `json:"state"`
	Detail     string           `json:"detail"`
	Since      string           `json:"since"`
	Until      string           `json:"until"`
	ChatsToday int              `json:"chatsToday"`
	DailyChats int              `json:"dailyChats"`
	Weight     int              `json:"weight"`
	Holder     string           `json:"holder"`
	Advice     string           `json:"advice"`
}

// Run prints one line for each number.
func (c *numbersListCmd) Run(w *world) error {
	return c.withBoard(w, func(b *checkout.Board) error {
		now := time.Now()
		lines := []numberLine{}
		for _, n := range b.Numbers() {
			state := n.At(now)
			line := numberLine{
				Slot: n.Slot, Number: n.Digits, State: state, Detail: n.Detail, ChatsToday: n.ChatsToday,
				DailyChats: n.DailyChats, Weight: n.Weight, Advice: state.Advice(),
			}
			if began := n.Began(now); !began.IsZero() {
				line.Since = flow.Stamp(began)
			}
			if now.Before(n.HeldUntil) {
				line.Holder = n.Holder
			}
			if state.Ends() && !n.Until.IsZero() {
				line.Until = flow.Stamp(n.Until)
			}
			lines = append(lines, line)
		}
		if c.JSON {
			return json.NewEncoder(w.out).Encode(lines)
		}
		return printTable(w, "SLOT\tNUMBER\tSTATE\tSINCE\tCHATS TODAY\tWEIGHT\tHOLDER\tWHAT TO DO", lines, numberLine.String)
	})
}

// String is the number for people, with what to do about it.
func (l numberLine) String() string {
	state, chats, number := string(l.State), strconv.Itoa(l.ChatsToday), "-"
	if l.Number != "" {
		number = "+" + l.Number
	}
	if l.Until != "" {
		state += " until " + l.Until
	}
	if l.DailyChats > 0 {
		chats += " of " + strconv.Itoa(l.DailyChats)
	}
	todo := cmp.Or(l.Advice, "-")
	if l.Detail != "" {
		todo += " (" + l.Detail + ")"
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s", l.Slot, number, state, cmp.Or(l.Since, "-"), chats, l.Weight, cmp.Or(l.Holder, "-"), todo)
}

// numberAct is an act about one number.
type numberAct struct {
	act

	Number string `arg:"" help:"The number in digits, or its slot."`
}

type (
	numbersDrainCmd  struct{ numberAct }
	numbersResumeCmd struct{ numberAct }
	numbersKillCmd   struct{ numberAct }
)

func (numbersDrainCmd) Help() string {
	return "Example:\n\n    till numbers drain 2348012345678 --reason 'moves to another phone on Friday'"
}

func (numbersResumeCmd) Help() string { return "Example:\n\n    till numbers resume 2348012345678" }

func (numbersKillCmd) Help() string {
	return "Example:\n\n    till numbers kill 2348012345678 --reason 'the phone was stolen'"
}

// Run drains a number.
func (c *numbersDrainCmd) Run(w *world) error { return c.to(w, flow.NumberDrains) }

// Run lets a number go on.
func (c *numbersResumeCmd) Run(w *world) error { return c.to(w, flow.NumberGoes) }

// Run switches a number off.
func (c *numbersKillCmd) Run(w *world) error { return c.to(w, flow.NumberKill) }

func (c *numberAct) to(w *world, to flow.NumberSwitch) error {
	return c.withBoard(w, func(b *checkout.Board) error {
		n, err := numberOf(b, c.Number)
		if err != nil {
			return err
		}
		return c.move(w, b, flow.SwitchMove{Kind: flow.SwitchNumber, Name: n.Digits, To: string(to)})
	})
}

// numberOf finds a linked number by its digits or its slot.
func numberOf(b *checkout.Board, text string) (flow.Number, error) {
	text = strings.TrimPrefix(text, "+")
	for _, n := range b.Numbers() {
		if n.Digits != "" && (n.Digits == text || strconv.Itoa(n.Slot) == text) {
			return n, nil
		}
	}
	return flow.Number{}, fmt.Errorf("there is no number %q that was ever linked (see: till numbers)", text)
}

// numbersSetCmd bounds a number.
type numbersSetCmd struct {
	environment

	Number     string `arg:"" help:"The number in digits, or its slot."`
	Weight     int    `default:"-1" help:"Its share of new chats beside the others', 0 to 1000; 0 for none."`
	DailyChats int    `default:"-1" help:"New chats that it takes a day, 0 for any number."`
}

func (numbersSetCmd) Help() string {
	return "Example:\n\n    till numbers set 2348012345678 --weight 2 --daily-chats 250"
}

const (
	maxWeight     = 1000
	maxDailyChats = 1_000_000
)

// Run sets what was given.
func (c *numbersSetCmd) Run(w *world) error {
	if c.Weight > maxWeight || c.DailyChats > maxDailyChats || c.Weight < -1 || c.DailyChats < -1 {
		return usageError{fmt.Errorf("--weight is 0 to %d and --daily-chats 0 to %d", maxWeight, maxDailyChats)}
	}
	return c.withBoard(w, func(b *checkout.Board) error {
		n, err := numberOf(b, c.Number)
		if err != nil {
			return err
		}
		if c.Weight >= 0 {
			n.Weight = c.Weight
		}
		if c.DailyChats >= 0 {
			n.DailyChats = c.DailyChats
		}
		if err := b.Bound(w.ctx, n.Slot, n.Weight, n.DailyChats); err != nil {
			return err
		}
		heard(w)
		return printDone(w, c.JSON, map[string]any{"number": n.Digits, "slot": n.Slot, "weight": n.Weight, "dailyChats": n.DailyChats},
			"%s  weight %d, new chats a day %d (0: any number)\n", n.Digits, n.Weight, n.DailyChats)
	})
}
