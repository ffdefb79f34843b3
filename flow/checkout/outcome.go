package checkout

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"till/flow"
	"till/flow/store"
)

// The bounds of what is kept of tries.
const (
	maxOutcomes = 2048 // that wait to be kept; then nothing more is sent
	keepAtOnce  = 512
	holdAtOnce  = 2000
	// From firstKeepAgain on, and up to maxKeepAgain, a store that refused is left alone.
	firstKeepAgain = 20 * time.Millisecond
	maxKeepAgain   = time.Second
	keepLast       = 3 // tries to keep what came of the last posts, once the program ends
	keepAlone      = 3 // tries to keep one that cannot be kept, and not for want of a store
)

// outcome is what became of a delivery that was taken; tried is false for one
// that goes back as it was, due at once or, where nothing could be sent, after a while.
type outcome struct {
	store.Outcome

	tried bool
}

// keepOutcomes keeps what became of tries, all that there is in one transaction:
// how long the last one took is how long the next ones gather. What the store
// refuses is kept later, and nothing is lost.
func (k *worker) keepOutcomes(ctx context.Context) {
	batch := make([]outcome, 0, keepAtOnce) // the same each time: it is large, and most often few are in it
	for first := range k.outcomes {
		batch = append(batch, first)
		for len(batch) < keepAtOnce && len(k.outcomes) > 0 {
			batch = append(batch, <-k.outcomes)
		}
		k.keep(ctx, batch)
		clear(batch) // of their bodies
		batch = batch[:0]
	}
}

// keep keeps a batch of outcomes, and lets go of them in memory.
func (k *worker) keep(ctx context.Context, batch []outcome) {
	k.keepParts(ctx, batch)
	k.mu.Lock()
	p := &k.posts
	p.keeps -= len(batch)
	again := false
	for _, o := range batch {
		if p.ids[o.ID]--; p.ids[o.ID] <= 0 {
			delete(p.ids, o.ID)
		}
		if k.claiming && o.State == flow.DeliveryDelivered {
			p.over[o.ID] = true
		}
		if l := p.lanes[o.Endpoint]; l != nil && o.tried && !o.OK {
			l.unkept--
			p.turn(l)
		}
		again = again || o.State != flow.DeliveryDelivered
	}
	k.fill()
	k.mu.Unlock()
	if again {
		k.wake()
	}
}

// keepParts keeps a batch of outcomes, whatever it takes while the program runs
// and it is the store that is at fault. Otherwise something among them cannot be
// kept, which must not keep the others from it: they are parted until it is alone,
// and that is given up. Its lease runs out then.
func (k *worker) keepParts(ctx context.Context, batch []outcome) {
	wait := firstKeepAgain
	last, alone := keepLast, keepAlone
	for last > 0 {
		err := k.keepOnce(batch)
		if err == nil {
			return
		}
		k.s.counts.refused.Add(1)
		k.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "keep what became of deliveries", slog.Int("deliveries", len(batch)), slog.String("error", err.Error()))
		if flow.CodeOf(err) != flow.CodeStorage {
			if half := len(batch) / 2; half > 0 {
				k.keepParts(ctx, batch[:half])
				k.keepParts(ctx, batch[half:])
				return
			}
			if alone--; alone == 0 {
				k.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "what became of a delivery is given up", slog.String("delivery", batch[0].ID), slog.String("event", string(batch[0].Event)),
					slog.String("session", string(batch[0].Session)), slog.String("error", err.Error()))
				return
			}
		}
		if ctx.Err() != nil {
			last--
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		wait = min(2*wait, maxKeepAgain)
	}
}

