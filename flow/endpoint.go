package flow

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"till/flow/planted"
)

// Endpoint is where a merchant wants to be told, and of what.
type Endpoint struct {
	ID             EndpointID
	Project        ProjectID
	URL            string
	Description    string
	Events         []EventKind // empty: every kind that is not on request
	MaxPerSecond   int         // that it is sent; 0: as many as it takes
	Secrets        []string    // whsec_… or whsk_…, newest first
	Retiring       []time.Time // until when each secret after the first signs too; none: it does not
	Status         string      // ENABLED or DISABLED
	DisabledReason string      // why, "" while it is enabled
	DisabledAt     time.Time
	DeletedAt      time.Time
	CreatedAt      time.Time
	Version        int64 // counts what its merchant changed

	// What is known of its health. Only deliveries change it.
	Failures     int       // in a row
	FailingSince time.Time // when the first of them was; zero: the last try was a success
	OpenSince    time.Time // since when it is only probed, one try at a time; zero: it is not
	Probes       int       // that failed since
}

// The states of an endpoint.
const (
	EndpointEnabled  = "ENABLED"
	EndpointDisabled = "DISABLED"
)

// Why an endpoint is disabled.
const (
	DisabledGone      = "gone"      // it answered 410
	DisabledFailing   = "failing"   // nothing else came of it for days
	DisabledRequested = "requested" // its merchant asked for that
)

// Asks says whether the endpoint is for a kind, also while nothing is sent to it:
// what it is not told of meanwhile is there to be replayed.
func (e Endpoint) Asks(k EventKind) bool {
	if len(e.Events) == 0 {
		return !k.OnRequest()
	}
	return slices.Contains(e.Events, k)
}

// MostPerSecond is what an endpoint's MaxPerSecond may be at most: faster than that is as
// fast as it takes them.
const MostPerSecond = 100

// Wants says whether the endpoint is told of a kind now.
func (e Endpoint) Wants(k EventKind) bool { return e.Status == EndpointEnabled && e.Asks(k) }

// The bounds of an endpoint's secrets.
const (
	// SecretOverlap is how long a secret that was replaced signs beside the new one.
	SecretOverlap = 24 * time.Hour
	// maxSigning is how many secrets sign at once.
	maxSigning = 3
)

// Signing are the secrets that sign what is sent at a time, newest first.
func (e Endpoint) Signing(now time.Time) []string {
	n := min(1, len(e.Secrets))
	for n < len(e.Secrets) && n <= len(e.Retiring) && now.Before(e.Retiring[n-1]) {
		n++ // the older a secret, the sooner it retires
	}
	if planted.OldSecret {
		return e.Secrets[n-1 : n]
	}
	return e.Secrets[:n]
}

// Signature is how what is sent at a time is signed first.
func (e Endpoint) Signature(now time.Time) Signature {
	if signing := e.Signing(now); len(signing) > 0 {
		return SignatureOf(signing[0])
	}
	return SignatureV1
}

// Rotate gives the endpoint a new secret. Each that signs until now still does for
// what is left of its day. Errors: secret_rotation_limit where that would be more
// than maxSigning, with how long to wait.
func (e *Endpoint) Rotate(secret string, now time.Time) error {
	signing := e.Signing(now)
	if len(signing) >= maxSigning {
		until := e.Retiring[len(signing)-2]
		refused := Refuse(CodeRotationLimit, "At most %d secrets sign at once, and all of them do. The oldest retires at %s: rotate again then.", maxSigning, Stamp(until))
		refused.RetryAfter = until.Sub(now)
		return refused
	}
	ends := e.Retiring[:max(len(signing)-1, 0)]
	if len(signing) > 0 {
		ends = append([]time.Time{now.Add(SecretOverlap)}, ends...)
	}
	e.Secrets, e.Retiring = append([]string{secret}, signing...), ends
	return nil
}

// The bounds of an endpoint that fails.
const (
	// FailingFor is how long nothing but failures disables an endpoint.
	FailingFor = 5 * 24 * time.Hour
	// FailingQuiet is how long after a failure the next one is not the same
	// trouble any more, if nothing was tried in between: longer than the longest
	// wait of the schedule.
	FailingQuiet = 48 * time.Hour
	// failuresOpen is how many failures in a row hold an endpoint back.
	failuresOpen = 20
	// HeldFor is how long what is held for an endpoint that does not answer waits:
	// as long as the schedule lasts at most. Then it is dead, as if it had been tried.
	HeldFor = 91 * time.Hour
)

// Takes is the state of a delivery to the endpoint that is due now: pending if
// it is to be sent.
func (e Endpoint) Takes(d Delivery) string {
	switch {
	case !e.DeletedAt.IsZero():
		return DeliveryCancelled
	case e.Status != EndpointEnabled, !e.OpenSince.IsZero() && !d.ByHand() && !d.Probe:
		return DeliveryHeld
	}
	return DeliveryPending
}

