//go:build unix

package checkout_test

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/hooks"
	"till/rail"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // the one of the public test vector

// The projects of the benchmark. Each is several, one for each receiver, as one
// receiver gets only so much at once.
const (
	toldOfMoney    = "told"   // has an endpoint that takes what is not on request
	toldOfSessions = "asked"  // has one that asked for new sessions
	toldNothing    = "nobody" // has none
)

// hookRail tells of money as the benchmark says it.
type hookRail struct{ rail.Closed }

func (hookRail) Methods() []flow.Method { return []flow.Method{flow.BankTransfer} }

func (hookRail) Parse(_ http.Header, body []byte) ([]flow.Notice, error) {
	var n flow.Notice
	err := json.Unmarshal(body, &n)
	return []flow.Notice{n}, err
}

// hookRig is Till on one database, wired as the program wires it, in this process.
type hookRig struct {
	db      *store.DB
	service *checkout.Service
	sender  *hooks.Sender
	ids     flow.IDs
	ready   map[string][]flow.Notice // of kinds of project: money for sessions that wait for it
	end     func()

	busy      atomic.Int64  // calls that had to be repeated
	left      atomic.Int64  // posts until all is delivered
	delivered chan struct{} // then
	seen      sync.Map      // session → time at which its event was delivered
	timed     atomic.Bool   // whether that is noted
}