// keepOnce keeps a batch of outcomes, and what follows for their endpoints.
func (k *worker) keepOnce(batch []outcome) error {
	type given struct {
		lease string
		later bool // not due at once
	}
	var tries []store.Outcome
	back := map[given][]string{}
	for _, o := range batch {
		if o.tried {
			tries = append(tries, o.Outcome)
		} else {
			to := given{o.Lease, o.Unsent}
			back[to] = append(back[to], o.ID)
		}
	}
	judged, answered := judge(tries)
	ctx := rowwise(context.WithoutCancel(k.ctx))
	return k.s.update(ctx, func(w *saving) error {
		for to, ids := range back {
			due := w.now
			if to.later {
				due = due.Add(unsendableAgain)
			}
			if err := w.tx.GiveBackDeliveries(ctx, to.lease, ids, due); err != nil {
				return err
			}
		}
		if err := w.tx.EndTries(ctx, slices.Clone(tries)); err != nil {
			return err
		}
		if err := w.tx.EndpointsAnswered(ctx, answered, w.now); err != nil {
			return err
		}
		for _, j := range judged {
			if err := w.ailing(ctx, j); err != nil {
				return err
			}
		}
		return nil
	})
}

// ailing is what a batch says of an endpoint that failed.
type ailing struct {
	store.Failures // until the end of the batch; what it refused is none that holds it back

	gone    bool
	probed  bool          // one of them was a probe
	refused bool          // that was answered with a no
	spare   time.Duration // the longest that it asked for
}

// judge reads the outcomes of a batch, in their order, as what they say of
// endpoints. Tries by hand and faults of our own do not speak against one.
func judge(tries []store.Outcome) (failed []ailing, answered []store.Place) {
	by := map[store.Place]*ailing{}
	well := map[store.Place]bool{}
	for _, o := range tries {
		at := store.Place{Endpoint: o.Endpoint, URL: o.Delivery.URL}
		a := by[at]
		if o.OK {
			well[at] = true
			if a != nil && !a.gone { // a 410 stands, whatever is answered beside it
				delete(by, at)
			}
			continue
		}
		if o.Reason == reasonShutdown || o.Ours || o.ByHand() && !o.Gone {
			continue
		}
		if a == nil {
			a = &ailing{Failures: store.Failures{Place: at, Since: o.At, Fresh: o.Attempts == 0 && !o.Probe}}
			by[at] = a
		}
		refused := o.Refused()
		if !refused {
			a.Count++
		}
		a.gone = a.gone || o.Gone
		a.probed = a.probed || o.Probe
		a.refused = a.refused || o.Probe && refused
		a.spare = max(a.spare, o.RetryAfter)
	}
	for at := range well {
		answered = append(answered, at)
	}
	for _, a := range by {
		failed = append(failed, *a)
	}
	order := func(a, b store.Place) int { // so that two processes do not wait for each other
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.URL, b.URL))
	}
	slices.SortFunc(answered, order)
	slices.SortFunc(failed, func(a, b ailing) int { return order(a.Place, b.Place) })
	return failed, answered
}

// maxSpare is the longest that an endpoint may ask to be left alone.
const maxSpare = 24 * time.Hour

// ailing keeps that an endpoint failed, and holds it back or disables it where
// that is due.
func (w *saving) ailing(ctx context.Context, a ailing) error {
	e, err := w.tx.EndpointFailed(ctx, a.Failures, w.now)
	if err != nil || e.ID == "" { // it was moved meanwhile: that says nothing of where it is now
		return err
	}
	disable, open := e.Ails(w.now, a.gone)
	switch {
	case disable != "":
		return w.disable(ctx, e, disable)
	case a.refused && a.Count == 0:
		return w.tx.EndpointRefused(ctx, e.ID, w.now)
	case open, !e.OpenSince.IsZero() && a.probed:
		probes := e.Probes
		if a.probed {
			probes++
		}
		at := w.now.Add(max(flow.ProbeIn(probes), min(a.spare, maxSpare)))
		if err := w.tx.OpenEndpoint(ctx, e.ID, w.now, at, a.probed); err != nil {
			return err
		}
		more, err := w.bury(ctx, e)
		if err != nil {
			return err
		}
		w.tx.After(func() {
			if more {
				w.s.worker.buryRest(e.ID)
			}
			w.s.counts.opened(open)
			w.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "endpoint held back", slog.String("endpoint", string(e.ID)), slog.Int("failures", e.Failures),
				slog.Time("failing_since", e.FailingSince), slog.Int("probes", probes), slog.Time("next_probe", at))
		})
	case !e.OpenSince.IsZero() && a.spare > 0: // said by what was on its way when it was held back
		if err := w.tx.SpareEndpoint(ctx, e.ID, w.now.Add(min(a.spare, maxSpare))); err != nil {
			return err
		}
	case e.Takes(flow.Delivery{}) == flow.DeliveryPending:
		return nil
	}
	return w.holdBack(ctx, e.ID)
}

