package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"till/flow"
)

// usualAmount is what is asked for where nothing else is said: ₦5,000.
const usualAmount = 500_000

// scenes say how each kind of event is made to happen.
func scenes() map[flow.EventKind]func(*scene) error {
	return map[flow.EventKind]func(*scene) error{
		flow.SessionCreated:        func(s *scene) error { _, err := s.open(); return err },
		flow.InstructionsIssued:    func(s *scene) error { _, err := s.instructed(); return err },
		flow.SessionExpiredKind:    (*scene).expired,
		flow.SessionCancelKind:     (*scene).cancelled,
		flow.ChargeSuccess:         func(s *scene) error { _, err := s.bought(); return err },
		flow.ChargeFailed:          (*scene).declined,
		flow.ChargeExpired:         (*scene).expired,
		flow.ChargeCancelled:       (*scene).cancelled,
		flow.ChargeUnderpaid:       (*scene).underpaid,
		flow.ChargeLate:            (*scene).late,
		flow.ChargeDuplicate:       (*scene).duplicate,
		flow.ChargeReversed:        (*scene).reversed,
		flow.PaymentUnmatched:      (*scene).unmatched,
		flow.PaymentReversed:       (*scene).unmatchedReversed,
		flow.RefundPendingKind:     (*scene).refunded,
		flow.RefundProcessedKind:   (*scene).refunded,
		flow.RefundFailedKind:      func(s *scene) error { return s.under("refunds", "fail", (*scene).refunded) },
		flow.RefundAttentionKind:   func(s *scene) error { return s.under("refunds", "bounce", (*scene).refunded) },
		flow.SettlementSuccessKind: (*scene).settled,
		flow.SettlementFailedKind:  func(s *scene) error { return s.under("payouts", "fail", (*scene).settled) },
		flow.IdentityVerified:      func(s *scene) error { return s.identified("22222222221") },
		flow.IdentityFailed:        func(s *scene) error { return s.identified("22222222223") },
		flow.EndpointDisabledKind:  (*scene).disabled,
		flow.Ping:                  (*scene).pinged,
	}
}

// usual is the body of a session.
func usual() map[string]any {
	return map[string]any{"amount": usualAmount, "customerEmail": "ada@example.com"}
}

// open opens a session.
func (s *scene) open() (id string, err error) {
	var made aSession
	err = s.post(sessionsPath, usual(), &made)
	s.session = made.ID
	s.note("session", made.ID)
	return made.ID, err
}

// invoice is a charge and the account that it is paid to.
type invoice struct {
	ID             string
	SessionID      string
	AmountMinor    json.Number
	VirtualAccount struct{ AccountNumber string }
}

// charge makes a charge, with more fields.
func (s *scene) charge(more map[string]any) (made invoice, err error) {
	body := usual()
	maps.Copy(body, more)
	err = s.post(chargesPath, body, &made)
	s.session = made.SessionID
	s.note("session", made.SessionID)
	s.note("charge", made.ID)
	return made, err
}

// instructed opens a session and makes an account for it.
func (s *scene) instructed() (account string, err error) {
	id, err := s.open()
	if err != nil {
		return "", err
	}
	var how struct{ AccountNumber, AttemptID string }
	err = s.c.post(s.w.ctx, at(sessionsPath, id, "pay", "bank-transfer"), nil, &how)
	s.note("attempt", how.AttemptID)
	return how.AccountNumber, err
}

// transfer sends money and says what the bank calls it.
func (s *scene) transfer(account string, amount int64) (rail string, err error) {
	body := map[string]any{"accountNumber": account}
	if amount != 0 {
		body["amount"] = amount
	}
	var booked struct{ RailTransactionID string }
	err = s.post("/v1/test/bank/transfers", body, &booked)
	s.note("transfer", booked.RailTransactionID)
	return booked.RailTransactionID, err
}

// paid waits until the session is paid.
func (s *scene) paid() error {
	return s.c.until(s.w, "the session to be "+string(flow.SessionPaid), func() (bool, error) {
		var now aSession
		err := s.c.get(s.w.ctx, at(sessionsPath, s.session), &now)
		return now.Status == string(flow.SessionPaid), err
	})
}

// bought is a charge that was paid.
func (s *scene) bought() (invoice, error) {
	c, err := s.charge(nil)
	if err != nil {
		return c, err
	}
	if _, err := s.transfer(c.VirtualAccount.AccountNumber, 0); err != nil {
		return c, err
	}
	return c, s.paid()
}

func (s *scene) declined() error {
	id, err := s.open()
	if err != nil {
		return err
	}
	var how struct{ AttemptID string }
	if err := s.c.post(s.w.ctx, at(sessionsPath, id, "pay", "card"), nil, &how); err != nil {
		return err
	}
	s.note("attempt", how.AttemptID)
	return s.c.post(s.w.ctx, at("/v1/test/cards", how.AttemptID, "complete"), map[string]string{"outcome": "declined"}, nil)
}

func (s *scene) expired() error {
	c, err := s.charge(map[string]any{"expiresInMinutes": 5})
	if err == nil {
		_, err = s.c.expire(s.w, c.SessionID, time.Second)
	}
	return err
}

func (s *scene) late() error {
	c, err := s.charge(map[string]any{"expiresInMinutes": 5})
	if err == nil {
		_, err = s.c.expire(s.w, c.SessionID, lateBy)
	}
	if err == nil {
		_, err = s.transfer(c.VirtualAccount.AccountNumber, 0)
	}
	return err
}