// newHookRig opens the database and makes the endpoints; run starts the service.
func newHookRig(b *testing.B, place store.Config, clock func() time.Time, timeout time.Duration) *hookRig {
	b.Helper()
	place.Keys = storetest.Keys(b) // a process of its own is not handed them
	db, err := store.Open(b.Context(), place)
	must(b, err)
	r := &hookRig{
		db: db, ids: flow.IDs{Now: clock, Rand: cryptorand.Reader}, ready: map[string][]flow.Notice{}, delivered: make(chan struct{}, 1),
		sender: hooks.New(hooks.Config{AllowLoopback: true, Now: time.Now, Timeout: timeout}),
	}
	r.end = func() { _ = db.Close() }
	b.Cleanup(func() { r.end() })
	r.service, err = checkout.New(checkout.Config{
		DB: db, Rail: hookRail{}, Places: &checkout.MemoryPlaces{}, Banks: rail.USSDMenu(), Now: clock, Rand: cryptorand.Reader, Alone: place.URL == "",
		Words:  func(say flow.Say, _ time.Time) string { return say.Key },
		Around: flow.Surroundings{ClientSecret: func(id flow.SessionID) string { return "cs_" + string(id) }},
		Send:   func(context.Context, checkout.Outgoing) error { return nil },
		Post:   r.post,
		Next: func(d flow.Delivery, v flow.Verdict) (time.Duration, bool) {
			return hooks.Next(d.Attempts+1, v.RetryAfter, rand.Uint64())
		},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	must(b, err)
	return r
}

// post is the program's, and notes what was delivered.
func (r *hookRig) post(ctx context.Context, d flow.Delivery) flow.Verdict {
	v := r.sender.Send(ctx, hooks.Request{URL: d.URL, ID: string(d.Event), Body: d.Body, Secrets: d.Secrets, At: time.Now()})
	if v.OK {
		if r.timed.Load() {
			r.seen.Store(sessionOf(d.Body), time.Now())
		}
		if r.left.Add(-1) == 0 {
			r.delivered <- struct{}{}
		}
	}
	return flow.Verdict{
		OK: v.OK, Gone: v.Gone, Status: v.Status, Reason: v.Err, Body: v.Body, Duration: v.Duration, RetryAfter: v.RetryAfter,
	}
}

// book books a payment that somebody is told of, by no rule.
func (r *hookRig) book(ctx context.Context, i int, body []byte) error {
	var names [2]string
	for k, prefix := range []string{flow.PrefixPayment, flow.PrefixEvent} {
		var err error
		if names[k], err = r.ids.New(prefix); err != nil {
			return err
		}
	}
	now := r.ids.Now()
	p, postings := booked(names[0], hookProject(toldOfMoney, i), now)
	e := flow.Event{ID: flow.EventID(names[1]), Kind: flow.ChargeSuccess, Project: p.Project, Session: p.Session, Sequence: 1, Body: body, CreatedAt: now}
	return r.repeated(func() error { return r.service.Book(ctx, p, postings, e) })
}

// sessionOf finds whose an event is.
func sessionOf(body []byte) flow.SessionID {
	_, rest, _ := bytes.Cut(body, []byte(`"`+flow.PrefixSession))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return flow.SessionID(flow.PrefixSession + string(id))
}

// rest waits until nothing is left undone.
func (r *hookRig) rest(b *testing.B) {
	b.Helper()
	await.Until(b, "nothing is left undone", func() bool {
		idle, err := r.service.Idle(b.Context())
		return idle && err == nil
	})
}

// run runs the service until the rig ends.
func (r *hookRig) run(b *testing.B) *hookRig {
	b.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.service.Run(ctx) }()
	r.end = sync.OnceFunc(func() {
		stop()
		if err := errors.Join(<-ended, r.db.Close()); err != nil {
			b.Errorf("the service ended with %v", err)
		}
		r.sender.Close()
	})
	return r
}

// endpoints gives each of some projects an endpoint.
func (r *hookRig) endpoints(b *testing.B, project string, url func(i int) string, kinds ...flow.EventKind) {
	b.Helper()
	for i := range hookDoors {
		r.endpoint(b, hookProject(project, i), url(i), kinds...)
	}
}

func (r *hookRig) endpoint(b *testing.B, project flow.ProjectID, url string, kinds ...flow.EventKind) flow.Endpoint {
	b.Helper()
	var made checkout.Made
	c := call("", "", &made)
	c.Project = project
	if _, err := r.service.AddEndpoint(b.Context(), flow.Endpoint{URL: url, Events: kinds, Secrets: []string{hookSecret}}, c); err != nil {
		b.Fatal(err)
	}
	return made.Endpoint
}

func hookProject(name string, i int) flow.ProjectID {
	return flow.ProjectID(fmt.Sprintf("wsp_prj_%s%d", name, i%hookDoors))
}

// prepare keeps n sessions that wait for a transfer, as Open and Instruct leave
// them, without what those owe for later, and the money that will come for them.
func (r *hookRig) prepare(b *testing.B, project string, n int) {
	b.Helper()
	const together = 100
	list := make([]flow.Notice, n)
	atOnce(b, 1, (n+together-1)/together, func(i int) error { // many at once would only meet each other
		return r.db.Update(b.Context(), func(tx *store.Tx) error {
			for j := i * together; j < min(n, (i+1)*together); j++ {
				session, attempt, err := r.waiting(project, j)
				if err != nil {
					return err
				}
				if _, err := tx.AddSession(b.Context(), session); err != nil {
					return err
				}
				if err := tx.SaveAttempt(b.Context(), attempt); err != nil {
					return err
				}
				list[j] = credit("rail_"+string(attempt.ID), attempt.Reference, attempt.Amount, time.Now())
				list[j].Payer = flow.PaidBy{Name: "Bola Ade", BankName: "Sandbox Bank", AccountNumberMasked: "******4321"}
			}
			return nil
		})
	})
	r.ready[project] = append(r.ready[project], list...)
}

// waiting is a session that waits for a transfer.
func (r *hookRig) waiting(project string, i int) (flow.Session, flow.Attempt, error) {
	now := r.ids.Now()
	var names [3]string
	var err error
	for k, prefix := range []string{flow.PrefixSession, flow.PrefixAttempt, flow.PrefixReference} {
		if names[k], err = r.ids.New(prefix); err != nil {
			return flow.Session{}, flow.Attempt{}, err
		}
	}
	n := newSession(flow.Headless)
	s := flow.Session{
		ID: flow.SessionID(names[0]), Project: hookProject(project, i), Merchant: n.Merchant, Mode: n.Mode, Amount: n.Amount, Status: flow.SessionPending,
		AllowedMethods: n.AllowedMethods, CustomerEmail: n.CustomerEmail, Reference: "order-" + names[0], Policy: n.Policy, Sequence: 2, Version: 1,
		CreatedAt: now, ExpiresAt: now.Add(n.ExpiresIn),
	}
	a := flow.Attempt{
		ID: flow.AttemptID(names[1]), Session: s.ID, Method: flow.BankTransfer, Reference: names[2], Amount: s.Amount, Status: flow.AttemptActive,
		CreatedAt: now, ExpiresAt: now.Add(flow.AttemptLasts),
		Instructions: &flow.Instructions{
			RailReference: "rail_" + names[1], BankName: "Sandbox Bank", BankCode: "999", AccountNumber: names[1][len(names[1])-10:],
			AccountName: "Ada Stores/CHECKOUT", ExpiresAt: now.Add(flow.AttemptLasts),
		},
	}
	return s, a, nil
}

// take takes money that was prepared.
func (r *hookRig) take(project string, n int) []flow.Notice {
	list := r.ready[project][:n]
	r.ready[project] = r.ready[project][n:]
	return list
}

// settle is what the bank's message of money leads to.
func (r *hookRig) settle(ctx context.Context, n flow.Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return r.repeated(func() error { return r.service.Notice(ctx, nil, body) })
}

// repeated does something again while the store says that it is busy, as a bank
// or a merchant would, and counts that.
func (r *hookRig) repeated(do func() error) error {
	err := do()
	for try := 0; flow.CodeOf(err) == flow.CodeStorage && try < 100; try++ {
		r.busy.Add(1)
		err = do()
	}
	return err
}

// open opens a session.
func (r *hookRig) open(ctx context.Context, project string, i int) (id flow.SessionID, err error) {
	var made checkout.Made
	c := call("", "", &made)
	c.Project = hookProject(project, i)
	err = r.repeated(func() error {
		_, err := r.service.Open(ctx, newSession(flow.Headless), c)
		return err
	})
	return made.Session.ID, err
}

// expect says how many posts are to be delivered, and all waits for the last and
// until what became of each is kept.
func (r *hookRig) expect(n int) { r.left.Store(int64(n)) }

func (r *hookRig) all(b *testing.B) {
	b.Helper()
	select {
	case <-r.delivered:
	case <-time.After(time.Minute):
		b.Fatalf("after a minute %d posts are missing", r.left.Load())
	}
	r.rest(b)
}
