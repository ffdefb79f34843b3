package console

import (
	"net/http"

	"till/api/receipt"
	"till/flow"
)

// receipt is GET /sessions/{id}/receipt.png: what was paid, as a picture that a
// payer can be sent.
func (c *Console) receipt(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	view, err := v.service.ViewPaid(v.ctx, s.Project, s.ID)
	if err != nil {
		return err
	}
	picture, err := receipt.Draw(view, v.env, v.service.Now())
	if flow.CodeOf(err) == flow.CodeNotPaid {
		return flow.Refuse(flow.CodeNotFound, "There is no receipt: this session is not paid.")
	}
	if err != nil {
		return err
	}
	v.looks("look.session", s.Project, string(s.ID))
	v.http.Set("Content-Type", receipt.Kind)
	v.http.Set("Content-Disposition", receipt.Disposition(s.ID))
	return v.http.Status(http.StatusOK).Send(picture)
}