func (s *scene) cancelled() error {
	c, err := s.charge(nil)
	if err != nil {
		return err
	}
	return s.c.post(s.w.ctx, at(sessionsPath, c.SessionID, "cancel"), nil, nil)
}

func (s *scene) underpaid() error {
	c, err := s.charge(nil)
	if err != nil {
		return err
	}
	asked, err := c.AmountMinor.Int64()
	if err == nil {
		_, err = s.transfer(c.VirtualAccount.AccountNumber, max(1, asked*3/5))
	}
	return err
}

func (s *scene) duplicate() error {
	c, err := s.bought()
	if err == nil {
		_, err = s.transfer(c.VirtualAccount.AccountNumber, 0)
	}
	return err
}

func (s *scene) reversed() error {
	c, err := s.charge(nil)
	if err != nil {
		return err
	}
	rail, err := s.transfer(c.VirtualAccount.AccountNumber, 0)
	if err == nil {
		err = s.paid()
	}
	if err == nil {
		err = s.post("/v1/test/bank/reversals", map[string]any{"railTransactionId": rail}, nil)
	}
	return err
}

func (s *scene) unmatched() error {
	_, err := s.transfer("0123456789", usualAmount)
	return err
}

func (s *scene) unmatchedReversed() error {
	rail, err := s.transfer("0123456789", usualAmount)
	if err == nil {
		err = s.c.until(s.w, "the money to be heard of", func() (bool, error) {
			var list struct {
				Items []struct{ RailTransactionID string }
			}
			err := s.c.get(s.w.ctx, "/v1/payments?matchStatus=UNMATCHED&limit=1", &list)
			return len(list.Items) == 1 && list.Items[0].RailTransactionID == rail, err
		})
	}
	if err == nil {
		err = s.post("/v1/test/bank/reversals", map[string]any{"railTransactionId": rail}, nil)
	}
	return err
}

// under plays a scene while the bank makes something go wrong. It is well again
// at the end.
func (s *scene) under(what, fate string, do func(*scene) error) error {
	if err := s.c.call(s.w.ctx, http.MethodPut, conditionsPath, map[string]string{what: fate}, nil); err != nil {
		return err
	}
	s.left = append(s.left, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.w.ctx), parting)
		defer cancel()
		return s.c.call(ctx, http.MethodPut, conditionsPath, struct{}{}, nil)
	})
	return do(s)
}

// refunded is a refund of a kobo of a charge.
func (s *scene) refunded() error {
	c, err := s.bought()
	if err != nil {
		return err
	}
	s.session = "" // the event is looked for among all of its kind
	var made struct{ ID string }
	err = s.post(refundsPath, map[string]any{"chargeId": c.ID, "amount": 1}, &made)
	s.note("refund", made.ID)
	return err
}

// settlesWithin is how many days ahead a settlement can be tried out.
const settlesWithin = 31

// settled is a payout of a charge, on the next day that has none.
func (s *scene) settled() error {
	if _, err := s.bought(); err != nil {
		return err
	}
	s.session = ""
	now, err := s.c.clock(s.w.ctx, 0)
	if err != nil {
		return err
	}
	items, _, err := s.c.list(s.w.ctx, "/v1/settlements", nil, pageSize)
	if err != nil {
		return err
	}
	const due = 7 // what comes today is due by then, whatever holidays there are
	today := flow.DateOf(now)
	on := today.Plus(due)
	err = each(items, func(one struct{ SettlesOn flow.Date }) error {
		on = max(on, one.SettlesOn.Plus(1))
		return nil
	})
	if err != nil {
		return err
	}
	if on > today.Plus(settlesWithin) {
		return errors.New("settlements were tried out for the next month already: move the clock with  till clock advance 720h")
	}
	var run struct{ Items []struct{ ID string } }
	if err := s.post("/v1/test/settlements/run", map[string]any{"date": string(on)}, &run); err != nil {
		return err
	}
	if len(run.Items) == 0 {
		return errors.New("nothing is due to be paid out")
	}
	s.note("settlement", run.Items[0].ID)
	return nil
}

// identified looks a person up.
func (s *scene) identified(number string) error {
	var made struct{ ID string }
	err := s.post("/v1/verification/identities", map[string]any{
		"type": "bvn", "number": number, "firstName": "Ada", "lastName": "Obi", "consent": map[string]any{"given": true, "purpose": "A trial"},
	}, &made)
	s.note("identity", made.ID)
	return err
}

// disabled is an endpoint that says it is gone.
func (s *scene) disabled() error { return s.ping(http.StatusGone) }

// pinged is a ping to every endpoint of the project, or to one of ours where it
// has none.
func (s *scene) pinged() error {
	items, _, err := s.c.list(s.w.ctx, endpointsPath, nil, pageSize)
	if err != nil {
		return err
	}
	err = each(items, func(e anEndpoint) error {
		if e.Status != flow.EndpointEnabled {
			return nil
		}
		s.note("endpoint", e.ID)
		return s.c.post(s.w.ctx, at(endpointsPath, e.ID, "ping"), nil, nil)
	})
	if err != nil || len(s.made) > 0 {
		return err
	}
	return s.ping(http.StatusOK)
}

// ping pings an endpoint of ours that answers with a status.
func (s *scene) ping(status int) error {
	e, err := s.c.hear(s.w.ctx, flow.EarOfTrigger, []string{string(flow.Ping)}, func(context.Context, heardWebhook) answer { return answer{Status: status} })
	if err != nil {
		return err
	}
	s.left = append(s.left, func() error { return e.close(s.w.ctx) })
	s.note("endpoint", e.ID)
	return s.c.post(s.w.ctx, at(endpointsPath, e.ID, "ping"), nil, nil)
}
