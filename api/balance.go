package api

import "net/http"

// readBalance is GET /v1/balance: what the ledger holds for the project.
func (*Server) readBalance(c *call) error {
	b, err := c.service.Balance(c.ctx, c.project.ID)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, b)
}
