package checkout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// The bounds of the shell.
const (
	// lease is how long a process may take over one piece of work.
	lease = time.Minute
	// drain is how long posts may go on when the program ends: what a merchant
	// has not answered by then is sent to them again.
	drain = 5 * time.Second
	// checkPatience is how long the bank may take over the questions about one
	// session; what it said so far is taken in, and time is left to say so.
	checkPatience = 30 * time.Second
	// cancelPatience is how long it may before a session is cancelled without its
	// answer: whoever cancels waits for it.
	cancelPatience = 3 * time.Second
	// codeTries is how often another entry code is tried when one is taken.
	codeTries = 5
)

// Service runs the commands of one environment.
type Service struct {
	cfg      Config
	bank     rail.Rail // cfg's, as what it says may be kept
	ids      flow.IDs
	token    string // names this process in leases
	starting map[flow.AttemptID]*starting
	mu       sync.Mutex
	asked    map[flow.SessionID]time.Time // when a bank was last asked on a merchant's word
	asking   map[flow.SessionID]asking    // what a bank last answered on a payer's word
	calls    *calls
	worker   *worker
	ticks    *ticking
	counts   counts
	pace     pacer
	days     statements
	replies  replies
	redone   atomic.Int64 // counts deliveries that were asked for once more
}

// New makes a Service. Run must be running for anything owed to be done.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Rail == nil || c.Now == nil || c.Rand == nil || c.Words == nil {
		return nil, errors.New("make the checkout service: a part is missing")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Meter == nil {
		c.Meter = unmetered{}
	}
	c.Drain = cmp.Or(c.Drain, drain)
	if c.Look <= 0 {
		c.Look = idle
	}
	if c.Real == nil {
		c.Real = c.Now
	}
	if c.Board == nil {
		c.Board = NewBoard(c.DB, c.Real, c.Now, c.Log)
	}
	s := &Service{
		cfg: c, bank: discreet{c.Rail}, ids: flow.IDs{Now: c.Now, Rand: c.Rand}, asked: map[flow.SessionID]time.Time{}, asking: map[flow.SessionID]asking{},
		starting: map[flow.AttemptID]*starting{}, calls: newCalls(c.DB, c.Now, c.Rand),
	}
	if link := c.Around.CheckoutURL; link != nil {
		s.cfg.Around.CheckoutURL = func(session flow.Session) string {
			session.Number = c.Board.Current(session.Number)
			return link(session)
		}
	}
	s.calls.look = c.Look
	var err error
	if s.token, err = s.ids.New("proc_"); err != nil {
		return nil, err
	}
	s.worker, s.ticks = newWorker(s), newTicking()
	return s, nil
}

// Run does what is owed until ctx ends.
func (s *Service) Run(ctx context.Context) error { return s.worker.run(ctx) }

// Now is what time it is in the service's environment.
func (s *Service) Now() time.Time { return s.cfg.Now() }

// Reader reads what is kept.
func (s *Service) Reader() store.Reader { return s.cfg.DB.Reader }

// saving is one transaction of a command: what it writes, and what is handed to
// the worker once it is committed.
type saving struct {
	s   *Service
	ctx context.Context //nolint:containedctx // lives as long as the transaction it belongs to
	tx  *store.Tx
	now time.Time

	read     *View                            // what was read of a session before its change is saved; nil: nothing
	watching map[flow.SessionID][]flow.ChatID // by whom sessions are observed, as far as it was read
	told     int                              // events that were made
}

// telling is when an event is made. No two of a transaction have the same time: what
// belongs to no session has no other order, and a payout that was sent and came back
// may be heard of at once.
func (w *saving) telling() time.Time {
	at := w.now.Add(time.Duration(w.told) * time.Millisecond)
	w.told++
	return at
}

