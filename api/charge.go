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
	f, err := c.form(decodeRules{})
	if err != nil {
		return err
	}
	var n checkout.NewSession
	var existing flow.SessionID
	if f.has("sessionId") {
		id := f.text("sessionId", text{required: true, most: 100})
		if id != "" && !isID(id, flow.PrefixSession) {
			f.fail("sessionId", flow.CodeInvalidField, "sessionId must be the id of a session: wsp_sess_….")
		}
		existing = flow.SessionID(id)
	} else {
		n = c.newSession(f)
		// A charge always opens in WhatsApp; "headless" would ask for the opposite.
		n.Mode = flow.Mode(f.oneOf("mode", flow.CodeInvalidMode, string(flow.InChat)))
	}
	if err := f.done(); err != nil {
		return err
	}
	once, err := c.once(func(m checkout.Made) (int, []byte, error) {
		body, err := compose(c.service.RecordCharge(m.View))
		return http.StatusCreated, body, err
	})
	if err != nil {
		return err
	}
	a, err := c.service.OpenCharge(c.ctx, n, existing, once)
	if err != nil {
		return err
	}
	var made struct{ Data struct{ ID flow.ChargeID } }
	if err := json.Unmarshal(a.Body, &made); err != nil { // our own bytes, perhaps of yesterday
		return fmt.Errorf("read a charge's answer: %w", err)
	}
	return c.answer(a, chargesPath+"/"+string(made.Data.ID))
}

// readCharge is GET /v1/charges/{id}.
func (*Server) readCharge(c *call) error {
	id := c.param("id")
	if !isID(id, flow.PrefixCharge) {
		return flow.Refuse(flow.CodeNotFound, "There is no such charge.")
	}
	view, err := c.service.ViewOfCharge(c.ctx, c.project.ID, flow.ChargeID(id))
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, c.service.RecordCharge(view))
}
