package checkout

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"till/flow"
	"till/rail"
)

// The bounds of verifications.
const (
	maxLookUps     = 128              // at work at once; more are refused, and one project has no more than are left
	lookUpPatience = 30 * time.Second // less than flow.VerificationLasts
	lookUpGrace    = 4 * time.Second  // what a look-up at work gets when the process ends
	sweepEvery     = time.Second
	sweepAtOnce    = 100
	forgetEvery    = time.Hour
	keepTries      = 3 // to keep how a look-up ended
	minPepper      = 16
)

// startPatience is how long a call waits for a server that is starting.
const startPatience = 2 * time.Second

// Verifications runs the commands about whose an account is and who a person is.
//
// A BVN or NIN must never be written down, and work that a task or a worker
// picks up would have to be. So the look-up runs in the process that was asked,
// right after the commit of its PENDING row, with the number in memory alone.
// What a crash cuts off ends as FAILED, at the next start or when its time is
// over, and the merchant asks again.
type Verifications struct {
	s      *Service
	rail   rail.Verifier // nil: this environment's rail offers none
	pepper []byte

	started chan struct{} // closed once Run takes look-ups on
	once    sync.Once

	mu      sync.Mutex
	ctx     context.Context              //nolint:containedctx // of the look-ups of Run, which end with it
	running map[flow.VerificationID]bool // in this process
	places  int                          // taken by look-ups, and by calls that may begin one
	of      map[flow.ProjectID]int       // the same, by project
	wg      sync.WaitGroup
}

// NewVerifications makes the commands of an environment. pepper is a secret of
// the installation that outlives the process. Run must be running for look-ups
// to be taken on.
func NewVerifications(s *Service, pepper string) (*Verifications, error) {
	if len(pepper) < minPepper {
		return nil, errors.New("make the verifications: the pepper is too short to be a secret")
	}
	v := &Verifications{s: s, pepper: []byte(pepper), started: make(chan struct{}), running: map[flow.VerificationID]bool{}, of: map[flow.ProjectID]int{}}
	v.rail, _ = s.cfg.Rail.(rail.Verifier)
	return v, nil
}

// NewVerification is what a look-up is made of; the API has checked every field.
type NewVerification struct {
	Key         string // id of the API key
	Type        flow.IdentityType
	Number      flow.IdentityNumber
	FirstName   string
	LastName    string
	DateOfBirth string // YYYY-MM-DD, or ""
	Purpose     string
}

// ResolveAccount asks the rail whose an account is; nothing is kept. Errors:
// account_not_resolved, rail_unavailable where nobody can be asked, and the rail's.
func (v *Verifications) ResolveAccount(ctx context.Context, a rail.Account) (string, error) {
	if v.rail == nil {
		return "", noVerifier()
	}
	name, err := v.rail.ResolveAccount(ctx, a)
	if errors.Is(err, rail.ErrNotFound) {
		return "", &flow.Error{Code: flow.CodeAccountNotResolved, Message: "The bank knows no account with this number. Check both.", Err: err}
	}
	return name, wrap("resolve an account", err)
}

func noVerifier() error {
	return flow.NotServed("No bank that verifies accounts or people is connected to this environment.")
}

// Begin keeps a verification as PENDING and begins its look-up. Errors:
// rate_limited while too many are at work, storage_unavailable while the
// process starts or ends, rail_unavailable where nobody can be asked,
// idempotency_key_reused.
func (v *Verifications) Begin(ctx context.Context, n NewVerification, c Call) (Answer, error) {
	if v.rail == nil {
		return Answer{}, noVerifier()
	}
	work, err := v.take(ctx, c.Project)
	if err != nil {
		return Answer{}, err
	}
	begun := false
	defer func() {
		if !begun {
			v.give(c.Project)
		}
	}()
	if c.Key != "" {
		c.Hash, c.Secret = v.sealed("call/"+c.Hash), []byte(v.sealed("answer/"+string(c.Secret)))
	}
	id, err := v.s.ids.New(flow.PrefixVerification)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	var one flow.Verification
	err = v.s.update(ctx, func(w *saving) error {
		kept, err := w.begun(c)
		if err != nil || kept != nil {
			answer = answeredBefore(kept)
			return err
		}
		one = flow.Verification{
			ID: flow.VerificationID(id), Project: c.Project, Key: n.Key, Type: n.Type, Purpose: n.Purpose, Mask: n.Number.Mask(),
			Fingerprint: n.Number.Fingerprint(v.pepper, c.Project, n.Type), Status: flow.VerificationPending, CreatedAt: w.now,
			DueAt: w.now.Add(flow.VerificationLasts),
		}
		if err := w.tx.AddVerification(w.ctx, one); err != nil {
			return err
		}
		answer, err = w.rendered(c, id, Made{Verification: one})
		return err
	})
	if err != nil {
		return v.s.calls.refused(ctx, c, wrap("begin a verification", err))
	}
	if answer.Replayed {
		return answer, nil
	}
	begun = true
	v.begin(work, one, rail.Person{
		Verification: one.ID, Type: n.Type, Number: n.Number, FirstName: n.FirstName, LastName: n.LastName, DateOfBirth: n.DateOfBirth,
	})
	return answer, nil
}

