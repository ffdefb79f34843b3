package api

import (
	"bytes"
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// takesKey says whether a route takes an Idempotency-Key: every POST does. Only
// banks do not send one, whose notices carry their own number, and the phone
// page does not.
func (r Route) takesKey() bool {
	return r.Method == http.MethodPost && r.Key != KeyPhone && r.Path != noticesPath
}

// onceOnly runs a route that brings an Idempotency-Key once: the same request
// again gets the same answer. Routes that keep their answer in the transaction
// of their effect do it themselves and are not run by it.
func (c *call) onceOnly(r Route) error {
	once, err := c.once(nil)
	if err != nil || once.Key == "" {
		if err == nil {
			err = c.do(r)
		}
		return err
	}
	a, err := c.service.Once(c.ctx, once, func() (checkout.Answer, error) {
		if err := c.do(r); err != nil {
			if a, final := c.refused(err); c.began && final {
				return a, nil
			}
			return checkout.Answer{}, err
		}
		return c.answered(), nil
	})
	if err != nil || !a.Replayed {
		return err
	}
	return c.answer(a, a.Location)
}

// answered is what the call is answered with so far.
func (c *call) answered() checkout.Answer {
	resp := &c.http.Context().Response
	return checkout.Answer{
		Status: resp.StatusCode(), Body: bytes.Clone(resp.Body()), Location: string(resp.Header.Peek("Location")),
	}
}

// refused answers with a refusal by what was begun. final says that it is an
// answer like any other, which the same call gets again: not so where waiting,
// another key or another body would help, or where something broke.
func (c *call) refused(err error) (a checkout.Answer, final bool) {
	code := refusal(err).Code
	kind, _ := classOf(code)
	switch {
	case kind.retryable, kind.status == http.StatusBadRequest, kind.status == http.StatusUnauthorized, kind.status == http.StatusForbidden, kind.status == http.StatusTooManyRequests,
		kind.status >= http.StatusInternalServerError, code == flow.CodeIdempotencyReused, code == flow.CodeIdempotencyRunning:
		return checkout.Answer{}, false
	}
	c.server.refuse(c.http.Context(), err)
	return c.answered(), true
}
