package api

import (
	"bytes"
	"net/http"

	"till/flow/checkout"
)

// onceOnly runs a route that brings an Idempotency-Key once: the same request
// again gets the same answer. Routes that keep their answer in the transaction
// of their effect do it themselves and are not run by it.
func (s *Server) onceOnly(c *call, r Route) error {
	once, err := c.once(nil)
	if err != nil || once.Key == "" {
		if err == nil {
			err = r.do(s, c)
		}
		return err
	}
	a, err := c.service.Once(c.ctx, once, func() (checkout.Answer, error) {
		if err := r.do(s, c); err != nil {
			kind, _ := classOf(refusal(err).Code)
			if !c.began || kind.status >= http.StatusInternalServerError {
				return checkout.Answer{}, err
			}
			s.refuse(c.http.Context(), err) // a refusal by what was begun is an answer like any other
		}
		resp := &c.http.Context().Response
		return checkout.Answer{
			Status: resp.StatusCode(), Body: bytes.Clone(resp.Body()), Location: string(resp.Header.Peek("Location")),
		}, nil
	})
	if err != nil || !a.Replayed {
		return err
	}
	return c.answer(a, a.Location)
}
