package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"till/flow"
)

// payCmd plays the payer of a session.
type payCmd struct {
	calling

	Session string    `arg:"" help:"Id of the session: wsp_sess_…"`
	Method  string    `default:"bank_transfer" enum:"bank_transfer,ussd,card" help:"How: bank_transfer, ussd or card. The rest is for bank_transfer."`
	Amount  typedKobo `help:"Kobo; without it what is still due." placeholder:"KOBO"`
	Times   int       `default:"1" help:"How often: 2 is once too much."`
	Late    bool      `help:"After the session has ended: the test clock is moved past it first."`
	Before  bool      `help:"Before the session has ended, of which the bank tells only after: the test clock is moved past it between the two."`
}

func (payCmd) Help() string {
	return "Example:\n\n    till pay wsp_sess_01jd…\n    till pay wsp_sess_01jd… --amount 300000\n    till pay wsp_sess_01jd… --late\n\n" +
		"The method's instructions are made where there are none yet. Test keys only."
}

// maxTimes bounds how often a session is paid.
const maxTimes = 20

// lateBy is how far past the end of a session a late payment comes: more than
// the five minutes that are forgiven.
const lateBy = 10 * time.Minute

// Run pays, and says what the session is then.
func (c *payCmd) Run(w *world) error {
	switch {
	case c.Times < 1 || c.Times > maxTimes:
		return usageError{fmt.Errorf("--times is 1 to %d", maxTimes)}
	case c.Late && c.Before:
		return usageError{errors.New("--late and --before are asked for one at a time")}
	case c.Method != string(flow.BankTransfer) && (c.Amount != 0 || c.Times != 1 || c.Late || c.Before):
		return usageError{errors.New("--amount, --times, --late and --before are for bank transfers")}
	}
	to, err := c.pretend()
	if err != nil {
		return err
	}
	before, err := to.payments(w.ctx, c.Session)
	if err != nil {
		return err
	}
	if err := c.pay(w, to); err != nil {
		return err
	}
	var after aSession
	err = to.until(w, "the Till to hear of it", func() (bool, error) {
		heard, err := to.payments(w.ctx, c.Session) // before the session: what is there counts in it
		if err != nil {
			return false, err
		}
		err = to.get(w.ctx, at(sessionsPath, c.Session), &after)
		return heard >= before+c.Times && after.Status != string(flow.SessionProcessing), err
	})
	if err != nil {
		return err
	}
	return printDone(w, c.JSON, map[string]any{"id": after.ID, "status": after.Status, "exceptions": after.Exceptions, "amountPaidMinor": after.AmountPaidMinor},
		"%s  %s  %s paid\n", after.ID, after.state(), naira(after.AmountPaidMinor))
}

// payments is how much money came for a session, in pieces.
func (c *client) payments(ctx context.Context, session string) (int, error) {
	items, _, err := c.list(ctx, paymentsPath, url.Values{"sessionId": {session}}, maxListed)
	return len(items), err
}

// pay plays what the payer does.
func (c *payCmd) pay(w *world, to *client) (err error) {
	var how struct{ AccountNumber, PaymentCode, AttemptID string }
	path := map[string]string{string(flow.BankTransfer): "bank-transfer", string(flow.USSD): "ussd", string(flow.Card): "card"}[c.Method]
	if err := to.post(w.ctx, at(sessionsPath, c.Session, "pay", path), nil, &how); err != nil {
		return err
	}
	switch c.Method {
	case string(flow.USSD):
		return to.post(w.ctx, at("/v1/test/ussd", how.PaymentCode, "complete"), nil, nil)
	case string(flow.Card):
		return to.post(w.ctx, at("/v1/test/cards", how.AttemptID, "complete"), nil, nil)
	}
	transfer := map[string]any{"accountNumber": how.AccountNumber}
	if c.Amount != 0 {
		transfer["amount"] = c.Amount
	}
	if c.Before {
		now, err := to.clock(w.ctx, 0)
		if err != nil {
			return err
		}
		transfer["valueTime"] = flow.Stamp(now)
	}
	if c.Late || c.Before {
		if _, err = to.expire(w, c.Session, lateBy); err != nil {
			return err
		}
	}
	return to.transfers(w.ctx, c.Times, transfer)
}

// transfers sends money so often.
func (c *client) transfers(ctx context.Context, times int, transfer map[string]any) error {
	for range times {
		if err := c.post(ctx, "/v1/test/bank/transfers", transfer, nil); err != nil {
			return err
		}
	}
	return nil
}
