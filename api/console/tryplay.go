package console

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"till/flow"
	"till/rail"
)

// tooLittle, tooMuch and tooLate are what the bank panel's payers get wrong.
const (
	tooLittle = 2 // the part of it that is sent
	tooMuch   = flow.Kobo(50_000)
	tooLate   = flow.Grace + time.Minute // after the end
)

// tryBank is POST /try/bank: a payer sends money, rightly or not.
func (c *Console) tryBank(v *visit) error {
	id, how := trySession(v), v.field("how")
	return c.play(v, "bank."+clipped(how), id, func() (string, error) {
		view, err := v.service.View(v.ctx, v.project.ID, id)
		if err != nil {
			return "", err
		}
		a := inspector{View: view}.Of(string(flow.BankTransfer))
		if a == nil {
			return "", flow.Refuse(flow.CodeInvalidField, "The session has no account number yet. Choose the bank transfer on the phone first.")
		}
		due := view.Session.AskedOn(*a) // the bank knows only what was asked for at first
		t := rail.Transfer{AccountNumber: a.Instructions.AccountNumber, Amount: due, Collects: v.project.ID}
		said, times := "The bank was sent the exact amount.", 1
		switch how {
		case "exact":
		case "under":
			t.Amount, said = max(due/tooLittle, 1), "The bank was sent half of it."
		case "over":
			t.Amount, said = due+tooMuch, "The bank was sent ₦500.00 too much."
		case "late":
			t.ValueTime, said = view.Session.ExpiresAt.Add(tooLate), "The bank was sent it with a value time of six minutes after the session's end, a minute more than is let pass."
		case "twice":
			times, said = 2, "The bank was sent the amount twice."
		case "again":
			t.Copies, said = 3, "The bank was sent the exact amount, and tells of it three times."
		case "lost":
			t.Drop, said = true, "The bank was sent the exact amount, and tells nobody. Write \"I have paid\" on the phone, or move the clock."
		default:
			return "", flow.Refuse(flow.CodeInvalidField, "Nobody pays like that.")
		}
		for range times {
			if _, err := c.cfg.Sandbox.Bank.Transfer(v.ctx, t); err != nil {
				return "", err
			}
		}
		return said, nil
	})
}

// clipped keeps what a form named freely short in the audit log.
func clipped(s string) string { return s[:min(len(s), 20)] }

// dialled finds the payment code at the end of what is dialled: *737*000*1234#.
var dialled = regexp.MustCompile(`^(?:\*[0-9*]*\*)?([0-9A-Za-z]{1,40})#?$`)

// tryDial is POST /try/dial: a payer dials a code.
func (c *Console) tryDial(v *visit) error {
	return c.play(v, "dial", trySession(v), func() (string, error) {
		code := dialled.FindStringSubmatch(v.field("code"))
		if code == nil {
			return "", flow.Refuse(flow.CodeInvalidField, "Dial a code as it is shown in the chat, such as *737*000*1234#.")
		}
		if _, err := v.service.AttemptByPaymentCode(v.ctx, v.project.ID, code[1]); err != nil {
			return "", err
		}
		outcome, said := "success", "Dialled, and paid."
		if v.field("how") == "failed" {
			outcome, said = "failed", "Dialled, and the bank refused."
		}
		return said, c.cfg.Sandbox.Bank.CompleteUSSD(v.ctx, code[1], outcome)
	})
}

// tryCard is POST /try/card: a payer is done with the card page.
func (c *Console) tryCard(v *visit) error {
	id := trySession(v)
	return c.play(v, "card", id, func() (string, error) {
		view, err := v.service.View(v.ctx, v.project.ID, id)
		if err != nil {
			return "", err
		}
		a := inspector{View: view}.Of(string(flow.Card))
		if a == nil {
			return "", flow.Refuse(flow.CodeInvalidField, "The session has no card page yet. Choose the card on the phone first.")
		}
		outcome := "approved"
		if v.field("how") == "declined" {
			outcome = "declined"
		}
		return "The card was " + outcome + ".", c.cfg.Sandbox.Bank.CompleteCard(v.ctx, a.Reference, outcome)
	})
}

// tryClock is POST /try/clock: time passes.
func (c *Console) tryClock(v *visit) error {
	return c.play(v, "clock", trySession(v), func() (string, error) {
		seconds, err := strconv.ParseInt(v.field("seconds"), 10, 64)
		if err != nil || seconds < 1 || seconds > maxAhead {
			return "", flow.Refuse(flow.CodeInvalidField, "The clock goes forward by 1 to %d seconds at once.", maxAhead)
		}
		if c.cfg.Sandbox.AdvanceClock == nil {
			return "", flow.Refuse(flow.CodeTestOnly, "The clock of this server cannot be moved.")
		}
		now, moved := c.cfg.Sandbox.AdvanceClock(seconds)
		if !moved {
			return "", flow.Refuse(flow.CodeInvalidField, "The clock goes no further than a hundred years.")
		}
		// Logins of the pretend world go by its clock: this one is not to end by it.
		if v.who.Email == string(v.who.Role)+" of "+c.cfg.Demo {
			in, err := c.cfg.Accounts.EnterAs(v.ctx, c.cfg.Demo, v.who.Role)
			if err != nil {
				return "", err
			}
			if err := v.enters(in); err != nil {
				return "", err
			}
		}
		return "The clock stands at " + now.In(flow.Lagos).Format("2 Jan 2006, 15:04:05") + ".", nil
	})
}

// tryChaos is POST /try/chaos: the bank behaves otherwise from now on.
func (c *Console) tryChaos(v *visit) error {
	return c.play(v, "chaos", trySession(v), func() (string, error) {
		number := func(name string, most int) (int, error) {
			n, err := strconv.Atoi("0" + v.field(name))
			if err != nil || n > most {
				return 0, flow.Refuse(flow.CodeInvalidField, "%s is 0 to %d.", name, most)
			}
			return n, nil
		}
		wanted := rail.Conditions{Up: v.field("down") == "", TimeoutAfterCommit: v.field("timeout") != ""}
		var err error
		for _, n := range []struct {
			name string
			most int
			into *int
		}{{"latency", maxLatency, &wanted.LatencyMs}, {"loss", 100, &wanted.NotifyLossPercent}, {"copies", 100, &wanted.DuplicatePercent}} {
			if *n.into, err = number(n.name, n.most); err != nil {
				return "", err
			}
		}
		for _, n := range []struct {
			name string
			into *rail.Fate
		}{{"refunds", &wanted.Refunds}, {"payouts", &wanted.Payouts}} {
			fate, known := rail.FateOf(v.field(n.name))
			if !known {
				return "", flow.Refuse(flow.CodeInvalidField, "%s do not end like that.", n.name)
			}
			*n.into = fate
		}
		_, err = c.cfg.Sandbox.Bank.SetConditions(v.ctx, wanted)
		return fmt.Sprintf("The bank behaves like that from now on%s.", map[bool]string{false: ": it is down", true: ""}[wanted.Up]), err
	})
}