// sealed makes a request's hash one that cannot be tried out: the rest of the
// body is easily guessed, and there are only 10^11 numbers. What the answer is
// sealed with is made of the body too, and could be tried out on the answer.
func (v *Verifications) sealed(hash string) string {
	mac := hmac.New(sha256.New, v.pepper)
	_, _ = mac.Write([]byte(hash))
	return hex.EncodeToString(mac.Sum(nil))
}

// take takes a place for a look-up, and returns the context it is to run in. The
// first callers of a server may come before Run does.
func (v *Verifications) take(ctx context.Context, project flow.ProjectID) (context.Context, error) {
	wait := time.NewTimer(startPatience)
	defer wait.Stop()
	select {
	case <-v.started:
	case <-wait.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.ctx == nil:
		return nil, flow.Refuse(flow.CodeStorage, "The server is starting or closing. Try again.")
	case v.of[project] >= maxLookUps-v.places: // others find room, whatever one does
		return nil, flow.Refuse(flow.CodeRateLimited, "Too many look-ups are at work. Try again in a moment.")
	}
	v.places++
	v.of[project]++
	v.wg.Add(1) // Run waits for it from here on
	return v.ctx, nil
}

func (v *Verifications) give(project flow.ProjectID) {
	v.mu.Lock()
	v.places--
	if v.of[project]--; v.of[project] == 0 {
		delete(v.of, project)
	}
	v.mu.Unlock()
	v.wg.Done()
}

// begin looks a person up in the background, in a place that was taken.
func (v *Verifications) begin(ctx context.Context, one flow.Verification, p rail.Person) {
	v.mu.Lock()
	v.running[one.ID] = true
	v.mu.Unlock()
	go func() {
		defer v.give(one.Project)
		v.lookUp(ctx, one, p)
		v.mu.Lock()
		delete(v.running, one.ID)
		v.mu.Unlock()
	}()
}

// lookUp asks the register and keeps what it said.
func (v *Verifications) lookUp(ctx context.Context, one flow.Verification, p rail.Person) {
	began := v.s.cfg.Now()
	short, cancel := context.WithTimeout(ctx, lookUpPatience)
	defer cancel()
	matches, err := v.ask(short, p)
	now := v.s.cfg.Now()
	switch {
	case err == nil:
		one = one.Answered(matches, "", now)
	case errors.Is(err, rail.ErrNotFound):
		one = one.Answered(flow.NoMatch(p.DateOfBirth != ""), flow.ReasonNoSuchNumber, now)
	case ctx.Err() != nil:
		one = one.Failed(flow.ReasonInterrupted, now)
	default:
		one = one.Failed(reasonOf(err), now)
	}
	keep := context.WithoutCancel(ctx)
	for range keepTries {
		if err = v.end(keep, one); err == nil {
			break
		}
	}
	// The rail's own words are in no line: they may repeat the number.
	v.s.cfg.Log.LogAttrs(keep, slog.LevelInfo, "look-up", slog.String("verification", string(one.ID)), slog.String("status", string(one.Status)),
		slog.String("reason", one.Reason), slog.Int64("ms", now.Sub(began).Milliseconds()), slog.Any("error", err))
}

