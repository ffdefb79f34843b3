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
