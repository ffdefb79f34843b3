package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

const eventsPath = "/v1/events"

// eventRecord is an event as its merchant reads it. Body is there where one
// event is read: the exact text of its deliveries.
type eventRecord struct {
	ID         flow.EventID     `json:"id"`
	Event      flow.EventKind   `json:"event"`
	Reference  *string          `json:"reference"`
	SessionID  *string          `json:"sessionId"`
	Sequence   int64            `json:"sequence"`
	CreatedAt  string           `json:"createdAt"`
	Livemode   bool             `json:"livemode"`
	Deliveries deliveriesRecord `json:"deliveries"`
	Body       string           `json:"body,omitempty"`
}

// deliveriesRecord says how many deliveries of an event stand where.
type deliveriesRecord struct {
	Pending   int `json:"pending"`
	Delivered int `json:"delivered"`
	Dead      int `json:"dead"`
	Held      int `json:"held"`
	Cancelled int `json:"cancelled"`
}

// sendingRecord is what a call has put on its way.
type sendingRecord struct {
	EventID    flow.EventID    `json:"eventId"`
	Deliveries []sendingToward `json:"deliveries"`
}

// sendingToward is one delivery of it.
type sendingToward struct {
	ID         string          `json:"id"`
	EndpointID flow.EndpointID `json:"endpointId"`
}

// recordEvent makes the record of an event. What its body alone holds is read
// from there.
func recordEvent(v checkout.EventView) (eventRecord, error) {
	var told struct {
		Reference *string
		Livemode  bool
	}
	if err := json.Unmarshal(v.Event.Body, &told); err != nil { // our own bytes
		return eventRecord{}, fmt.Errorf("read event %s: %w", v.Event.ID, err)
	}
	e, n := v.Event, v.Standing
	return eventRecord{
		ID: e.ID, Event: e.Kind, Reference: told.Reference, SessionID: flow.OrNull(e.Session), Sequence: e.Sequence, CreatedAt: flow.Stamp(e.CreatedAt),
		Livemode: told.Livemode, Deliveries: deliveriesRecord{
			Pending: n[flow.DeliveryPending], Delivered: n[flow.DeliveryDelivered], Dead: n[flow.DeliveryDead], Held: n[flow.DeliveryHeld],
			Cancelled: n[flow.DeliveryCancelled],
		},
	}, nil
}

// eventID is the event of the path.
func (c *call) eventID() (flow.EventID, error) {
	return pathID[flow.EventID](c, flow.PrefixEvent, "event")
}

// listEvents is GET /v1/events, newest first.
func (*Server) listEvents(c *call) error {
	q := c.query()
	filter := checkout.EventFilter{
		Kind: flow.EventKind(q.text("type", 40)), Session: flow.SessionID(q.text("sessionId", maxReference)),
		Limit: q.whole("limit", 1, maxPage, usualPage),
	}
	filter.CreatedAfter, filter.CreatedBefore = q.made()
	q.cursor(func(at string) (ok bool) { filter.Before, ok = eventPlace(at); return ok })
	among(q, "type", filter.Kind, flow.EventKinds())
	if filter.Session != "" && !isID(string(filter.Session), flow.PrefixSession) {
		q.form.fail("sessionId", flow.CodeInvalidField, "sessionId must be the id of a session: wsp_sess_….")
	}
	if err := q.done(); err != nil {
		return err
	}
	views, more, err := c.service.Events(c.ctx, c.project.ID, filter)
	if err != nil {
		return err
	}
	records := make([]eventRecord, 0, len(views))
	out := page{HasMore: more}
	for _, v := range views {
		r, err := recordEvent(v)
		if err != nil {
			return err
		}
		records = append(records, r)
		if more {
			out.NextCursor = cursorOf(strconv.FormatInt(flow.Millis(v.Event.CreatedAt), 10) + "." + string(r.ID))
		}
	}
	out.Items = records
	return c.send(http.StatusOK, out)
}

// eventPlace reads what stands in a cursor of events: when the last one was made,
// and its id.
func eventPlace(s string) (store.EventPlace, bool) {
	at, id, _ := strings.Cut(s, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	return store.EventPlace{At: flow.FromMillis(ms), ID: flow.EventID(id)}, err == nil && ms > 0 && isID(id, flow.PrefixEvent)
}

// readEvent is GET /v1/events/{id}.
func (*Server) readEvent(c *call) error {
	id, err := c.eventID()
	if err != nil {
		return err
	}
	v, err := c.service.Event(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	r, err := recordEvent(v)
	if err != nil {
		return err
	}
	r.Body = string(v.Event.Body)
	return c.send(http.StatusOK, r)
}

// resendEvent is POST /v1/events/{id}/resend.
func (*Server) resendEvent(c *call) error {
	id, err := c.eventID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	to := flow.EndpointID(f.id("endpointId", flow.PrefixEndpoint, "webhook endpoint"))
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusOK, recordSending, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Resend(c.ctx, id, to, once)
	})
}

// recordSending is the answer of a call that puts deliveries on their way.
func recordSending(m checkout.Made) any {
	r := sendingRecord{EventID: m.Sending.Event, Deliveries: make([]sendingToward, 0, len(m.Sending.To))}
	for _, to := range m.Sending.To {
		r.Deliveries = append(r.Deliveries, sendingToward{m.Sending.Owed[to].Delivery, to})
	}
	return r
}
