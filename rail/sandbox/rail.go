package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/rail"
)

// defaultTimeout is how long a call to the bank may take, unless configured.
const defaultTimeout = 5 * time.Second

// RailConfig says where the bank is. BaseURL, Secret and Now are required; Now
// must be the clock that the bank has, or its notices look too old.
type RailConfig struct {
	BaseURL string       // "http://127.0.0.1:9090"
	Secret  string       // of both directions, 16 to 256 printable characters
	HTTP    *http.Client // nil: one without proxy; redirects are never followed
	Now     func() time.Time
	// Day is what time it is for who pays and is paid, where the bank has another clock: it
	// books at that time what it is ordered. Nil: that of the bank.
	Day     func() time.Time
	Timeout time.Duration // of one call; 0: 5 s
}

// Rail is the rail to the pretend bank. It is safe for many callers.
type Rail struct {
	base    string
	secret  string
	http    *http.Client
	now     func() time.Time
	day     func() time.Time // nil: as the bank has it
	timeout time.Duration
	pages   int // of a statement, at once
}

var (
	_ rail.Rail     = (*Rail)(nil)
	_ rail.TestBank = (*Rail)(nil)
)

// NewRail makes the rail; it calls nobody. Register tells the bank of it.
func NewRail(c RailConfig) (*Rail, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return nil, errors.New("make the sandbox rail: BaseURL is the http address of the bank")
	}
	if len(c.Secret) < minSecret || len(c.Secret) > maxSecret || !plain(c.Secret) {
		return nil, errors.New("make the sandbox rail: a secret has 16 to 256 printable characters")
	}
	if c.Now == nil {
		return nil, errors.New("make the sandbox rail: Now is required")
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	return &Rail{base: strings.TrimSuffix(c.BaseURL, "/"), secret: c.Secret, http: caller(c.HTTP), now: c.Now, day: c.Day, timeout: c.Timeout, pages: statementPages}, nil
}

// Close lets go of idle connections.
func (r *Rail) Close() { r.http.CloseIdleConnections() }

// Register tells the bank where its notices go, an http URL on loopback, and
// the secret of both directions. Done at every start: what the bank could not
// say meanwhile is said at once. Errors are those of rail.Rail.
func (r *Rail) Register(ctx context.Context, notifyURL string) error {
	_, err := r.call(ctx, http.MethodPut, "/bank/test/client", client{NotifyURL: notifyURL, Secret: r.secret}, nil)
	return wrap("register with the bank", err)
}

// Methods is all there is: the pretend bank serves them while it is up, and
// whether it is up shows when it is called.
func (r *Rail) Methods() []flow.Method { return flow.Methods() }

// Start makes the instructions for an order; the same reference gives the same.
//
// An order marked Again is looked up first. While that look-up fails, the
// outcome of the earlier call stays unknown, whatever the reason: saying that
// the bank is unavailable would claim that nothing was made.
func (r *Rail) Start(ctx context.Context, o flow.Order) (flow.Instructions, error) {
	if o.Again {
		found, status, err := r.find(ctx, o.Reference)
		if err == nil {
			return instructions(o, found)
		}
		if status != http.StatusNotFound {
			return flow.Instructions{}, fmt.Errorf("look for an earlier order: %w: %v", rail.ErrUnknown, err) //nolint:errorlint // on purpose: see above
		}
	}
	path, ok := map[flow.Method]string{
		flow.BankTransfer: "/bank/v1/virtual-accounts", flow.USSD: "/bank/v1/ussd", flow.Card: "/bank/v1/card-pages",
	}[o.Method]
	if !ok {
		return flow.Instructions{}, fmt.Errorf("%w: it does not serve %q", rail.ErrRejected, o.Method)
	}
	var got instrument
	_, err := r.call(ctx, http.MethodPost, path, order{
		Reference: o.Reference, Session: string(o.Session), Amount: int64(o.Amount), AccountName: o.AccountName, ExpiresAt: o.ExpiresAt,
	}, &got)
	if err != nil {
		return flow.Instructions{}, wrap("order "+string(o.Method), err)
	}
	return instructions(o, got)
}

func (r *Rail) find(ctx context.Context, reference string) (instrument, int, error) {
	var got instrument
	status, err := r.call(ctx, http.MethodGet, "/bank/v1/instruments/"+url.PathEscape(reference), nil, &got)
	return got, status, err
}

// Check lists what the bank booked or refused for a reference, oldest first.
func (r *Rail) Check(ctx context.Context, reference string) ([]flow.Notice, error) {
	var out []flow.Notice
	after := int64(0)
	for range maxPages {
		var page movements
		path := "/bank/v1/instruments/" + url.PathEscape(reference) + "/transactions?after=" + strconv.FormatInt(after, 10)
		if _, err := r.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return nil, wrap("ask the bank", err)
		}
		for _, m := range page.Items {
			n, err := noticeOf(m)
			if err == nil && n.Reference != reference {
				err = errors.New("the answer is about another reference")
			}
			if err != nil {
				return nil, fmt.Errorf("ask the bank: %w: %w", rail.ErrUnknown, err)
			}
			out = append(out, n)
		}
		if page.Next <= after {
			return out, nil
		}
		after = page.Next
	}
	return nil, fmt.Errorf("ask the bank: %w: more than %d movements", rail.ErrUnknown, maxPages*movesPage)
}

// Parse reads a notice of the bank. Besides rail.ErrForged it returns an error
// for a signed message that makes no sense.
func (r *Rail) Parse(h http.Header, body []byte) ([]flow.Notice, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("%w: it is larger than any notice", rail.ErrForged)
	}
	if err := verify(r.secret, h, body, r.now()); err != nil {
		return nil, err
	}
	var m movement
	if err := readPlain(body, &m); err != nil {
		return nil, fmt.Errorf("read the bank's notice: %w", err)
	}
	n, err := noticeOf(m)
	if err != nil {
		return nil, fmt.Errorf("read the bank's notice: %w", err)
	}
	return []flow.Notice{n}, nil
}

// wrap says what was being done; nil stays nil.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
