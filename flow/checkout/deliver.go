package checkout

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/flow/planted"
	"till/flow/store"
)

// fresh is how long what is known of an endpoint is believed: what waited longer
// is not sent before it is looked at again.
const fresh = time.Second

// takesPosts says whether a delivery that is handed over now would be taken.
// Where not, its lane looks for it once there is room.
func (k *worker) takesPosts(d flow.Delivery) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if k.posts.roomFor(d.Endpoint, d.Awaited(), k.s.cfg.Now()) > 0 {
		return true
	}
	k.posts.lane(d.Endpoint).more = true
	return false
}

// post sends deliveries now, or as soon as there is a place.
func (k *worker) post(list ...queued) {
	k.mu.Lock()
	now := k.s.cfg.Now()
	var back []queued
	for _, d := range list {
		switch {
		case (k.posts.ids[d.ID] > 0 || k.posts.over[d.ID]) && !d.ByHand(): // it is on its way already, or was taken; its lease runs out
		case k.closed || !k.posts.bears(d.Delivery, now):
			back = append(back, d)
		default:
			k.posts.add(d)
		}
	}
	k.fill()
	k.mu.Unlock()
	k.giveBack(back)
}

// sending is a delivery at work.
type sending struct {
	queued

	sick     bool // it takes one of the places of endpoints whose last try failed
	unproven bool // and one of those that took nothing yet
	turned   int  // how often its lane had been begun anew by then
}

// fill starts what can start. The caller holds the lock.
func (k *worker) fill() {
	for {
		d, ok := k.begin()
		if !ok {
			return
		}
		k.wg.Go(func() { k.send(d) })
	}
}

// begin takes what is sent next; false where there is nothing, or no place. The
// caller holds the lock.
func (k *worker) begin() (sending, bool) {
	if k.closed || k.postCtx.Err() != nil {
		return sending{}, false
	}
	p, now := &k.posts, k.s.cfg.Now()
	var late []queued
	d, ok := p.next(now)
	for ok && now.After(d.until) {
		late = append(late, d)
		d, ok = p.next(now)
	}
	k.bringBack(late)
	for _, l := range p.paced {
		time.AfterFunc(l.gap(), func() { k.letIn(l) })
	}
	p.paced = nil
	if !ok {
		return sending{}, false
	}
	l := p.lanes[d.Endpoint]
	p.begins(l, d.Awaited())
	p.ids[d.ID]++
	s := sending{queued: d, sick: l.sick && !d.Awaited(), unproven: !l.proven && !d.Awaited(), turned: l.turned}
	if s.sick {
		p.sick++
	}
	if s.unproven {
		p.unproven++
	}
	return s, true
}

// bringBack gives deliveries back that waited too long to be begun. They do not pass for
// begun, for what is claimed anew meanwhile would be dropped for that, and wait until its
// lease runs out. The caller holds the lock.
func (k *worker) bringBack(late []queued) {
	if len(late) == 0 {
		return
	}
	k.posts.keeps += len(late)
	k.wg.Go(func() {
		k.giveBack(late)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.posts.keeps -= len(late)
	})
}

// letIn lets a lane go on that kept to its pace.
func (k *worker) letIn(l *lane) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.timed = false
	k.posts.turn(l)
	k.fill()
}

// send makes one try to deliver, and then others as long as there are any: a
// stack that has grown to the size of a post serves them all.
func (k *worker) send(d sending) {
	for more := true; more; {
		o, tried := k.try(d.queued)
		k.mu.Lock()
		l := k.posts.lanes[d.Endpoint]
		if tried && !o.OK {
			l.unkept++
		}
		k.mu.Unlock()
		k.outcomes <- outcome{Outcome: o, tried: tried}
		k.mu.Lock()
		k.sent(d, l, o, tried)
		d, more = k.begin()
		k.fill()
		k.mu.Unlock()
	}
}

