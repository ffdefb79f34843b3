package railtest_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/railtest"
)

// slip is a provider on a slip of paper, and the rail to it: nothing of it is
// the sandbox's, so that what every rail must do is not what that one does.
type slip struct {
	*books

	lost bool // nobody listens at its address
}

// books are what a provider keeps.
type books struct {
	mu      sync.Mutex
	now     time.Time
	state   rail.Conditions
	orders  map[string]flow.Order
	made    map[string]flow.Instructions
	outs    map[string]*out
	moves   []move
	calls   []rail.Call
	notices chan railtest.Message
}

// move is a movement of money; it is on its way until it lands.
type move struct {
	flow.Notice

	lands    time.Time
	returned bool
	silent   bool // no notice, or it was sent
}

const (
	header = "X-Slip"
	secret = "a secret of this test"
)

func TestAnotherRailConforms(t *testing.T) {
	railtest.Run(t, func(*testing.T) railtest.World {
		b := &books{
			now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), state: rail.Conditions{Up: true}, orders: map[string]flow.Order{},
			made: map[string]flow.Instructions{}, outs: map[string]*out{}, notices: make(chan railtest.Message, 200),
		}
		there := slip{books: b}
		return railtest.World{
			Rail: there, Hasty: there, Provider: there, Unreachable: slip{books: b, lost: true}, Notices: b.notices, Secret: secret, Now: b.clock, Pass: b.pass,
			Sign: func(secret string, at time.Time, body []byte) http.Header {
				return http.Header{header: {sign(secret, at, body)}}
			},
		}
	})
}

func sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return strconv.FormatInt(at.Unix(), 10) + "." + hex.EncodeToString(mac.Sum(nil))
}

func (b *books) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *books) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
	b.tell()
}

// tell sends the notices of what has landed.
func (b *books) tell() {
	for i := range b.moves {
		if m := &b.moves[i]; !m.silent && !b.now.Before(m.lands) {
			m.silent = true
			body, err := json.Marshal(b.said(*m))
			if err != nil {
				panic(err) // a notice of this file's own making
			}
			b.notices <- railtest.Message{Header: http.Header{header: {sign(secret, b.now, body)}}, Body: body}
		}
	}
}

// said is a movement as it is told now.
func (b *books) said(m move) flow.Notice {
	switch {
	case b.now.Before(m.lands):
		m.Kind = flow.Pending
	case m.returned:
		m.Kind = flow.Returned
	}
	return m.Notice
}

func (b *books) book(m move) rail.TransferResult {
	m.RailTransactionID = "slip-" + strconv.Itoa(len(b.moves)+1)
	b.moves = append(b.moves, m)
	b.tell()
	return rail.TransferResult{RailTransactionID: m.RailTransactionID, AmountMinor: m.Amount.Minor(), ValueTime: m.PaidAt}
}

func (b *books) log(operation, reference string) {
	b.calls = append(b.calls, rail.Call{Seq: int64(len(b.calls) + 1), At: b.now, Operation: operation, Reference: reference})
}

func (slip) Methods() []flow.Method { return flow.Methods() }

func (s slip) Start(ctx context.Context, o flow.Order) (flow.Instructions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost || !s.state.Up || ctx.Err() != nil {
		if o.Again {
			return flow.Instructions{}, rail.ErrUnknown
		}
		return flow.Instructions{}, rail.ErrUnavailable
	}
	if o.Again {
		s.log("find", o.Reference)
		if found, ok := s.made[o.Reference]; ok {
			return found, nil
		}
	}
	s.log("create", o.Reference)
	was, known := s.orders[o.Reference]
	if !slices.Contains(flow.Methods(), o.Method) || o.Method == flow.USSD && o.Amount > flow.MaxUSSD || known && was.Amount != o.Amount {
		return flow.Instructions{}, rail.ErrRejected
	}
	if !known {
		n := strconv.Itoa(1_000_000_000 + len(s.orders))
		s.orders[o.Reference] = o
		s.made[o.Reference] = flow.Instructions{RailReference: "slip-" + n, AccountNumber: n, PaymentCode: n, CheckoutURL: "http://slip.test/" + n, ExpiresAt: o.ExpiresAt}
	}
	if s.state.TimeoutAfterCommit {
		return flow.Instructions{}, rail.ErrUnknown
	}
	return s.made[o.Reference], nil
}

