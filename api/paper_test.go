package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"till/flow"
	"till/rail"
)

// paper is a bank on paper: a rail without a network, whose notices are sent
// through the front door like any bank's.
type paper struct {
	now         func() time.Time
	rail.Closed // what it does not serve

	notify func(h http.Header, body []byte) int // the status it was answered with

	hold chan struct{} // where there is one, a call takes two out of it: asked, may answer

	mu     sync.Mutex
	sends  bool // what it is ordered to send out, at once
	state  rail.Conditions
	orders []flow.Order
	made   map[string]flow.Instructions // by reference
	paid   map[string][]flow.Notice
	calls  []rail.Call
}

var (
	_ rail.Rail     = (*paper)(nil)
	_ rail.TestBank = (*paper)(nil)
)

const paperSecret = "paper"

func newPaper(now func() time.Time) *paper {
	return &paper{now: now, state: rail.Conditions{Up: true}, made: map[string]flow.Instructions{}, paid: map[string][]flow.Notice{}}
}

func (*paper) Methods() []flow.Method { return flow.Methods() }

func (p *paper) Start(_ context.Context, o flow.Order) (flow.Instructions, error) {
	if p.hold != nil {
		<-p.hold
		<-p.hold
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	outcome := "ok"
	defer func() {
		p.calls = append(p.calls, rail.Call{
			Seq: int64(len(p.calls) + 1), At: p.now(), Operation: "create_" + string(o.Method), Reference: o.Reference, Session: string(o.Session), Outcome: outcome,
		})
	}()
	switch {
	case !p.state.Up:
		outcome = "down"
		return flow.Instructions{}, rail.ErrUnavailable
	case o.CustomerName == "REFUSE":
		outcome = "refused"
		return flow.Instructions{}, rail.ErrRejected
	}
	ins, there := p.made[o.Reference]
	if !there {
		n := len(p.orders) + 1
		p.orders = append(p.orders, o)
		ins = flow.Instructions{RailReference: fmt.Sprintf("paper-%d", n), ExpiresAt: o.ExpiresAt}
		switch o.Method {
		case flow.BankTransfer:
			ins.BankName, ins.BankCode, ins.AccountNumber, ins.AccountName = "Paper Bank", "999", fmt.Sprintf("9%09d", n), o.AccountName
		case flow.USSD:
			ins.PaymentCode = fmt.Sprintf("%04d", 1000+n)
			for _, b := range paperBanks() {
				ins.Banks = append(ins.Banks, flow.DialCode{BankCode: b.Code, BankName: b.Name, USSDCode: b.BaseDial[:len(b.BaseDial)-1] + "*000*" + ins.PaymentCode + "#"})
			}
		case flow.Card:
			ins.CheckoutURL = "http://127.0.0.1:1/card/" + o.Reference
		}
		p.made[o.Reference] = ins
	}
	if p.state.TimeoutAfterCommit {
		outcome = "timeout"
		return flow.Instructions{}, rail.ErrUnknown
	}
	return ins, nil
}

func (p *paper) Check(_ context.Context, reference string) ([]flow.Notice, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.Up {
		return nil, rail.ErrUnavailable
	}
	return slices.Clone(p.paid[reference]), nil
}

// sendsOut has it send out what it is ordered to from now on, which it does not serve
// by itself.
func (p *paper) sendsOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends = true
}

func (p *paper) Disburse(ctx context.Context, d flow.Disbursement) (flow.Disbursed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sends {
		return p.Closed.Disburse(ctx, d)
	}
	return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "PAPER-" + d.Reference, At: p.now()}, nil
}

func (p *paper) sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(paperSecret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (p *paper) Parse(h http.Header, body []byte) ([]flow.Notice, error) {
	if !hmac.Equal([]byte(h.Get("X-Paper-Signature")), []byte(p.sign(body))) {
		return nil, rail.ErrForged
	}
	var n flow.Notice
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fmt.Errorf("%w: %w", rail.ErrForged, err)
	}
	return []flow.Notice{n}, nil
}

// tell books a notice and sends it, copies times.
func (p *paper) tell(reference string, n flow.Notice, copies int) error {
	p.mu.Lock()
	p.paid[reference] = append(p.paid[reference], n)
	p.mu.Unlock()
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	for range copies {
		if status := p.notify(http.Header{"X-Paper-Signature": {p.sign(body)}}, bytes.Clone(body)); status != http.StatusOK {
			return fmt.Errorf("the notice was answered with %d", status)
		}
	}
	return nil
}

