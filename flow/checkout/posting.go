package checkout

import (
	"time"

	"till/flow"
)

// share is what one project takes of the places and of the memory, beside what
// somebody waits for.
type share struct {
	busy   int
	queued int
	bytes  int
	parked []*lane // that wait for a place of it: few, for a project has few endpoints
}

// posting is what is on its way to endpoints; the worker's lock guards it. Its
// lanes take turns, one delivery each.
type posting struct {
	count    int // at work
	sick     int // of them for endpoints whose last try failed
	unproven int // of them for endpoints that took nothing yet
	queued   int // of all that waits
	bytes    int
	lanes    map[flow.EndpointID]*lane
	shares   map[flow.ProjectID]*share
	turns    []*lane         // that have something to send, as far as is known
	paced    []*lane         // whose turn came too soon for their pace, and that nobody lets in yet
	asked    int             // at work, that somebody waits for: they are not in count
	await    int             // of queued, that somebody waits for
	asks     []*lane         // that have such
	ids      map[string]int  // of deliveries whose try is under way or not yet kept
	keeps    int             // tries that are not yet kept
	over     map[string]bool // deliveries that were taken since the claim under way began: it may hold them all the same
}

func newPosting() posting {
	return posting{lanes: map[flow.EndpointID]*lane{}, shares: map[flow.ProjectID]*share{}, ids: map[string]int{}, over: map[string]bool{}}
}

// share is what a project takes; one that takes nothing any more is forgotten once
// what it had at work has ended, or is dropped.
func (p *posting) share(id flow.ProjectID) *share {
	s := p.shares[id]
	if s == nil {
		s = &share{}
		p.shares[id] = s
	}
	return s
}

func (p *posting) unshare(id flow.ProjectID) {
	if s := p.shares[id]; s != nil && s.busy == 0 && s.queued == 0 && len(s.parked) == 0 {
		delete(p.shares, id)
	}
}

func (p *posting) lane(id flow.EndpointID) *lane {
	l := p.lanes[id]
	if l == nil {
		if len(p.lanes) >= maxLanes {
			p.forget()
		}
		l = &lane{places: firstToOne}
		p.lanes[id] = l
	}
	return l
}

// forget drops what is known of endpoints that nothing waits for.
func (p *posting) forget() {
	for id, l := range p.lanes {
		if l.idle() {
			delete(p.lanes, id)
		}
	}
}

// roomFor is how many more deliveries an endpoint may have in memory. Those that
// somebody waits for have room however full it is of others.
func (p *posting) roomFor(id flow.EndpointID, awaited bool, now time.Time) int {
	l := p.lanes[id]
	if l == nil {
		l = &lane{}
	}
	switch {
	case awaited:
		return min(maxAwaitedQueue-p.await, maxAwaitedLane-len(l.awaited))
	case p.bytes >= maxBytes:
		return 0
	}
	of := p.shares[l.project]
	switch {
	case of == nil:
		of = &share{}
	case of.bytes >= maxBytesProject:
		return 0
	}
	return min(maxQueued-p.queued, maxQueuedProject-of.queued, l.room(now))
}

// bears says whether a delivery that is there already is taken: commits that were
// under way when it was full may hand over some more.
func (p *posting) bears(d flow.Delivery, now time.Time) bool {
	most := maxLane
	if d.Awaited() {
		most = maxAwaitedQueue
	}
	return p.roomFor(d.Endpoint, d.Awaited(), now) >= -most
}

// add puts a delivery behind those of its endpoint.
func (p *posting) add(d queued) {
	l := p.lane(d.Endpoint)
	l.project, l.pace = d.Project, d.Pace
	if d.Awaited() {
		l.awaited = append(l.awaited, d)
		p.await++
	} else {
		l.queue = append(l.queue, d)
		of := p.share(d.Project)
		of.queued++
		of.bytes += len(d.Body)
	}
	p.queued++
	p.bytes += len(d.Body)
	p.turn(l)
}