// sent takes in what became of a try, which gives its place up. What came of it
// is only learnt where its endpoint was not begun anew meanwhile. The caller
// holds the lock.
func (k *worker) sent(d sending, l *lane, o store.Outcome, tried bool) {
	p := &k.posts
	p.ends(l, d.Awaited())
	full := d.sick && p.sick >= maxToSick || d.unproven && p.unproven >= maxToUnproven
	if d.sick {
		p.sick--
	}
	if d.unproven {
		p.unproven--
	}
	now := k.s.cfg.Now()
	if tried && !o.Ours && o.Reason != reasonShutdown && l.turned == d.turned {
		l.learns(o.Verdict, now)
	}
	if o.Unsent {
		l.shut = o.At.Add(unsendableAgain)
	}
	p.turn(l)
	if full { // others of them may have waited for this place
		p.rested(now)
	}
	if l.more && (d.Awaited() || l.room(now) > l.most()/2) {
		l.more = false
		k.wake()
	}
}

// reasonShutdown is why a try failed that the end of the program cut short.
const reasonShutdown = "shutdown"

// try posts a delivery once; false where it is not to be sent now, or not by us.
func (k *worker) try(d queued) (store.Outcome, bool) {
	s := k.s
	if !k.current(&d) {
		return store.Outcome{Delivery: d.Delivery}, false
	}
	if planted.NewBody {
		d.Body = append(bytes.TrimSuffix(d.Body, []byte("}")), fmt.Sprintf(`,"sentAt":%q}`, flow.Stamp(s.cfg.Now()))...)
	}
	ctx := flow.WithTrace(k.postCtx, d.Step())
	crashpoint.At(crashpoint.HookPost)
	v, wait, again := s.posted(ctx, d.Delivery)
	crashpoint.At(crashpoint.HookPosted)
	now := s.cfg.Now()
	v.Body = keptOf(v.Body)
	if v.Unsent && !d.ByHand() { // who asked for a try is told what came of it
		return k.unsendable(ctx, d.Delivery, v, now), false
	}
	o := store.Outcome{Delivery: d.Delivery, Verdict: v, State: flow.DeliveryDelivered, Spent: true, At: now}
	switch {
	case v.OK:
	case k.postCtx.Err() != nil && !v.Gone:
		o.Reason, o.State, o.Next, o.Spent = reasonShutdown, flow.DeliveryPending, now, false
	case d.Probe && d.Attempts > 0: // beside its schedule: it goes behind the others, and waits for no longer than the next probe may
		o.State, o.Next, o.Spent = flow.DeliveryHeld, now.Add(min(wait, flow.LongestProbe)), false
	case d.Probe: // the first try is one of its schedule
		o.State, o.Next = flow.DeliveryHeld, now.Add(wait)
	case !again:
		o.State = flow.DeliveryDead
	default:
		o.State, o.Next = flow.DeliveryPending, now.Add(wait)
	}
	level := slog.LevelInfo
	if o.State == flow.DeliveryDead || !v.OK && o.Reason != reasonShutdown && k.worthTelling(d.Endpoint, now) {
		level = slog.LevelWarn
	}
	s.cfg.Log.LogAttrs(ctx, level, "delivery", slog.String("delivery", d.ID), slog.String("event", string(d.Event)), slog.String("session", string(d.Session)),
		slog.String("endpoint", string(d.Endpoint)), slog.String("state", o.State), slog.Int("status", v.Status), slog.String("reason", o.Reason),
		slog.Int("attempt", d.Attempts+1), slog.String("cause", d.Cause), slog.Bool("probe", d.Probe), slog.Int64("ms", v.Duration.Milliseconds()))
	s.counts.tried(o)
	s.cfg.Meter.Delivery(o.Reason)
	return o, true
}

// keptAnswer is how much of an endpoint's answer is kept.
const keptAnswer = 4 << 10

// keptOf is what is kept of an answer. Whether that may be is judged with what
// follows: of a card number that is cut, too much would be left.
func keptOf(answer []byte) []byte {
	whole := []byte(flow.Keepable(string(answer)))
	return whole[:min(len(whole), keptAnswer)]
}

// unsendableAgain is how long what could not be sent waits, and how long nothing more
// is taken for its endpoint: not long, for it may be mended by a restart with the right
// keys, and not for nothing.
const unsendableAgain = time.Minute