// order finds an order by what its instructions hold.
func (p *paper) order(match func(flow.Instructions) bool) (flow.Order, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.orders {
		if match(p.made[o.Reference]) {
			return o, nil
		}
	}
	return flow.Order{}, flow.Refuse(flow.CodeNotFound, "There is no such order.")
}

func (p *paper) Transfer(_ context.Context, t rail.Transfer) (rail.TransferResult, error) {
	o, err := p.order(func(i flow.Instructions) bool { return i.AccountNumber == t.AccountNumber })
	if err != nil {
		return rail.TransferResult{}, err
	}
	if t.Amount == 0 {
		t.Amount = o.Amount
	}
	p.mu.Lock()
	id := "PAPER" + strconv.Itoa(len(p.paid[o.Reference])+1) + o.Reference
	p.mu.Unlock()
	n := flow.Notice{
		Kind: flow.Credit, RailTransactionID: id, Reference: o.Reference, AccountNumber: t.AccountNumber, Amount: t.Amount, Channel: o.Method,
		PaidAt: p.now(), Payer: flow.PaidBy{Name: t.SenderName}, NIPSessionID: t.NIPSessionID,
	}
	if t.Returned {
		n.Kind = flow.Returned
	}
	copies := max(t.Copies, 1)
	if t.Drop {
		copies = 0
	}
	if err := p.tell(o.Reference, n, copies); err != nil {
		return rail.TransferResult{}, err
	}
	return rail.TransferResult{RailTransactionID: id, AccountNumber: t.AccountNumber, AmountMinor: t.Amount.Minor(), ValueTime: n.PaidAt}, nil
}

// Reverse takes a credit back.
func (p *paper) Reverse(_ context.Context, id string) (rail.TransferResult, error) {
	p.mu.Lock()
	var credit flow.Notice
	for _, list := range p.paid {
		for _, n := range list {
			if n.Kind == flow.Credit && n.RailTransactionID == id {
				credit = n
			}
			if n.Reverses == id {
				p.mu.Unlock()
				return rail.TransferResult{}, rail.ErrRejected
			}
		}
	}
	p.mu.Unlock()
	if credit.RailTransactionID == "" {
		return rail.TransferResult{}, rail.ErrRejected
	}
	back := credit
	back.Kind, back.RailTransactionID, back.Reverses, back.PaidAt = flow.Reversal, id+"-BACK", id, p.now()
	err := p.tell(credit.Reference, back, 1)
	return rail.TransferResult{
		RailTransactionID: back.RailTransactionID, AccountNumber: back.AccountNumber, AmountMinor: back.Amount.Minor(), ValueTime: back.PaidAt,
	}, err
}

func (p *paper) CompleteUSSD(_ context.Context, code, outcome string) error {
	o, err := p.order(func(i flow.Instructions) bool { return i.PaymentCode == code })
	if err != nil {
		return err
	}
	return p.end(o, outcome == "success")
}

func (p *paper) CompleteCard(_ context.Context, reference, outcome string) error {
	p.mu.Lock()
	i := slices.IndexFunc(p.orders, func(o flow.Order) bool { return o.Reference == reference })
	p.mu.Unlock()
	if i < 0 {
		return flow.Refuse(flow.CodeNotFound, "There is no such order.")
	}
	return p.end(p.orders[i], outcome == "approved")
}

func (p *paper) end(o flow.Order, ok bool) error {
	n := flow.Notice{Kind: flow.Declined, RailTransactionID: "PAPER-" + o.Reference, Reference: o.Reference, Amount: o.Amount, Channel: o.Method, PaidAt: p.now(), Reason: "declined"}
	if ok {
		n.Kind = flow.Credit
	}
	return p.tell(o.Reference, n, 1)
}

func (p *paper) SetConditions(_ context.Context, c rail.Conditions) (rail.Conditions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = c
	return c, nil
}

func (p *paper) Calls(_ context.Context, after int64, limit int) ([]rail.Call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := min(int(after), len(p.calls))
	return slices.Clone(p.calls[from:min(from+limit, len(p.calls))]), nil
}

func paperBanks() []flow.Bank {
	return []flow.Bank{
		{Code: "058", Name: "GTBank", Short: "GTBank", USSD: true, BaseDial: "*737#"},
		{Code: "044", Name: "Access Bank", Short: "Access", USSD: true, BaseDial: "*901#"},
	}
}
