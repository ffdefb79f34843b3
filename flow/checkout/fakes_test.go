package checkout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
	"till/rail/sandbox"
)

// shakyRail is the bank's rail with something done before or instead of a call.
type shakyRail struct {
	*sandbox.Rail

	mu          sync.Mutex
	onStart     func(ctx context.Context, o flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error)
	onCheck     func(ctx context.Context, reference string) ([]flow.Notice, error)
	onSendOut   func(d flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error)
	onSentOut   func(reference string, call func() (flow.Disbursed, error)) (flow.Disbursed, error)
	onStatement func(ctx context.Context, from, to time.Time) error
	onLookUp    func(ctx context.Context) error
	onMethods   func()        // once, before it says which methods it has: each reading of a session asks that
	parsed      []flow.Notice // what Parse gives, where it is set
	lines       []flow.Notice // that stand on its statement too
	orders      []flow.Order
}

func (r *shakyRail) Methods() []flow.Method {
	r.mu.Lock()
	on := r.onMethods
	r.onMethods = nil
	r.mu.Unlock()
	if on != nil {
		on()
	}
	return r.Rail.Methods()
}

func (r *shakyRail) Start(ctx context.Context, o flow.Order) (flow.Instructions, error) {
	r.mu.Lock()
	r.orders = append(r.orders, o)
	on := r.onStart
	r.mu.Unlock()
	call := func() (flow.Instructions, error) { return r.Rail.Start(ctx, o) }
	if on != nil {
		return on(ctx, o, call)
	}
	return call()
}

func (r *shakyRail) Check(ctx context.Context, reference string) ([]flow.Notice, error) {
	r.mu.Lock()
	on := r.onCheck
	r.mu.Unlock()
	if on != nil {
		return on(ctx, reference)
	}
	return r.Rail.Check(ctx, reference)
}

func (r *shakyRail) LookUpIdentity(ctx context.Context, p rail.Person) (flow.Matches, error) {
	r.mu.Lock()
	on := r.onLookUp
	r.mu.Unlock()
	if on != nil {
		if err := on(ctx); err != nil {
			return flow.Matches{}, err
		}
	}
	return r.Rail.LookUpIdentity(ctx, p)
}

func (r *shakyRail) Disburse(ctx context.Context, d flow.Disbursement) (flow.Disbursed, error) {
	r.mu.Lock()
	on := r.onSendOut
	r.mu.Unlock()
	call := func() (flow.Disbursed, error) { return r.Rail.Disburse(ctx, d) }
	if on != nil {
		return on(d, call)
	}
	return call()
}

func (r *shakyRail) Disbursed(ctx context.Context, reference string) (flow.Disbursed, error) {
	r.mu.Lock()
	on := r.onSentOut
	r.mu.Unlock()
	call := func() (flow.Disbursed, error) { return r.Rail.Disbursed(ctx, reference) }
	if on != nil {
		return on(reference, call)
	}
	return call()
}

func (r *shakyRail) Parse(h http.Header, body []byte) ([]flow.Notice, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parsed != nil {
		return r.parsed, nil
	}
	return r.Rail.Parse(h, body)
}

func (r *shakyRail) Statement(ctx context.Context, from, to time.Time) ([]flow.Notice, error) {
	r.mu.Lock()
	on := r.onStatement
	r.mu.Unlock()
	if on != nil {
		if err := on(ctx, from, to); err != nil {
			return nil, err
		}
	}
	list, err := r.Rail.Statement(ctx, from, to)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.lines {
		if !n.PaidAt.Before(from) && n.PaidAt.Before(to) {
			list = append(list, n)
		}
	}
	return list, err
}

func (r *shakyRail) set(f func(*shakyRail)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// starting has on decide how an order for instructions is answered.
func (r *shakyRail) starting(on func(ctx context.Context, o flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error)) {
	r.set(func(r *shakyRail) { r.onStart = on })
}

// checking has on decide how a question what came is answered.
func (r *shakyRail) checking(on func(ctx context.Context, reference string) ([]flow.Notice, error)) {
	r.set(func(r *shakyRail) { r.onCheck = on })
}

// sentOut has on decide how a question what was sent is answered.
func (r *shakyRail) sentOut(on func(reference string, call func() (flow.Disbursed, error)) (flow.Disbursed, error)) {
	r.set(func(r *shakyRail) { r.onSentOut = on })
}

func (r *shakyRail) asked() []flow.Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.orders)
}

