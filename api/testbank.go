package api

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"till/flow"
	"till/rail"
)

// The bounds of what a pretend bank is told.
const (
	maxDelayMs   = 10 * 60 * 1000
	maxPendingMs = 10 * 60 * 1000
	maxLatencyMs = 30 * 1000
	maxCopies    = 20
	maxTransfer  = 10 * flow.MaxAmount // more than was asked for is to be tried out too
	callsAtOnce  = 100
	callPages    = 50 // looked through for one answer: other projects' calls stand between
	maxAdvance   = 400 * 24 * 3600
)

func (s *Server) bank() (rail.TestBank, error) {
	if s.cfg.TestBank == nil {
		return nil, flow.Refuse(flow.CodeTestOnly, "This server has no pretend bank.")
	}
	return s.cfg.TestBank, nil
}

// playTransfer is POST /v1/test/bank/transfers: a payer sends money.
func (s *Server) playTransfer(c *call) error {
	bank, err := s.bank()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{})
	t := rail.Transfer{
		AccountNumber:  f.text("accountNumber", text{required: true, least: 10, most: 10}),
		Amount:         f.amount(false, 1, maxTransfer),
		SenderName:     f.text("senderName", text{most: maxName, said: true}),
		SenderBankCode: f.text("senderBankCode", text{most: 10}),
		ValueTime:      f.moment("valueTime"),
		PendingMs:      int(f.whole("pendingMs", 0, maxPendingMs, 0)),
		Returned:       f.yes("returned", false),
		DelayMs:        int(f.whole("delayMs", 0, maxDelayMs, 0)),
		Copies:         int(f.whole("copies", 1, maxCopies, 1)),
		Drop:           f.yes("drop", false),
		NIPSessionID:   f.text("nipSessionId", text{least: 30, most: 30}),
		Collects:       c.project.ID,
	}
	for _, n := range [...]struct{ name, digits string }{{"accountNumber", t.AccountNumber}, {"nipSessionId", t.NIPSessionID}} {
		if strings.Trim(n.digits, "0123456789") != "" {
			f.fail(n.name, flow.CodeInvalidField, "%s must be digits alone.", n.name)
		}
	}
	if strings.ContainsFunc(t.SenderName, func(r rune) bool { return !unicode.IsPrint(r) }) {
		f.fail("senderName", flow.CodeInvalidField, "senderName must hold printable characters alone, as the names of accounts do.")
	}
	if _, known := rail.BankByCode(t.SenderBankCode); t.SenderBankCode != "" && !known {
		f.fail("senderBankCode", flow.CodeBankNotSupported, "No bank has the code %q. GET %s/banks lists them.", safeName(t.SenderBankCode), verificationPath)
	}
	if err := f.done(); err != nil {
		return err
	}
	if service := cmp.Or(c.service, s.cfg.Services[flow.Test]); service != nil { // the phone page has no key, and so no service of its own
		asked, err := service.PayableBy(c.ctx, c.project.ID, t.AccountNumber)
		if err != nil {
			return err
		}
		if t.Amount == 0 { // the bank knows only what was asked for at first
			t.Amount = asked
		}
		if t.Amount == 0 {
			f.fail("amount", flow.CodeMissingField, "amount is required: nothing was asked for on this account number.")
			return f.done()
		}
	}
	// Where the answer is lost, the same call again sends no money once more.
	once, err := c.once(nil)
	if err != nil {
		return err
	}
	if once.Key != "" {
		t.Once = hex.EncodeToString(hashOf(c.scope(), string(c.project.ID), once.Key, once.Hash))[:32]
		for flow.HoldsCard(t.Once) { // the bank would take another name, and send it again
			t.Once = hex.EncodeToString(hashOf(t.Once))[:32]
		}
	}
	c.began = true
	booked, err := bank.Transfer(c.ctx, t)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, transferBooked(booked))
}

// transferBooked is what a bank booked, as merchants read it.
func transferBooked(r rail.TransferResult) map[string]string {
	return map[string]string{
		"railTransactionId": r.RailTransactionID, "nipSessionId": r.NIPSessionID, "accountNumber": r.AccountNumber,
		"amountMinor": r.AmountMinor, "valueTime": flow.Stamp(r.ValueTime),
	}
}

// playReversal is POST /v1/test/bank/reversals: the bank takes back a payment of
// the project.
func (s *Server) playReversal(c *call) error {
	bank, err := s.bank()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{})
	id := f.text("railTransactionId", text{required: true, most: maxName})
	if err := f.done(); err != nil {
		return err
	}
	if err := c.service.PaidTo(c.ctx, c.project.ID, id); err != nil {
		return err
	}
	c.began = true
	taken, err := bank.Reverse(c.ctx, id)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, transferBooked(taken))
}

// playUSSD is POST /v1/test/ussd/{paymentCode}/complete: a payer dials, and it
// works out or not.
func (s *Server) playUSSD(c *call) error {
	if _, err := c.service.AttemptByPaymentCode(c.ctx, c.project.ID, c.param("code")); err != nil {
		return err
	}
	return s.dial(c)
}

// dial is playUSSD for who holds the phone that the code was shown on.
func (s *Server) dial(c *call) error {
	bank, outcome, err := s.ending(c, "success", "failed")
	if err != nil {
		return err
	}
	code := c.param("code")
	c.began = true
	if err := bank.CompleteUSSD(c.ctx, code, outcome); err != nil {
		return err
	}
	return c.send(http.StatusOK, map[string]string{"paymentCode": code, "outcome": outcome})
}