// holdBack holds what an endpoint is owed. Where that is more than is done at
// once, whoever claims the rest holds it.
func (w *saving) holdBack(ctx context.Context, id flow.EndpointID) error {
	n, err := w.tx.HoldDeliveries(ctx, id, w.now, holdAtOnce)
	if err == nil && n > 0 {
		w.tx.After(func() {
			w.s.counts.held.Add(int64(n))
			w.s.worker.forgetEndpoint(id, false)
		})
	}
	return err
}

// bury ends what an endpoint that does not answer was held for longer than a
// schedule lasts, and says whether there may be more of it. That began when it was held
// back: what is older because it was disabled before is to be tried first.
func (w *saving) bury(ctx context.Context, e flow.Endpoint) (more bool, err error) {
	made := w.now.Add(-flow.HeldFor)
	if e.OpenSince.IsZero() || e.OpenSince.After(made) {
		return false, nil
	}
	n, err := w.tx.BuryHeld(ctx, e.ID, made, w.now, releaseAtOnce)
	if err != nil || n == 0 {
		return false, err
	}
	w.tx.After(func() {
		w.s.counts.dead.Add(int64(n))
		w.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "deliveries given up", slog.String("endpoint", string(e.ID)), slog.Int("deliveries", n))
	})
	return n == releaseAtOnce, nil
}

// buryRest ends the rest of it, part by part and beside all else: to look at the endpoint
// sooner would probe it sooner than it may be. What the end of the process leaves is
// found when it is probed next.
func (k *worker) buryRest(id flow.EndpointID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	ctx := rowwise(k.ctx)
	k.wg.Go(func() {
		err := k.s.inParts(ctx, func(w *saving) (more bool, err error) {
			e, err := w.tx.EndpointByID(ctx, id)
			if err != nil {
				return false, err
			}
			return w.bury(ctx, e)
		})
		if err != nil && ctx.Err() == nil {
			k.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "give deliveries up", slog.String("endpoint", string(id)), slog.String("error", err.Error()))
		}
	})
}

// disable ends an endpoint, holds what it is owed and tells its project's other
// endpoints.
func (w *saving) disable(ctx context.Context, e flow.Endpoint, reason string) error {
	was, err := w.tx.DisableEndpoint(ctx, e.ID, reason, w.now)
	if err != nil || !was {
		return err
	}
	w.tx.After(func() {
		w.s.counts.disabled.Add(1)
		w.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "endpoint disabled", slog.String("endpoint", string(e.ID)), slog.String("project", string(e.Project)),
			slog.String("reason", reason), slog.Time("failing_since", e.FailingSince))
		w.s.worker.forgetEndpoint(e.ID, false)
	})
	if err := w.holdBack(ctx, e.ID); err != nil {
		return err
	}
	e.Status, e.DisabledReason, e.DisabledAt, e.OpenSince = flow.EndpointDisabled, reason, w.now, time.Time{}
	return w.tellAlone(e.Project, flow.EndpointDisabledKind, string(e.ID), flow.RecordEndpoint(e))
}
