package main

import (
	"cmp"
	"fmt"
	"slices"

	"till/flow"
	"till/flow/checkout"
)

// methodsCmd is what an operator does about methods.
type methodsCmd struct {
	List methodsListCmd `cmd:"" default:"withargs" help:"List the methods and which are switched off."`
	Off  methodsOffCmd  `cmd:"" help:"Make no new instructions of a method; what is paid is kept."`
	On   methodsOnCmd   `cmd:"" help:"Offer a method again."`
}

// methodsListCmd lists methods.
type methodsListCmd struct{ environment }

func (methodsListCmd) Help() string { return "Example:\n\n    till methods" }

// Run prints one line for each method.
func (c *methodsListCmd) Run(w *world) error {
	return c.withBoard(w, func(b *checkout.Board) error {
		on := b.Served(flow.Methods(), "")
		states := map[flow.Method]string{}
		for _, m := range flow.Methods() {
			if states[m] = flow.MethodOff; slices.Contains(on, m) {
				states[m] = "on"
			}
		}
		if c.JSON {
			return printJSON(w, states)
		}
		for _, m := range flow.Methods() {
			if _, err := fmt.Fprintf(w.out, "%-14s %s\n", m, states[m]); err != nil {
				return err
			}
		}
		return nil
	})
}

// methodAct is an act about one method.
type methodAct struct {
	act

	Method string `arg:"" enum:"bank_transfer,ussd,card" help:"bank_transfer, ussd or card."`
}

type (
	methodsOffCmd struct{ methodAct }
	methodsOnCmd  struct{ methodAct }
)

func (methodsOffCmd) Help() string {
	return "Example:\n\n    till methods off ussd --reason 'the bank has an outage'"
}

func (methodsOnCmd) Help() string { return "Example:\n\n    till methods on ussd" }

// Run switches a method off.
func (c *methodsOffCmd) Run(w *world) error { return c.to(w, flow.MethodOff) }

// Run switches a method on.
func (c *methodsOnCmd) Run(w *world) error { return c.to(w, "") }

func (c *methodAct) to(w *world, to string) error {
	return c.withBoard(w, func(b *checkout.Board) error {
		return c.move(w, b, flow.SwitchMove{Kind: flow.SwitchMethod, Name: c.Method, To: to})
	})
}

type (
	merchantsStopCmd struct{ merchantAct }
	merchantsGoCmd   struct{ merchantAct }
)

// merchantAct is an act about one project.
type merchantAct struct {
	act

	Project string `arg:"" help:"Id of the project: wsp_prj_…"`
}

func (merchantsStopCmd) Help() string {
	return "Example:\n\n    till merchants stop wsp_prj_01jd… --live --reason 'under attack'"
}

func (merchantsGoCmd) Help() string {
	return "Example:\n\n    till merchants go wsp_prj_01jd… --live"
}

// Run stops a project: no new sessions, charges or instructions.
func (c *merchantsStopCmd) Run(w *world) error { return c.to(w, flow.MerchantStopped) }

// Run lets a project go on.
func (c *merchantsGoCmd) Run(w *world) error { return c.to(w, "") }

func (c *merchantAct) to(w *world, to string) error {
	if err := known(w, c.Settings, c.Project); err != nil {
		return err
	}
	return c.withBoardOf(w, flow.ProjectID(c.Project), func(b *checkout.Board) error {
		err := c.move(w, b, flow.SwitchMove{Kind: flow.SwitchMerchant, Name: c.Project, To: to})
		if err != nil || to != "" || !c.Live {
			return err
		}
		return withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
			m, err := a.Merchant(w.ctx, flow.ProjectID(c.Project))
			if err == nil && m.Project.KYC == flow.KYCSuspended {
				_, err = fmt.Fprintf(w.err, "till: its live keys do not work all the same, for its business is suspended (%s: till merchants kyc approve %s)\n", beforeRuling(m.Project.KYC), c.Project)
			}
			return err
		})
	})
}

// switchesCmd tells what operators did.
type switchesCmd struct{ environment }

func (switchesCmd) Help() string { return "Example:\n\n    till switches" }

// moveJSON is an act of an operator, for programs.
type moveJSON struct {
	At     string `json:"at"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	From   string `json:"from"`
	To     string `json:"to"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

func recordMove(m flow.SwitchMove) moveJSON {
	return moveJSON{flow.Stamp(m.At), string(m.Kind), m.Name, cmp.Or(m.From, "on"), cmp.Or(m.To, "on"), m.By, m.Reason}
}

// switchesShown is how many acts are told.
const switchesShown = 200

// Run prints one line for each act, oldest first.
func (c *switchesCmd) Run(w *world) error {
	return c.withBoard(w, func(b *checkout.Board) error {
		moves, err := b.Moves(w.ctx, switchesShown)
		if err != nil {
			return err
		}
		if c.JSON {
			list := make([]moveJSON, 0, len(moves))
			for _, m := range moves {
				list = append(list, recordMove(m))
			}
			return printJSON(w, list)
		}
		for _, m := range moves {
			if _, err := fmt.Fprintf(w.out, "%s  %-8s %s  %s -> %s  %s  %s\n", flow.Stamp(m.At), m.Kind, m.Name, cmp.Or(m.From, "on"), cmp.Or(m.To, "on"), plain(m.By), plain(m.Reason)); err != nil {
				return err
			}
		}
		return nil
	})
}