// Ails is what follows for an endpoint whose last try failed: why it is to be
// disabled, "" for not at all, and whether it is to be held back.
func (e Endpoint) Ails(now time.Time, gone bool) (disable string, open bool) {
	switch {
	case e.Status != EndpointEnabled || !e.DeletedAt.IsZero():
		return "", false
	case gone:
		return DisabledGone, false
	case !e.FailingSince.IsZero() && now.Sub(e.FailingSince) >= FailingFor:
		return DisabledFailing, false
	}
	return "", e.OpenSince.IsZero() && e.Failures >= failuresOpen
}

// LongestProbe is how long an endpoint that is held back rests at most between two
// probes.
const LongestProbe = 30 * time.Minute

// ProbeIn is how long an endpoint that is held back rests before it is probed,
// after so many probes that failed: as soon as the first retry at first, and at
// most half an hour.
func ProbeIn(probes int) time.Duration {
	waits := [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, LongestProbe}
	return waits[min(max(probes, 0), len(waits)-1)]
}

// EndpointRecord is a webhook endpoint as its merchant reads it: nothing of its
// secrets.
type EndpointRecord struct {
	ID             EndpointID  `json:"id"`
	URL            string      `json:"url"`
	Description    *string     `json:"description"`
	Events         []EventKind `json:"events"`
	Status         string      `json:"status"`
	DisabledReason *string     `json:"disabledReason"`
	DisabledAt     *string     `json:"disabledAt"`
	FailingSince   *string     `json:"failingSince"`
	CreatedAt      string      `json:"createdAt"`
}

// RecordEndpoint makes the record of an endpoint.
func RecordEndpoint(e Endpoint) EndpointRecord {
	r := EndpointRecord{
		ID: e.ID, URL: e.URL, Description: OrNull(e.Description), Events: e.Events, Status: e.Status,
		DisabledReason: OrNull(e.DisabledReason), DisabledAt: StampOrNull(e.DisabledAt), FailingSince: StampOrNull(e.FailingSince), CreatedAt: Stamp(e.CreatedAt),
	}
	if r.Events == nil {
		r.Events = []EventKind{}
	}
	return r
}

// PingRecord is what a ping is about: nothing but the endpoint that it tries.
type PingRecord struct {
	EndpointID EndpointID `json:"endpointId"`
}

// Why a delivery is tried.
const (
	CauseAuto   = "auto"   // by its schedule
	CauseResend = "resend" // its merchant asked for it
	CauseReplay = "replay" // the same, for many at once
	CausePing   = "ping"   // a try of the endpoint itself
)

// The states of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead"      // its schedule is spent
	DeliveryHeld      = "held"      // its endpoint does not answer, or is disabled
	DeliveryCancelled = "cancelled" // its endpoint is deleted, or its merchant does not want it any more
)

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID       string
	Event    EventID
	Session  SessionID // that the event is about, "" for none
	Endpoint EndpointID
	Project  ProjectID // whose endpoint it is; not of a delivery that is yet to be owed
	URL      string
	Secrets  []string // that sign, newest first
	Pace     int      // how many a second its endpoint is sent at most; 0: as many as it takes
	Body     []byte
	Attempts int    // of its schedule that were made before
	Cause    string // why it is tried; "" for CauseAuto
	Lease    string // names who may send it now
	Probe    bool   // it stands for all that its endpoint is owed
	Trace    Trace  // of what caused it, where it is sent right after that; it is not kept
}

// Step is the next try's place in the trace of what caused it. A later try's is in
// one of the event: all of those are found under one name.
func (d Delivery) Step() Trace {
	trace := d.Trace
	if trace.Zero() {
		trace = NewTrace(string(d.Event))
	}
	return trace.Then(d.ID + "/" + strconv.Itoa(d.Attempts))
}

// ByHand says whether somebody asked for the next try, beside the schedule.
func (d Delivery) ByHand() bool { return d.Cause != "" && d.Cause != CauseAuto }

// Awaited says whether somebody waits for the next try: it was asked for alone,
// not as one of many.
func (d Delivery) Awaited() bool { return d.Cause == CausePing || d.Cause == CauseResend }

// refusedWithin is how soon an answer is there that no trouble of its endpoint
// is behind.
const refusedWithin = 5 * time.Second

// Refused says whether the endpoint is well and does not want this delivery: one
// that answers so is not spared, for the next one may be welcome. That a request
// came too late, too early or too often is not about the request.
func (v Verdict) Refused() bool {
	switch v.Status {
	case 408, 410, 425, 429:
		return false
	}
	return v.Status >= 400 && v.Status < 500 && v.Duration <= refusedWithin
}

// Verdict is what became of one try to deliver.
type Verdict struct {
	OK         bool
	Gone       bool   // the endpoint said 410: never again
	Status     int    // the HTTP status, 0 where there was no answer
	Reason     string // why it failed, in a word
	Ours       bool   // it failed through a fault of our own: its endpoint is not to blame
	Unsent     bool   // nothing was sent, through a fault of our own that may be mended: it is no try of the schedule
	Body       []byte // of the answer: its first 4 KiB, and before it is kept a little more
	Duration   time.Duration
	RetryAfter time.Duration

	URL       string    // that was called
	SignedAt  time.Time // what the request says it was sent at
	Signature string    // of the request
}

// HostOf is where the URL of a webhook leads, without its path and what is behind it:
// there some keep a secret. "" is that of no URL.
func HostOf(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return u.Host
}