// watchers are the chats that observe a session.
func (w *saving) watchers(session flow.SessionID) ([]flow.ChatID, error) {
	if ids, known := w.watching[session]; known {
		return ids, nil
	}
	rows, err := w.tx.Watchers(w.ctx, session)
	if err != nil {
		return nil, err
	}
	var ids []flow.ChatID
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	if w.watching == nil {
		w.watching = map[flow.SessionID][]flow.ChatID{}
	}
	w.watching[session] = ids
	return ids, nil
}

// watch lets a chat observe a session.
func (w *saving) watch(session flow.SessionID, chat flow.ChatID) error {
	delete(w.watching, session)
	return w.tx.Watch(w.ctx, session, chat)
}

// update runs a command in a transaction.
func (s *Service) update(ctx context.Context, fn func(*saving) error) error {
	return s.cfg.DB.Update(ctx, func(tx *store.Tx) error {
		return fn(&saving{s: s, ctx: ctx, tx: tx, now: s.cfg.Now()})
	})
}

// owe keeps that work is owed. What is due now is handed to the worker by the
// commit; what is due later is found when its time comes.
func (w *saving) owe(kind flow.TaskKind, subject string, due time.Time) error {
	return w.oweWork(flow.Task{Kind: kind, Subject: subject, Due: due}, false)
}

// oweWork is owe; fresh says that the work cannot have been begun before,
// whatever this process or another one did.
func (w *saving) oweWork(task flow.Task, fresh bool) error {
	if task.Due.After(w.now) || !w.s.worker.takes() {
		w.tx.After(func() { w.s.worker.due(task.Due) })
		_, err := w.tx.AddTask(w.ctx, task, "", time.Time{})
		return err
	}
	work, err := w.tx.AddTask(w.ctx, task, w.s.token, w.now.Add(lease))
	if err != nil {
		return err
	}
	work.Fresh = fresh
	job := job{Work: work, ends: w.now.Add(lease), trace: flow.TraceOf(w.ctx)}
	if work.Sole && task.Kind == flow.TaskSay {
		if job.owed, err = outbox(w.ctx, w.tx.Reader, flow.ChatID(task.Subject)); err != nil {
			return err
		}
	}
	w.tx.After(func() { w.s.worker.submit(job) })
	return nil
}

// log writes a line about a session into every chat that watches it, or into
// the session's own stream while none does.
func (w *saving) log(session flow.SessionID, kind string, data any) error {
	chats, err := w.watchers(session)
	if err != nil {
		return err
	}
	streams := []string{string(session)}
	if len(chats) > 0 {
		streams = streams[:0]
	}
	for _, id := range chats {
		streams = append(streams, string(id))
	}
	return w.write(session, kind, data, streams...)
}

// write writes a line about a session into streams.
func (w *saving) write(session flow.SessionID, kind string, data any, streams ...string) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	for _, stream := range streams {
		if err := w.tx.Write(w.ctx, store.Line{Stream: stream, At: w.now, Kind: kind, Session: session, Data: text}); err != nil {
			return err
		}
	}
	return nil
}

// view reads a session with all that belongs to it.
func (s *Service) view(ctx context.Context, r store.Reader, session flow.Session) (View, error) {
	v, err := s.offered(ctx, r, session)
	if err != nil {
		return View{}, err
	}
	v.Payments, err = r.Payments(ctx, session.ID)
	return v, err
}

// offered reads a session with what its record shows: not its payments.
func (s *Service) offered(ctx context.Context, r store.Reader, session flow.Session) (View, error) {
	attempts, err := r.Attempts(ctx, session.ID)
	if err != nil {
		return View{}, err
	}
	return View{Session: session, Attempts: attempts, Offers: flow.Offers(session, attempts, s.served(session.Project), s.cfg.Now())}, nil
}

// served are the methods that a project's sessions can use now.
func (s *Service) served(project flow.ProjectID) []flow.Method {
	return s.cfg.Board.Served(s.cfg.Rail.Methods(), project)
}

// Stopped says whether nothing new is taken of a project: an operator stopped it, or
// suspended its merchant.
func (s *Service) Stopped(project flow.ProjectID) bool { return s.cfg.Board.Barred(project) }

