package checkout_test

import (
	"context"
	"testing"

	"till/flow"
	"till/flow/checkout"
)

// Money that comes between two reads of one answer is in all of it or in none: a session
// that waits for its money does not show the money.
func TestAnAnswerIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(context.Context, *checkout.Service, flow.Session) (checkout.View, error){
		"session": func(ctx context.Context, s *checkout.Service, of flow.Session) (checkout.View, error) {
			return s.ViewPaid(ctx, project, of.ID)
		},
		"charge": func(ctx context.Context, s *checkout.Service, of flow.Session) (checkout.View, error) {
			return s.ViewOfCharge(ctx, project, of.Charge)
		},
		"reference": func(ctx context.Context, s *checkout.Service, of flow.Session) (checkout.View, error) {
			return s.ViewByReference(ctx, project, of.Reference)
		},
		"list": func(ctx context.Context, s *checkout.Service, _ flow.Session) (checkout.View, error) {
			list, _, err := s.List(ctx, project, checkout.Filter{Limit: 1})
			return list[0], err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				n := newSession(flow.InChat)
				n.Reference = "order-1"
				var made checkout.Made
				_, err := w.service.OpenCharge(w.t.Context(), n, "", call("", "", &made))
				w.must(err)
				w.rest()
				session := w.read(made.Session.ID)
				w.rail.mu.Lock()
				w.rail.onMethods = func() {
					w.pay(session.ID, session.Amount, false)
					w.until("the money is here", func() bool { return len(w.payments(session.ID)) == 1 })
				}
				w.rail.mu.Unlock()
				v, err := read(w.t.Context(), w.service, session)
				w.must(err)
				if paid := v.Session.Status == flow.SessionPaid; paid != (len(v.Payments) == 1) {
					w.t.Errorf("%s with %d payments", v.Session.Status, len(v.Payments))
				}
			})
		})
	}
}
