package api

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"till/flow"
	"till/flow/store"
)

// shownAnswer is how much of an answer's body is shown, in bytes of UTF-8.
const shownAnswer = 4 << 10

// deliveryRecord is one event on its way to one endpoint, as its merchant reads
// it.
type deliveryRecord struct {
	ID            string          `json:"id"`
	EventID       flow.EventID    `json:"eventId"`
	EndpointID    flow.EndpointID `json:"endpointId"`
	URL           string          `json:"url"`
	Status        string          `json:"status"`
	NextAttemptAt *string         `json:"nextAttemptAt"`
	AttemptCount  int             `json:"attemptCount"`
	Attempts      []attemptRecord `json:"attempts"`
}

// attemptRecord is one try of it.
type attemptRecord struct {
	At             string        `json:"at"`
	Cause          string        `json:"cause"`
	Request        requestRecord `json:"request"`
	ResponseStatus *int          `json:"responseStatus"`
	ResponseBody   *string       `json:"responseBody"`
	DurationMs     int64         `json:"durationMs"`
	Error          *string       `json:"error"`
}

// requestRecord is what was sent. Its body is that of the event each time.
type requestRecord struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	BodyURL string            `json:"bodyUrl"`
}

func recordDelivery(d store.Sent) deliveryRecord {
	r := deliveryRecord{
		ID: d.ID, EventID: d.Event, EndpointID: d.Endpoint, URL: d.URL, Status: strings.ToUpper(d.State), AttemptCount: d.Count,
		Attempts: make([]attemptRecord, 0, len(d.Tries)),
	}
	if d.State == flow.DeliveryPending {
		r.NextAttemptAt = flow.StampOrNull(d.Next)
	}
	for _, try := range d.Tries {
		r.Attempts = append(r.Attempts, recordAttempt(d, try))
	}
	return r
}

func recordAttempt(d store.Sent, try store.SentTry) attemptRecord {
	r := attemptRecord{
		At: flow.Stamp(try.At), Cause: try.Cause, DurationMs: try.Took.Milliseconds(), Error: flow.OrNull(try.Reason),
		Request: requestRecord{URL: try.URL, BodyURL: eventsPath + "/" + string(d.Event), Headers: map[string]string{
			"webhook-id": string(d.Event), "webhook-timestamp": strconv.FormatInt(try.SignedAt.Unix(), 10), "webhook-signature": try.Signature,
		}},
	}
	if try.SignedAt.IsZero() { // nothing was sent: it failed before that
		r.Request.Headers["webhook-timestamp"] = ""
	}
	if try.Status != 0 {
		body := legible(try.Body)
		r.ResponseStatus, r.ResponseBody = &try.Status, &body
	}
	return r
}

// legible is an answer's body as a text: what is not UTF-8 in it is marked, and
// a character that was cut off at the end is left out.
func legible(body []byte) string {
	for cut := 1; cut < utf8.UTFMax && cut <= len(body); cut++ {
		if last := body[len(body)-cut:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				body = body[:len(body)-cut]
			}
			break
		}
	}
	s := strings.ToValidUTF8(string(body), "\ufffd")
	for len(s) > shownAnswer { // a mark is longer than what it stands for
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

// listDeliveries is GET /v1/events/{id}/deliveries, oldest first.
func (*Server) listDeliveries(c *call) error {
	id, err := c.eventID()
	if err != nil {
		return err
	}
	limit, after, err := c.turnedPage(flow.PrefixDelivery)
	if err != nil {
		return err
	}
	list, more, err := c.service.DeliveriesOf(c.ctx, c.project.ID, id, after, limit)
	if err != nil {
		return err
	}
	return sendPage(c, list, more, recordDelivery, func(d store.Sent) string { return d.ID })
}