// turn lets a lane that has something to send have its turn.
func (p *posting) turn(l *lane) {
	if !l.waits && !l.parked && len(l.queue) > 0 {
		l.waits = true
		p.turns = append(p.turns, l)
	}
	if !l.asks && len(l.awaited) > 0 {
		l.asks = true
		p.asks = append(p.asks, l)
	}
}

// begins and ends count a delivery that is at work.
func (p *posting) begins(l *lane, awaited bool) {
	p.keeps++
	if awaited {
		p.asked++
		l.asked++
		return
	}
	p.count++
	l.busy++
	p.share(l.project).busy++
}

func (p *posting) ends(l *lane, awaited bool) {
	if awaited {
		p.asked--
		l.asked--
		return
	}
	p.count--
	l.busy--
	of := p.share(l.project)
	of.busy--
	for _, one := range of.parked { // there is a place for one of them
		one.parked = false
		p.turn(one)
	}
	of.parked = nil
	p.unshare(l.project)
}

// next takes what is sent next; false where there is nothing, or no place. A lane
// that has to wait is let in again by whatever it waits for.
func (p *posting) next(now time.Time) (queued, bool) {
	for p.asked < maxAwaited && len(p.asks) > 0 {
		l := p.asks[0]
		p.asks[0] = nil
		p.asks = p.asks[1:]
		l.asks = false
		if len(l.awaited) == 0 || !l.asksNow() {
			continue
		}
		d := p.take(&l.awaited)
		p.await--
		p.turn(l)
		return d, true
	}
	for p.count < maxPosts && len(p.turns) > 0 {
		l := p.turns[0]
		p.turns[0] = nil
		p.turns = p.turns[1:]
		l.waits = false
		if len(l.queue) == 0 || l.busy >= l.places || now.Before(l.from) || l.sick && (l.unkept > 0 || p.sick >= maxToSick) || !l.proven && p.unproven >= maxToUnproven {
			continue // one that fails is not tried faster than that is known to all
		}
		if l.paces(now) {
			if !l.timed {
				l.timed = true
				p.paced = append(p.paced, l)
			}
			continue
		}
		if of := p.share(l.project); of.busy >= maxToProject {
			l.parked = true
			of.parked = append(of.parked, l)
			continue
		}
		d := p.take(&l.queue)
		if !now.After(d.until) { // what waited too long is not sent, and costs no rest
			l.next = now.Add(l.gap())
			if l.rest > 0 {
				l.from = now.Add(l.rest)
			}
		}
		p.turn(l)
		return d, true
	}
	return queued{}, false
}

// take takes the first delivery of a lane's queue.
func (p *posting) take(queue *[]queued) queued {
	d := (*queue)[0]
	(*queue)[0] = queued{} // its body is not to be kept
	if *queue = (*queue)[1:]; len(*queue) == 0 {
		*queue = nil
	}
	p.queued--
	p.bytes -= len(d.Body)
	if !d.Awaited() {
		of := p.share(d.Project)
		of.queued--
		of.bytes -= len(d.Body)
	}
	return d
}

// drop takes everything that waits for an endpoint.
func (p *posting) drop(id flow.EndpointID) []queued {
	l := p.lanes[id]
	if l == nil {
		return nil
	}
	l.read, l.shut = time.Time{}, time.Time{}
	var list []queued
	for len(l.queue) > 0 {
		list = append(list, p.take(&l.queue))
	}
	for len(l.awaited) > 0 {
		list = append(list, p.take(&l.awaited))
		p.await--
	}
	p.unshare(l.project)
	return list
}

// rested lets in every lane that had to wait, and says when the next one may go
// on that rests still; zero where none does.
func (p *posting) rested(now time.Time) time.Time {
	var first time.Time
	until := func(at time.Time) bool {
		waits := now.Before(at)
		if waits && (first.IsZero() || at.Before(first)) {
			first = at
		}
		return waits
	}
	for _, l := range p.lanes {
		until(l.shut)
		if len(l.queue) > 0 && !until(l.from) {
			p.turn(l)
		}
	}
	return first
}
