package checkout

import (
	"time"

	"till/flow"
)

// The bounds of deliveries.
const (
	maxPosts   = 512 // at work at once
	maxToOne   = 32  // at work at once for one endpoint
	firstToOne = 8   // the same, for one that nothing is known of
	maxToSick  = 128 // at work at once for all endpoints whose last try failed
	// The same, for those that took nothing yet: whoever adds many keeps no others from
	// their places.
	maxToUnproven = maxPosts / 2
	// One project has a quarter of the places and half of the memory at most: it may
	// have as many endpoints as would take all, and others are never to wait for one
	// merchant's slow servers.
	maxToProject     = maxPosts / 4
	maxQueuedProject = maxQueued / 2
	maxBytesProject  = maxBytes / 2
	maxQueued        = 8192     // waiting in memory
	maxBytes         = 64 << 20 // of their bodies
	maxLane          = 512      // waiting for one endpoint
	maxSickLane      = 64       // the same, for one whose last try failed
	maxLanes         = 4096     // endpoints that something is remembered of while nothing waits for them
	// What somebody waits for has places of its own beside all of these, so that it
	// waits neither for its endpoint's other deliveries nor for its rest.
	maxAwaited      = 128 // at work at once
	maxAwaitedTo    = 4   // the same, for one endpoint; one place where its last try failed
	maxAwaitedQueue = 128 // waiting in memory
	maxAwaitedLane  = 16  // the same, for one endpoint
	// PostLasts is how long a post takes at most: whoever makes them keeps to it.
	PostLasts = 15 * time.Second
	// postPatience is a little more: none is begun with less of its lease left, so
	// that two never carry the same delivery at once.
	postPatience = PostLasts + time.Second
	// One that wants so many a second has what that comes to in this time in memory, and
	// no more: it only waits there, and what many such are owed would fill all of it.
	pacedFor = 2 * time.Second
	// An endpoint that asks to be spared rests between two tries.
	firstRest = time.Second
	maxRest   = 30 * time.Second
	// tellAgain is how long no other failed try of an endpoint is a warning: less
	// than an operator is told after that something is owed for long.
	tellAgain = 10 * time.Minute
)

// queued is a delivery that waits for a place, and until when it may begin.
type queued struct {
	flow.Delivery

	until time.Time
	read  time.Time // when its endpoint was
}

// lane is what waits for one endpoint, and what is known of how that does. It
// begins with few places, gains one with every success and loses half of them
// with every failure: neither one that hangs nor many of them keep the others
// from theirs.
type lane struct {
	project flow.ProjectID // "" while nothing of it was seen
	queue   []queued
	awaited []queued // that somebody waits for
	busy    int
	asked   int // of those that somebody waits for, at work
	places  int
	unkept  int           // failures that are not yet kept
	sick    bool          // its last try failed
	proven  bool          // it took something since it was begun
	rest    time.Duration // between two tries, 0: none is asked for
	from    time.Time     // it rests until then
	pace    int           // how many a second it is sent at most; 0: as many as it takes
	next    time.Time     // with a pace, the next one may begin then
	timed   bool          // it is let in by then
	shut    time.Time     // it takes nothing until then but what somebody waits for: what it has cannot be sent
	waits   bool          // it is among those whose turn comes
	asks    bool          // the same, with what somebody waits for
	parked  bool          // it waits for a place of its project
	turned  int           // counts how often it was begun anew
	more    bool          // the database may have more for it
	known   flow.Endpoint // as it was
	read    time.Time     // then
	told    time.Time     // when a failed try was last told of as a warning; kept when it is begun anew, which its merchant does
}

// most is how many it takes: of one that wants them slowly, what it is sent soon.
func (l *lane) most() int {
	most := maxLane
	if l.sick {
		most = maxSickLane
	}
	if l.pace > 0 {
		most = min(most, l.pace*int(pacedFor/time.Second))
	}
	return most
}

// gap is the time between two that it is sent; 0: there need be none.
func (l *lane) gap() time.Duration {
	if l.pace <= 0 {
		return 0
	}
	return time.Second / time.Duration(l.pace)
}

// paces says whether it is too soon for the next one, however its clock was set.
func (l *lane) paces(now time.Time) bool {
	wait := l.next.Sub(now)
	return wait > 0 && wait <= l.gap()
}

// room is how many more it takes.
func (l *lane) room(now time.Time) int {
	if now.Before(l.shut) {
		return 0
	}
	return l.most() - len(l.queue)
}

// asksNow says whether it may send something more that somebody waits for.
func (l *lane) asksNow() bool {
	if l.sick {
		return l.asked == 0
	}
	return l.asked < maxAwaitedTo
}

// anew forgets how its endpoint did: it is another one now. What is on its way
// still says nothing of that.
func (l *lane) anew() {
	l.sick, l.proven, l.rest, l.from, l.places, l.read = false, false, 0, time.Time{}, firstToOne, time.Time{}
	l.turned++
}

// idle says whether nothing waits for it and nothing is at work.
func (l *lane) idle() bool {
	return l.busy == 0 && l.asked == 0 && l.unkept == 0 && len(l.queue) == 0 && len(l.awaited) == 0
}

// learns takes in what became of a try.
func (l *lane) learns(v flow.Verdict, now time.Time) {
	if v.OK {
		l.sick, l.proven, l.rest, l.from, l.places = false, true, 0, time.Time{}, min(l.places+1, maxToOne)
		return
	}
	l.sick, l.places = true, max(l.places/2, 1)
	switch v.Status {
	case 429, 502, 503, 504: // it is too much for it
		l.rest = min(max(2*l.rest, firstRest), maxRest)
		l.rest = max(l.rest, min(v.RetryAfter, maxRest))
		l.places, l.from = 1, now.Add(l.rest)
	}
}

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