func (s slip) Check(ctx context.Context, reference string) ([]flow.Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reached(ctx); err != nil {
		return nil, err
	}
	s.log("check", reference)
	var out []flow.Notice
	for _, m := range s.moves {
		if m.Reference == reference {
			out = append(out, s.said(m))
		}
	}
	return out, nil
}

func (s slip) Parse(h http.Header, body []byte) ([]flow.Notice, error) {
	values := h[header]
	if len(values) != 1 {
		return nil, rail.ErrForged
	}
	at, _, _ := strings.Cut(values[0], ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	age := s.clock().Sub(time.Unix(seconds, 0)).Abs()
	if err != nil || age > 5*time.Minute || !hmac.Equal([]byte(values[0]), []byte(sign(secret, time.Unix(seconds, 0), body))) {
		return nil, rail.ErrForged
	}
	var n flow.Notice
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, err
	}
	return []flow.Notice{n}, nil
}

// order finds an order by what its instructions hold.
func (s slip) order(match func(flow.Order, flow.Instructions) bool) (flow.Order, error) {
	for reference, o := range s.orders {
		if match(o, s.made[reference]) {
			return o, nil
		}
	}
	return flow.Order{}, rail.ErrRejected
}

func (s slip) Transfer(_ context.Context, t rail.Transfer) (rail.TransferResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.order(func(_ flow.Order, i flow.Instructions) bool { return i.AccountNumber == t.AccountNumber })
	if err != nil && t.Amount == 0 {
		return rail.TransferResult{}, err
	}
	lands := s.now.Add(time.Duration(t.PendingMs) * time.Millisecond)
	m := move{lands: lands, returned: t.Returned, silent: t.Drop, Notice: flow.Notice{
		Kind: flow.Credit, Reference: o.Reference, AccountNumber: t.AccountNumber, Amount: t.Amount, Channel: flow.BankTransfer, PaidAt: t.ValueTime,
		Payer: flow.PaidBy{Name: t.SenderName, BankName: "Slip Bank"}, Collects: t.Collects,
	}}
	if m.Amount == 0 {
		m.Amount = o.Amount
	}
	if m.PaidAt.IsZero() {
		m.PaidAt = lands
	}
	return s.book(m), nil
}

func (s slip) Reverse(_ context.Context, id string) (rail.TransferResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.moves, func(m move) bool { return m.Reverses == id }) {
		return rail.TransferResult{}, rail.ErrRejected
	}
	for _, m := range s.moves {
		if back := s.said(m); m.RailTransactionID == id && back.Kind == flow.Credit {
			back.Kind, back.Reverses, back.PaidAt = flow.Reversal, id, s.now
			return s.book(move{Notice: back}), nil
		}
	}
	return rail.TransferResult{}, rail.ErrRejected
}

func (s slip) CompleteUSSD(_ context.Context, code, outcome string) error {
	return s.end(outcome == "success", func(o flow.Order, i flow.Instructions) bool { return o.Method == flow.USSD && i.PaymentCode == code })
}

func (s slip) CompleteCard(_ context.Context, reference, outcome string) error {
	return s.end(outcome == "approved", func(o flow.Order, _ flow.Instructions) bool { return o.Method == flow.Card && o.Reference == reference })
}

func (s slip) end(good bool, match func(flow.Order, flow.Instructions) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.order(match)
	if err != nil {
		return err
	}
	n := flow.Notice{Kind: flow.Credit, Reference: o.Reference, Amount: o.Amount, Channel: o.Method, PaidAt: s.now}
	if !good {
		n.Kind, n.Reason = flow.Declined, "no"
	}
	s.book(move{Notice: n})
	return nil
}

func (s slip) SetConditions(_ context.Context, c rail.Conditions) (rail.Conditions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = c
	s.release()
	return c, nil
}

func (s slip) Calls(_ context.Context, after int64, limit int) ([]rail.Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(int(after), len(s.calls))
	return slices.Clone(s.calls[from:min(from+limit, len(s.calls))]), nil
}
