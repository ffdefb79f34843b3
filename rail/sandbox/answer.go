package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"till/flow"
	"till/rail"
)

// maxReason bounds what is passed on of the bank's own words, in bytes.
const maxReason = 200

// caller is a client that never follows a redirect: the secret would go along.
func caller(given *http.Client) *http.Client {
	c := http.Client{Transport: &http.Transport{
		MaxIdleConns: 64, MaxIdleConnsPerHost: 64, MaxConnsPerHost: railPlaces, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}}
	if given != nil {
		c = *given
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// call asks the bank and reads its answer into out. The status is 0 when there
// was no answer. What is returned as error says what is known of the deed:
// nothing was sent (rail.ErrUnavailable), the bank said that it did nothing
// (rail.ErrUnavailable, rail.ErrRejected), or nobody knows (rail.ErrUnknown).
func (r *Rail) call(ctx context.Context, method, path string, in, out any) (int, error) {
	return r.callFor(ctx, method, path, in, out, maxBody)
}

// callFor is call with an answer of at most so many bytes.
func (r *Rail) callFor(ctx context.Context, method, path string, in, out any, most int64) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, fmt.Errorf("%w: the order cannot be written: %w", rail.ErrRejected, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return 0, fmt.Errorf("%w: the order cannot be written: %w", rail.ErrRejected, err)
	}
	req.Header.Set("Authorization", "Bearer "+r.secret)
	if trace := flow.TraceOf(ctx).Then(method + " " + path); !flow.TraceOf(ctx).Zero() {
		req.Header.Set("Traceparent", trace.Parent()) // what merchants keep in their tracestate is none of the bank's business
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.day != nil {
		req.Header.Set(dayHeader, r.day().UTC().Format(time.RFC3339Nano))
	}
	res, err := r.http.Do(req)
	if err != nil {
		if !sent.Load() { // without a connection nothing can have been sent
			return 0, fmt.Errorf("%w: %w", rail.ErrUnavailable, err)
		}
		return 0, fmt.Errorf("%w: %w", rail.ErrUnknown, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(answer)) > most {
		err = errors.New("the answer is larger than " + strconv.FormatInt(most>>10, 10) + " KiB")
	}
	return res.StatusCode, judgeAnswer(res.StatusCode, answer, err, out)
}

// judgeAnswer tells a deed from a refusal from what is not known.
func judgeAnswer(status int, answer []byte, broken error, out any) error {
	switch {
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests,
		status == http.StatusUnauthorized: // our secret is wrong: that says nothing of the order, which may go once it is right
		return fmt.Errorf("%w: %s", rail.ErrUnavailable, reason(status, answer))
	case status >= 400 && status < 500:
		return refused(status, answer)
	case status < 200 || status > 299:
		return fmt.Errorf("%w: answered with %d", rail.ErrUnknown, status)
	case broken != nil:
		return fmt.Errorf("%w: %w", rail.ErrUnknown, broken)
	case out == nil:
		return nil
	}
	if err := readPlain(answer, out); err != nil {
		return fmt.Errorf("%w: the answer cannot be read: %w", rail.ErrUnknown, err)
	}
	return nil
}

// refused is the bank's no. Of a payment that ended before, or was taken back, it is in
// words for whoever plays its payer or its bank.
func refused(status int, answer []byte) error {
	err := fmt.Errorf("%w: %s", rail.ErrRejected, reason(status, answer))
	p, ok := said(answer)
	switch {
	case !ok:
	case p.Code == alreadyReversed:
		return &flow.Error{Code: flow.CodeRailRejected, Message: "The bank took this payment back already. It does so once.", Err: err}
	case slices.Contains([]string{ussdSuccess, ussdFailed, cardApproved, cardDeclined}, p.Outcome):
		return &flow.Error{
			Code: flow.CodeRailRejected, Message: fmt.Sprintf("This payment has ended already, with the outcome %q. It ends only once.", p.Outcome), Err: err,
		}
	}
	return err
}

// alreadyReversed is the bank's word for a credit that it took back before.
const alreadyReversed = "already_reversed"

// said is what the bank says of a no, false where it says nothing.
func said(answer []byte) (*problem, bool) {
	var e errorBody
	ok := json.Unmarshal(answer, &e) == nil && e.Error != nil && e.Error.Code != ""
	return e.Error, ok
}

// reason is why the bank said no, in its words where it has any.
func reason(status int, answer []byte) string {
	if p, ok := said(answer); ok {
		text := p.Error()
		if len(text) > maxReason {
			text = strings.ToValidUTF8(text[:maxReason], "")
		}
		return text
	}
	return "answered with " + strconv.Itoa(status)
}

// instructions is what the bank made for an order. An answer about something
// else, or without what a payer needs, leaves the outcome unknown.
func instructions(o flow.Order, got instrument) (flow.Instructions, error) {
	what := ""
	switch {
	case got.Reference != o.Reference || got.Method != o.Method || got.Amount != int64(o.Amount):
		what = "the answer is about another order"
	case o.Method == flow.BankTransfer && !accountForm.MatchString(got.AccountNumber),
		o.Method == flow.USSD && (got.PaymentCode == "" || len(got.DialCodes) == 0),
		o.Method == flow.Card && !strings.HasPrefix(got.CheckoutURL, "http"):
		what = "the answer does not say how to pay"
	case got.ExpiresAt.IsZero():
		what = "the answer does not say until when"
	}
	if what != "" {
		return flow.Instructions{}, fmt.Errorf("%w: %s", rail.ErrUnknown, what)
	}
	return flow.Instructions{
		RailReference: cmp.Or(got.AccountNumber+got.PaymentCode, got.Reference), // one of the three, by method
		BankName:      got.BankName, BankCode: got.BankCode, AccountNumber: got.AccountNumber,
		AccountName: got.AccountName, PaymentCode: got.PaymentCode, Banks: got.DialCodes, CheckoutURL: got.CheckoutURL,
		ExpiresAt: got.ExpiresAt.UTC(),
	}, nil
}

// noticeOf is a movement in our words; an error for one that is none.
func noticeOf(m movement) (flow.Notice, error) {
	switch m.Kind {
	case flow.Credit, flow.Declined, flow.Reversal, flow.Pending, flow.Returned, flow.PaidOut, flow.PayoutFailed:
	default:
		return flow.Notice{}, fmt.Errorf("a movement of the unknown kind %q", m.Kind)
	}
	switch m.Channel {
	case flow.BankTransfer, flow.USSD, flow.Card:
	default:
		return flow.Notice{}, fmt.Errorf("a movement by the unknown channel %q", m.Channel)
	}
	if m.Currency != "" && m.Currency != flow.Currency {
		return flow.Notice{}, fmt.Errorf("a movement in another currency, %q", m.Currency)
	}
	most := int64(maxTransfer)
	if m.Kind == flow.PaidOut || m.Kind == flow.PayoutFailed {
		most = maxPayout
	}
	if m.ID == "" || m.Amount < 1 || m.Amount > most || m.ValueTime.IsZero() {
		return flow.Notice{}, errors.New("a movement without name, amount or time")
	}
	return flow.Notice{
		Kind: m.Kind, RailTransactionID: m.ID, Reference: m.Reference, AccountNumber: m.AccountNumber, Amount: flow.Kobo(m.Amount),
		Channel: m.Channel, PaidAt: m.ValueTime.UTC(), NIPSessionID: m.NIPSessionID, Reason: m.Reason, Reverses: m.Reverses,
		SentAt:   m.SentAt.UTC(),
		Collects: m.Collects,
		Payer:    flow.PaidBy{Name: m.PayerName, BankName: m.PayerBank, AccountNumberMasked: m.PayerAccount},
	}, nil
}