// logged is how often something stands in the program's own log.
func (w *world) logged(what string) int { return strings.Count(w.logs.String(), what) }

// unsent counts which messages to payers did not go out, and how long payers waited for
// those that did, and nothing else.
type unsent struct {
	checkout.Unmetered

	mu     sync.Mutex
	why    map[string]int
	waited []time.Duration
}

// Replied implements checkout.Meter.
func (u *unsent) Replied(took time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waited = append(u.waited, took)
}

// Unsent implements checkout.Meter.
func (u *unsent) Unsent(reason string, messages int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.why == nil {
		u.why = map[string]int{}
	}
	u.why[reason] += messages
}

func (u *unsent) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprint(u.why)
}

// seeded is a source of the same bytes every time.
type seeded struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (s *seeded) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Read(p)
}

func (w *world) attempts(id flow.SessionID) []flow.Attempt {
	w.t.Helper()
	list, err := w.db.Attempts(w.t.Context(), id)
	w.must(err)
	return list
}

func (w *world) read(id flow.SessionID) flow.Session {
	w.t.Helper()
	s, err := w.db.Session(w.t.Context(), id)
	w.must(err)
	return s
}

// is fails where a session stands elsewhere.
func (w *world) is(id flow.SessionID, status flow.SessionStatus) {
	w.t.Helper()
	if s := w.read(id); s.Status != status {
		w.t.Errorf("the session is %s", s.Status)
	}
}

// bankSilent has the bank not answer who asks it what came.
func (w *world) bankSilent() {
	w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return nil, rail.ErrUnavailable })
}

// unreached says whether the bank is out of reach for what is sent out.
func (w *world) unreached(is bool) {
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = nil
		if is {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
		}
	})
}

// events counts the events of a session by kind.
func (w *world) events(id flow.SessionID) map[flow.EventKind]int {
	w.t.Helper()
	list, err := w.db.Events(w.t.Context(), id)
	w.must(err)
	out := map[flow.EventKind]int{}
	for _, e := range list {
		out[e.Kind]++
	}
	return out
}

// lines counts the lines of the log about a session by kind.
func (w *world) lines(id flow.SessionID) map[string]int {
	w.t.Helper()
	list, err := w.db.SessionLines(w.t.Context(), id)
	w.must(err)
	out := map[string]int{}
	for _, l := range list {
		out[l.Kind]++
	}
	return out
}

// calls counts the calls that the bank received, by operation.
func (w *world) calls() map[string]int {
	w.t.Helper()
	list, err := w.bank.Calls(w.t.Context(), 0, 100)
	w.must(err)
	out := map[string]int{}
	for _, c := range list {
		out[c.Operation]++
	}
	return out
}

// tell gives the service a message of the bank that says these things.
func (w *world) tell(notices ...flow.Notice) error {
	w.rail.set(func(r *shakyRail) { r.parsed = notices })
	defer w.rail.set(func(r *shakyRail) { r.parsed = nil })
	return w.service.Notice(w.t.Context(), nil, nil)
}

// pay sends money to a session's newest account.
func (w *world) pay(id flow.SessionID, amount flow.Kobo, drop bool) {
	w.t.Helper()
	attempts := w.attempts(id)
	_, err := w.bank.Transfer(w.t.Context(), rail.Transfer{
		AccountNumber: attempts[len(attempts)-1].Instructions.AccountNumber, Amount: amount, SenderName: "BOLA ADE", Drop: drop, ValueTime: w.clock(),
	})
	w.must(err)
}

// balanced fails unless the ledger of a session sums to zero and says that the
// rail gave so much.
func (w *world) balanced(id flow.SessionID, came flow.Kobo) {
	w.t.Helper()
	posted, err := w.db.Ledger(w.t.Context(), id)
	w.must(err)
	accounts := map[flow.LedgerAccount]flow.Kobo{}
	var sum flow.Kobo
	for _, e := range posted {
		for _, line := range e.Postings {
			accounts[line.Account] += line.Amount
			sum += line.Amount
		}
	}
	if sum != 0 || accounts[flow.RailClearing] != came {
		w.t.Errorf("the ledger says %v (sum %d), and %d kobo came", accounts, sum, came)
	}
}