// admitted refuses what is asked for a merchant who is stopped or suspended. What is paid is kept all
// the same.
func (s *Service) admitted(project flow.ProjectID) error {
	if !s.Stopped(project) {
		return nil
	}
	return flow.Refuse(flow.CodeProjectSuspended, "This project is stopped. Money that comes for it is kept. Ask the operator of this service.")
}

// save keeps a change whole: money, attempts, events, the session, then what
// its chats are told.
func (w *saving) save(c flow.Change, session flow.Session) error {
	if err := w.whole(c, session); err != nil {
		return err
	}
	return w.overtake(c)
}

// whole keeps a change as it is.
func (w *saving) whole(c flow.Change, session flow.Session) error {
	if c.Session != nil {
		w.countSession(session.Status, c.Session.Status)
		session = *c.Session
	}
	if c.Payment != nil {
		w.countPayment(*c.Payment)
		if err := w.tx.AddPayment(w.ctx, *c.Payment, c.Postings); err != nil {
			return err
		}
		if err := w.returnLater(*c.Payment); err != nil {
			return err
		}
	}
	if c.TakenBack != nil {
		if err := w.tx.SaveTakenBack(w.ctx, *c.TakenBack); err != nil {
			return err
		}
	}
	if c.Refund != nil {
		if err := w.tx.SaveRefund(w.ctx, *c.Refund); err != nil {
			return err
		}
	}
	if c.Settlement != nil {
		if err := w.tx.SaveSettlement(w.ctx, *c.Settlement); err != nil {
			return err
		}
	}
	if err := w.decide(c); err != nil {
		return err
	}
	for _, e := range c.Entries {
		if err := w.tx.Post(w.ctx, e); err != nil {
			return err
		}
	}
	for _, a := range c.Attempts {
		if err := w.tx.SaveAttempt(w.ctx, a); err != nil {
			return err
		}
	}
	if session.ID == "" {
		if err := w.alone(c); err != nil {
			return err
		}
		return w.sendBack(c.Returns)
	}
	look := sync.OnceValues(func() (View, error) { return w.after(c, session) })
	for _, f := range c.Facts {
		session.Sequence++
		if err := w.tell(session, f, look); err != nil {
			return err
		}
	}
	if c.Session != nil || len(c.Facts) > 0 {
		if err := w.tx.SaveSession(w.ctx, &session); err != nil {
			return err
		}
	}
	if err := w.sendBack(c.Returns); err != nil {
		return err
	}
	for _, n := range c.News {
		if err := w.spread(session.ID, n); err != nil {
			return err
		}
	}
	return nil
}

// messageID is what the network knows a message by: decided with it, before the
// first try, and different for each place in each chat. The moment is in it too:
// a store that is restored counts its places a second time, and a phone shows no
// message under an id that it has. It has the shape that WhatsApp's own clients
// use: 3EB0 and eighteen hex digits.
func messageID(chat flow.ChatID, seq int64, bubble int, at time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d/%d", chat, seq, bubble, at.UnixMilli()))
	return "3EB0" + strings.ToUpper(hex.EncodeToString(sum[:9]))
}

// Record is a session as its merchant reads it: of one who is stopped the methods
// say that, for no bank is the reason.
func (s *Service) Record(v View) flow.SessionRecord {
	offers := v.Offers
	if s.cfg.Board.Barred(v.Session.Project) {
		offers = slices.Clone(offers)
		for i := range offers {
			if offers[i].Reason == flow.RailDown {
				offers[i].Reason = string(flow.CodeProjectSuspended)
			}
		}
	}
	return flow.RecordSession(v.Session, offers, s.cfg.Around)
}

// RecordCharge is a session's charge as its merchant reads it.
func (s *Service) RecordCharge(v View) flow.ChargeRecord {
	return flow.RecordCharge(v.Session, v.Attempts, v.Payments, s.cfg.Around)
}