// ask asks the register; a panic is an error, and only its stack is logged.
func (v *Verifications) ask(ctx context.Context, p rail.Person) (m flow.Matches, err error) {
	defer func() {
		if r := recover(); r != nil {
			v.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "panic in a look-up", slog.String("verification", string(p.Verification)),
				slog.String("kind", fmt.Sprintf("%T", r)), slog.String("stack", string(debug.Stack())))
			err = errPanic
		}
	}()
	return v.rail.LookUpIdentity(ctx, p)
}

// reasonOf is why a look-up failed, in a word of ours.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, rail.ErrRejected):
		return flow.ReasonRailRejected
	case errors.Is(err, rail.ErrUnavailable):
		return flow.ReasonRailAway
	case errors.Is(err, rail.ErrUnknown), errors.Is(err, context.DeadlineExceeded):
		return flow.ReasonRailTimeout
	}
	return flow.ReasonInternalFault
}

// end keeps how a look-up ended, once, with its audit row and its event.
func (v *Verifications) end(ctx context.Context, one flow.Verification) error {
	return v.s.update(ctx, func(w *saving) error {
		ended, err := w.tx.EndVerification(w.ctx, one)
		if err != nil || !ended {
			return err
		}
		return w.tellAlone(one.Project, one.EventKind(), string(one.ID), v.Record(one))
	})
}

// Verification reads a verification of a project; another project's does not
// exist, nor one that is to be forgotten.
func (v *Verifications) Verification(ctx context.Context, project flow.ProjectID, id flow.VerificationID) (flow.Verification, error) {
	one, err := v.s.cfg.DB.Verification(ctx, id)
	if notFound(err) || err == nil && (one.Project != project || !v.s.cfg.Now().Before(one.Expires())) {
		return flow.Verification{}, flow.Refuse(flow.CodeNotFound, "There is no such verification.")
	}
	return one, err
}

// Record is a verification as its merchant reads it.
func (v *Verifications) Record(one flow.Verification) flow.VerificationRecord {
	return flow.RecordVerification(one, v.s.cfg.Around)
}

// Run takes look-ups on until ctx ends, ends those that nobody hears of any
// more, and forgets old ones. It returns when none is at work.
func (v *Verifications) Run(ctx context.Context) error {
	if v.s.cfg.Alone {
		if err := v.s.update(ctx, func(w *saving) error { return w.tx.HurryVerifications(w.ctx, w.now) }); err != nil {
			return fmt.Errorf("take up what was left: %w", err)
		}
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	v.mu.Lock()
	v.ctx = work
	v.mu.Unlock()
	v.once.Do(func() { close(v.started) })
	ticker := time.NewTicker(max(v.s.cfg.Look, sweepEvery))
	defer ticker.Stop()
	var forgot time.Time
	away := false
	for ctx.Err() == nil {
		err := v.sweep(ctx)
		if now := v.s.cfg.Now(); err == nil && now.Sub(forgot) >= forgetEvery {
			if err = v.forget(ctx, now); err == nil {
				forgot = now
			}
		}
		if away != (err != nil) && ctx.Err() == nil { // one line for each change
			if away = err != nil; away {
				v.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "the verifications are not tidied", slog.String("error", err.Error()))
			} else {
				v.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the verifications are tidied again")
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	v.mu.Lock()
	v.ctx = nil
	v.mu.Unlock()
	hurry := time.AfterFunc(lookUpGrace, cancel)
	defer hurry.Stop()
	v.wg.Wait()
	return nil
}

// sweep ends what is overdue and not at work here.
func (v *Verifications) sweep(ctx context.Context) error {
	now := v.s.cfg.Now()
	overdue, err := v.s.cfg.DB.OverdueVerifications(ctx, now, sweepAtOnce)
	for _, one := range overdue {
		v.mu.Lock()
		here := v.running[one.ID]
		v.mu.Unlock()
		if here { // a clock that was moved does not end it
			continue
		}
		if err := v.end(ctx, one.Failed(flow.ReasonInterrupted, now)); err != nil {
			return err
		}
	}
	return err
}

// forget drops what has been kept long enough.
func (v *Verifications) forget(ctx context.Context, now time.Time) error {
	return v.s.update(ctx, func(w *saving) error {
		_, err := w.tx.ForgetVerifications(w.ctx, now.Add(-flow.VerificationKept))
		return err
	})
}