// unsendable puts a delivery off that nothing was sent of: this process cannot open
// the endpoint's secret, say. That is no try: it spends none of its schedule and
// leaves no record, and its endpoint is not to blame.
func (k *worker) unsendable(ctx context.Context, d flow.Delivery, v flow.Verdict, now time.Time) store.Outcome {
	if k.worthTelling(d.Endpoint, now) {
		k.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "a delivery cannot be sent through a fault of our own", slog.String("delivery", d.ID),
			slog.String("event", string(d.Event)), slog.String("session", string(d.Session)), slog.String("endpoint", string(d.Endpoint)), slog.Int("secrets", len(d.Secrets)))
	}
	k.s.cfg.Meter.Delivery(v.Reason)
	return store.Outcome{Delivery: d, Verdict: v, At: now}
}

// worthTelling says whether a failed try is told of where only warnings are: of
// each endpoint one in a while. All of them would be as many as its merchant owes
// it, and drive out of the log what else it holds.
func (k *worker) worthTelling(id flow.EndpointID, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.posts.lanes[id]
	if l == nil || now.Sub(l.told).Abs() < tellAgain {
		return false
	}
	l.told = now
	return true
}

// current says whether a delivery may still be sent as it stands in memory, and
// brings what is known of its endpoint up to date: another process may have
// changed that while it waited.
func (k *worker) current(d *queued) bool {
	now := k.s.cfg.Now()
	if now.After(d.until) {
		return false
	}
	if now.Sub(d.read).Abs() < fresh {
		return true
	}
	k.mu.Lock()
	l := k.posts.lanes[d.Endpoint]
	to, read := l.known, l.read
	k.mu.Unlock()
	if now.Sub(read).Abs() >= fresh {
		var err error
		if to, err = k.s.cfg.DB.EndpointByID(k.postCtx, d.Endpoint); err != nil {
			return false
		}
		k.mu.Lock()
		l.known, l.read, l.pace = to, now, to.MaxPerSecond
		k.mu.Unlock()
	}
	d.URL, d.Secrets = to.URL, to.Signing(now)
	return to.Takes(d.Delivery) == flow.DeliveryPending
}

// posted is one post, and when there is to be another. A panic in it is a failed
// try that is made again after a while.
func (s *Service) posted(ctx context.Context, d flow.Delivery) (v flow.Verdict, wait time.Duration, again bool) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "panic in a delivery", slog.String("delivery", d.ID), slog.String("event", string(d.Event)),
				slog.String("session", string(d.Session)), slog.String("stack", fmt.Sprintf("%v\n%s", r, debug.Stack())))
			v, wait, again = flow.Verdict{Reason: reasonPanic, Ours: true}, time.Hour, d.Attempts < maxTries
		}
	}()
	if v = s.cfg.Post(ctx, d); !v.OK {
		planned := d
		if d.Probe && d.Attempts > 0 { // beside the schedule: it waits as long as after its last try
			planned.Attempts--
		}
		wait, again = s.cfg.Next(planned, v)
	}
	return v, wait, again
}

// reasonPanic is why a try failed through a fault of our own.
const reasonPanic = "panic"

// forgetEndpoint takes what waits in memory for an endpoint back: it is not to be
// sent any more as it stands there. What is on its way is not called back. With
// anew it is also forgotten how the endpoint did.
func (k *worker) forgetEndpoint(id flow.EndpointID, anew bool) {
	k.mu.Lock()
	back := k.posts.drop(id)
	if l := k.posts.lanes[id]; l != nil && anew {
		l.anew()
	}
	k.mu.Unlock()
	k.giveBack(back)
}

// giveBack makes deliveries that were taken and are not tried due for anybody.
func (k *worker) giveBack(list []queued) {
	if len(list) == 0 {
		return
	}
	leases := map[string][]string{}
	for _, d := range list {
		leases[d.Lease] = append(leases[d.Lease], d.ID)
	}
	ctx := rowwise(context.WithoutCancel(k.ctx))
	err := k.s.update(ctx, func(w *saving) error {
		for lease, ids := range leases {
			if err := w.tx.GiveBackDeliveries(ctx, lease, ids, w.now); err != nil {
				return err
			}
		}
		w.tx.After(k.wake)
		return nil
	})
	if err != nil { // their leases run out
		k.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "give deliveries back", slog.Int("deliveries", len(list)), slog.String("error", err.Error()))
	}
}

// rowwise is a context for updates of deliveries: in no hurry, and on PostgreSQL
// without regard to what they only read, so that they never send a payment's
// transaction back to its start.
func rowwise(ctx context.Context) context.Context { return store.Rowwise(store.Unhurried(ctx)) }
