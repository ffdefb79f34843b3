package api

import (
	"net/http"

	"till/api/receipt"
)

// readReceipt is GET …/sessions/{id}/receipt.png: what was paid, as a picture.
func (*Server) readReceipt(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	view, err := c.service.ViewPaid(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	picture, err := receipt.Draw(view, c.key.Environment, c.service.Now())
	if err != nil {
		return err
	}
	ctx := c.http.Context()
	write(ctx, http.StatusOK, picture)
	ctx.Response.Header.SetContentType(receipt.Kind)
	ctx.Response.Header.Set("Content-Disposition", receipt.Disposition(id))
	return nil
}
