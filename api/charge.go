package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// openCharge is POST /v1/charges: it opens a session in WhatsApp, a new one or
// one that is there, and makes its virtual account.
func (*Server) openCharge(c *call) error {
	f := c.form(decodeRules{})
	var n checkout.NewSession
	var existing flow.SessionID
	if f.has("sessionId") {
		id := f.text("sessionId", text{required: true, most: 100})
		if id != "" && !isID(id, flow.PrefixSession) {
			f.fail("sessionId", flow.CodeInvalidField, "sessionId must be the id of a session: wsp_sess_….")
		}
		existing = flow.SessionID(id)
		c.refuseNewSession(f)
	} else {
		n = c.newCharge(f)
	}
	if err := f.done(); err != nil {
		return err
	}
	record := func(m checkout.Made) any { return c.service.RecordCharge(m.View) }
	return c.effect(http.StatusCreated, record, chargesPath, func(once checkout.Call) (checkout.Answer, error) {
		a, err := c.service.OpenCharge(c.ctx, n, existing, once)
		if err != nil || a.Status >= http.StatusBadRequest {
			return a, err
		}
		var made struct {
			Data struct{ ID, SessionID string }
		}
		if err := json.Unmarshal(a.Body, &made); err != nil { // our own bytes, perhaps of yesterday
			return a, fmt.Errorf("read a charge's answer: %w", err)
		}
		c.noted.session = flow.SessionID(made.Data.SessionID)
		a.Location = made.Data.ID // it made a session, and a charge is what it was asked for
		return a, nil
	})
}

// newCharge takes the fields of a charge's new session. It always opens in WhatsApp;
// "headless" would ask for the opposite.
func (c *call) newCharge(f *form) checkout.NewSession {
	n := c.newSession(f)
	n.Mode = flow.Mode(f.oneOf("mode", flow.CodeInvalidMode, string(flow.InChat)))
	return n
}

// refuseNewSession refuses what is said of a new session beside the id of one that is
// there: the call knows these fields, and who is told that it does not looks for a
// spelling mistake.
func (c *call) refuseNewSession(f *form) {
	var asked form
	c.newCharge(&asked)
	for _, name := range asked.known {
		if f.has(name) {
			f.known = append(f.known, name)
			f.fail(name, flow.CodeUnknownField, "%s is of a new session: send sessionId without it, or leave sessionId out.", name)
		}
	}
}

// chargeID is the charge of the path.
func (c *call) chargeID() (flow.ChargeID, error) {
	return pathID[flow.ChargeID](c, flow.PrefixCharge, "charge")
}

// sendCharge answers with the charge that was found, or says why none was.
func (c *call) sendCharge(view checkout.View, err error) error {
	if err != nil {
		return err
	}
	c.noted.session = view.Session.ID
	return c.send(http.StatusOK, c.service.RecordCharge(view))
}

// readCharge is GET /v1/charges/{id}.
func (*Server) readCharge(c *call) error {
	id, err := c.chargeID()
	if err != nil {
		return err
	}
	return c.sendCharge(c.service.ViewOfCharge(c.ctx, c.project.ID, id))
}

// listCharges is GET /v1/charges, newest first.
func (*Server) listCharges(c *call) error {
	return list(c, true, func(v checkout.View) any { return c.service.RecordCharge(v) })
}

// readChargeByReference is GET /v1/charges/by-reference/{ref}: the merchant's
// own reference, or the service's.
func (*Server) readChargeByReference(c *call) error {
	reference := c.param("ref")
	if reference == "" || len(reference) > maxReference {
		return flow.Refuse(flow.CodeNotFound, "There is no charge with this reference.")
	}
	return c.sendCharge(c.service.ViewByReference(c.ctx, c.project.ID, reference))
}

// requeryCharge is POST /v1/charges/{id}/requery: it asks the bank now.
func (*Server) requeryCharge(c *call) error {
	id, err := alone(c, c.chargeID)
	if err != nil {
		return err
	}
	c.began = true
	return c.sendCharge(c.service.Requery(c.ctx, c.project.ID, id))
}

// momentRecord is one line of a charge's story.
type momentRecord struct {
	At   string `json:"at"`
	Who  string `json:"who"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// readTimeline is GET /v1/charges/{id}/timeline: every chat turn, call to the
// bank, match and delivery, with reasons.
func (*Server) readTimeline(c *call) error {
	id, err := c.chargeID()
	if err != nil {
		return err
	}
	q := c.query()
	limit := q.whole("limit", 1, maxPage, usualPage)
	var from checkout.StoryPlace
	q.cursor(func(at string) (ok bool) { from, ok = checkout.ParseStoryPlace(at); return ok })
	if err := q.done(); err != nil {
		return err
	}
	story, next, err := c.service.Story(c.ctx, c.project.ID, id, from, limit)
	if err != nil {
		return err
	}
	moments := make([]momentRecord, len(story))
	for i, m := range story {
		moments[i] = momentRecord{At: flow.Stamp(m.At), Who: m.Who, What: m.What, Why: m.Why}
	}
	out := page{Items: moments, HasMore: !next.At.IsZero()}
	if out.HasMore {
		out.NextCursor = cursorOf(next.String())
	}
	return c.send(http.StatusOK, out)
}