// ending reads how a played payment ends: one of two ways, the first where
// nothing is said.
func (s *Server) ending(c *call, ways ...string) (bank rail.TestBank, outcome string, err error) {
	if bank, err = s.bank(); err != nil {
		return nil, "", err
	}
	f := c.form(decodeRules{optional: true})
	outcome = f.oneOf("outcome", flow.CodeInvalidField, ways...)
	return bank, outcome, f.done()
}

// playCard is POST /v1/test/cards/{attemptId}/complete: a payer is done with
// the card page.
func (s *Server) playCard(c *call) error {
	bank, outcome, err := s.ending(c, "approved", "declined")
	if err != nil {
		return err
	}
	id, err := pathID[flow.AttemptID](c, flow.PrefixAttempt, "attempt")
	if err != nil {
		return err
	}
	a, err := c.service.Attempt(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	if a.Method != flow.Card {
		return flow.Refuse(flow.CodeNotFound, "There is no card attempt with this id.")
	}
	c.began = true
	if err := bank.CompleteCard(c.ctx, a.Reference, outcome); err != nil {
		return err
	}
	return c.send(http.StatusOK, map[string]string{"attemptId": string(id), "outcome": outcome})
}

// setConditions is PUT /v1/test/bank/conditions: what is left out goes back to
// a bank in good health.
func (s *Server) setConditions(c *call) error {
	bank, err := s.bank()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{})
	wanted := rail.Conditions{
		Up:                 f.yes("up", true),
		LatencyMs:          int(f.whole("latencyMs", 0, maxLatencyMs, 0)),
		TimeoutAfterCommit: f.yes("timeoutAfterCommit", false),
		NotifyLossPercent:  int(f.whole("notifyLossPercent", 0, 100, 0)),
		DuplicatePercent:   int(f.whole("duplicatePercent", 0, 100, 0)),
		Refunds:            fate(f, "refunds"),
		Payouts:            fate(f, "payouts"),
	}
	if err := f.done(); err != nil {
		return err
	}
	if s.cfg.SharedBank && wanted != (rail.Conditions{Up: true, Refunds: rail.FateOK, Payouts: rail.FateOK}) {
		return flow.Refuse(flow.CodeTestOnly, "The pretend bank of this server serves others too: it can be healed, and not be broken.")
	}
	now, err := bank.SetConditions(c.ctx, wanted)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, now)
}

// fate reads what becomes of money that the bank is ordered to send.
func fate(f *form, name string) rail.Fate {
	out, _ := rail.FateOf(f.oneOf(name, flow.CodeInvalidField, rail.Fates()...))
	return out
}

// bankCallRecord is a call that the bank received, as merchants read it.
type bankCallRecord struct {
	Seq       int64   `json:"seq"`
	At        string  `json:"at"`
	Operation string  `json:"operation"`
	Reference string  `json:"reference"`
	SessionID *string `json:"sessionId"` // null of a payout, which is of many
	Outcome   string  `json:"outcome"`
}

// listBankCalls is GET /v1/test/bank/calls: every call that the bank received
// about a session or money of this project, oldest first.
func (s *Server) listBankCalls(c *call) error {
	bank, err := s.bank()
	if err != nil {
		return err
	}
	q := c.query()
	var after int64
	limit := q.whole("limit", 1, maxPage, maxPage)
	q.cursor(func(s string) bool {
		after, err = strconv.ParseInt(s, 10, 64)
		return err == nil && after >= 0
	})
	if err := q.done(); err != nil {
		return err
	}
	calls, last, more, err := c.bankCalls(bank, after, limit)
	if err != nil {
		return err
	}
	records := make([]bankCallRecord, 0, len(calls))
	for _, one := range calls {
		records = append(records, bankCallRecord{one.Seq, flow.Stamp(one.At), one.Operation, one.Reference, flow.OrNull(one.Session), one.Outcome})
	}
	out := page{Items: records, HasMore: more}
	if more {
		out.NextCursor = cursorOf(strconv.FormatInt(last, 10))
	}
	return c.send(http.StatusOK, out)
}

// bankCalls picks this project's calls out of all of them.
func (c *call) bankCalls(bank rail.TestBank, after int64, limit int) (mine []rail.Call, last int64, more bool, err error) {
	mine = []rail.Call{}
	for range callPages {
		calls, err := bank.Calls(c.ctx, after, callsAtOnce)
		if err != nil {
			return nil, 0, false, err
		}
		var ids []flow.SessionID
		for _, one := range calls {
			ids = append(ids, flow.SessionID(one.Session))
		}
		owned, err := c.service.OwnedSessions(c.ctx, c.project.ID, ids)
		if err != nil {
			return nil, 0, false, err
		}
		for _, one := range calls {
			if len(mine) == limit {
				return mine, after, true, nil
			}
			after = one.Seq
			if owned[flow.SessionID(one.Session)] || one.Project != "" && one.Project == c.project.ID {
				mine = append(mine, one)
			}
		}
		if len(calls) == 0 {
			return mine, after, false, nil
		}
	}
	return mine, after, true, nil
}

// advanceClock is POST /v1/test/clock.
func (s *Server) advanceClock(c *call) error {
	f := c.form(decodeRules{})
	f.required("advanceSeconds")
	seconds := f.whole("advanceSeconds", 0, maxAdvance, -1)
	if err := f.done(); err != nil {
		return err
	}
	if s.cfg.AdvanceClock == nil {
		return flow.Refuse(flow.CodeTestOnly, "The clock of this server cannot be moved.")
	}
	now, moved := s.cfg.AdvanceClock(seconds)
	if !moved {
		f.fail("advanceSeconds", flow.CodeInvalidField, "The clock stands at %s and goes no further than a hundred years.", flow.Stamp(now))
		return f.done()
	}
	return c.send(http.StatusOK, map[string]string{"now": flow.Stamp(now)})
}
