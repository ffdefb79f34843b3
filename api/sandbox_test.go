package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/rail"
	"till/rail/sandbox"
)

// TestACheckoutOverTheRealSandbox runs the whole road over the network: REST in,
// the pretend bank's HTTP out, its signed notice back in.
func TestACheckoutOverTheRealSandbox(t *testing.T) {
	s := open(t)
	s.meetSandbox()

	id := s.session("")
	pay := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, "")
	s.want(pay, http.StatusOK, map[string]string{"data.amount": "5000"})
	s.want(s.ask("GET", "/v1/test/bank/calls", s.key, ""), http.StatusOK, nil)
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+pay.text("data.accountNumber")+`","copies":3}`), http.StatusOK,
		map[string]string{"data.amountMinor": "500000"})
	s.until(id, "PAID")

	id = s.session("")
	code := s.ask("POST", sessions+"/"+id+"/pay/ussd", s.key, `{"bankCode":"058"}`).text("data.paymentCode")
	s.want(s.ask("POST", "/v1/test/ussd/"+code+"/complete", s.key, `{"outcome":"success"}`), http.StatusOK, nil)
	s.until(id, "PAID")

	id = s.session("")
	attempt := s.ask("POST", sessions+"/"+id+"/pay/card", s.key, "").text("data.attemptId")
	s.want(s.ask("POST", "/v1/test/cards/"+attempt+"/complete", s.key, `{"outcome":"approved"}`), http.StatusOK, nil)
	s.until(id, "PAID")
	card := s.ask("GET", "/v1/payments?sessionId="+id, s.key, "").text("data.items.0.railTransactionId")
	s.want(s.ask("POST", "/v1/test/bank/reversals", s.key, `{"railTransactionId":"`+card+`"}`), http.StatusOK, map[string]string{"data.accountNumber": "", "data.amountMinor": "500000"})
	s.want(s.ask("POST", "/v1/test/bank/reversals", s.key, `{"railTransactionId":"`+card+`"}`), http.StatusBadGateway, map[string]string{
		"error.code": "rail_rejected", "error.message": "The bank took this payment back already. It does so once.",
	})

	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{"up":false}`), http.StatusOK, map[string]string{"data.up": "false"})
	s.want(s.ask("POST", sessions+"/"+s.session("")+"/pay/card", s.key, ""), http.StatusServiceUnavailable, map[string]string{"error.code": "rail_unavailable"})
}

// A payer is done with a code or a card page once. Whoever plays it again is told how
// it ended.
func TestWhatAPayerIsDoneWithIsPlayedOnce(t *testing.T) {
	s := open(t)
	s.meetSandbox()
	for _, c := range []struct{ method, body, name, door, done, other string }{
		{"ussd", `{"bankCode":"058"}`, "data.paymentCode", "/v1/test/ussd/", "success", "failed"},
		{"ussd", `{"bankCode":"058"}`, "data.paymentCode", "/v1/test/ussd/", "failed", "success"},
		{"card", "", "data.attemptId", "/v1/test/cards/", "approved", "declined"},
		{"card", "", "data.attemptId", "/v1/test/cards/", "declined", "approved"},
	} {
		door := c.door + s.ask("POST", sessions+"/"+s.session("")+"/pay/"+c.method, s.key, c.body).text(c.name) + "/complete"
		s.want(s.ask("POST", door, s.key, `{"outcome":"`+c.done+`"}`), http.StatusOK, nil)
		for _, again := range []string{c.done, c.other} {
			s.want(s.ask("POST", door, s.key, `{"outcome":"`+again+`"}`), http.StatusBadGateway, map[string]string{
				"error.code": "rail_rejected", "error.message": `This payment has ended already, with the outcome "` + c.done + `". It ends only once.`,
			})
		}
	}
}

// bankOn is a pretend bank with its books in a file, "" for none, until the test ends.
// Each line to it waits so long for an answer; 0 is as usual.
func (s *shop) bankOn(file string) (line func(patience time.Duration) *sandbox.Rail) {
	t := s.t
	t.Helper()
	bank, err := sandbox.Open(sandbox.Config{File: file, Now: s.now})
	must(t, err)
	t.Cleanup(func() { _ = bank.Close() })
	ln := s.door()
	s.runs(func(ctx context.Context) error { return bank.Serve(ctx, ln) })
	return func(patience time.Duration) *sandbox.Rail {
		wire, err := sandbox.NewRail(sandbox.RailConfig{
			BaseURL: "http://" + ln.Addr().String(), Secret: "a secret of both directions", Now: s.now, Timeout: patience,
		})
		must(t, err)
		t.Cleanup(wire.Close)
		return wire
	}
}

// To an account that was never given out money comes with an amount alone: the bank
// only refused, and nobody learnt what was missing.
func TestATransferToNobodysAccountIsToldWhatItLacks(t *testing.T) {
	s := open(t)
	s.meetSandbox()
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"0123456789"}`), http.StatusBadRequest, map[string]string{
		"error.code": "missing_field", "error.fields.0.field": "amount",
	})
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"0123456789","amount":5000}`), http.StatusOK, nil)
}

// Who sends money without an amount sends what is left, to whichever account of the session
// and from wherever: the bank knows neither of a part that came to another account nor of one
// that went back.
func TestATransferWithoutAnAmountIsOfWhatIsLeft(t *testing.T) {
	for name, send := range map[string]func(s *shop, account string) reply{
		"with a key": func(s *shop, account string) reply {
			return s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+account+`"}`)
		},
		"from the phone page": func(s *shop, account string) reply {
			return s.ask("POST", "/phone/api/bank/transfers", "", `{"accountNumber":"`+account+`"}`, fromPage())
		},
	} {
		for _, to := range []string{"the account of before", "the account that is asked for"} {
			t.Run(name+" to "+to, func(t *testing.T) {
				s := open(t)
				s.meetSandbox()
				id := s.session("")
				account := func() string {
					return s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, `{"expiresInMinutes":5}`).text("data.accountNumber")
				}
				before := account()
				s.pass(6 * time.Minute)
				now := account()
				s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+before+`","amount":200000}`), http.StatusOK, nil)
				await.Until(t, "the part is there", func() bool {
					return s.ask("GET", sessions+"/"+id, s.key, "").text("data.amountPaidMinor") == "200000"
				})
				if to == "the account of before" {
					now = before
				}
				s.want(send(s, now), http.StatusOK, map[string]string{"data.amountMinor": "300000"})
				s.until(id, "PAID")
			})
		}
	}
}

// meetSandbox gives the shop the pretend bank over the network, until the test
// ends.
func (s *shop) meetSandbox() {
	t := s.t
	t.Helper()
	wire := s.bankOn("")(0)
	cfg := s.parts
	cfg.Rail = wire
	service, err := checkout.New(cfg)
	must(t, err)
	front := s.server.cfg
	front.Services, front.TestBank = map[flow.Environment]*checkout.Service{flow.Test: service}, wire
	if s.server, err = New(front); err != nil {
		t.Fatal(err)
	}
	must(t, wire.Register(t.Context(), "http://"+s.listen()+"/v1/rails/sandbox/notifications"))
}

// until waits for a session to reach a state.
func (s *shop) until(id, status string) {
	s.t.Helper()
	await.Until(s.t, id+" is "+status, func() bool {
		return s.ask("GET", sessions+"/"+id, s.key, "").text("data.status") == status
	})
}

// deafBank books what it is asked, and its answer is lost once.
type deafBank struct {
	rail.TestBank

	deaf bool
}

func (b *deafBank) Transfer(ctx context.Context, t rail.Transfer) (rail.TransferResult, error) {
	out, err := b.TestBank.Transfer(ctx, t)
	if b.deaf {
		b.deaf = false
		return rail.TransferResult{}, rail.ErrUnknown
	}
	return out, err
}

// Money that is sent with a key is sent once, whatever becomes of the answer: who asks
// again after an outage has not paid twice.
func TestATransferThatWasInDoubtIsNotSentTwice(t *testing.T) {
	s := open(t)
	s.meetSandbox()
	s.server.cfg.TestBank = &deafBank{TestBank: s.server.cfg.TestBank, deaf: true}
	id := s.session("")
	account := s.ask("POST", sessions+"/"+id+"/pay/bank-transfer", s.key, "").text("data.accountNumber")
	once := http.Header{"Idempotency-Key": {"a transfer"}}
	send := func(more ...http.Header) reply {
		return s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+account+`"}`, more...)
	}
	s.want(send(once), http.StatusServiceUnavailable, map[string]string{"error.code": "rail_timeout"})
	s.until(id, "PAID")
	again := send(once)
	s.want(again, http.StatusOK, map[string]string{"data.amountMinor": "500000", "data.accountNumber": account})
	s.want(s.ask("GET", "/v1/payments", s.key, ""), http.StatusOK, map[string]string{"data.items.0.railTransactionId": again.text("data.railTransactionId")})
	another := send(http.Header{"Idempotency-Key": {"another"}}) // a payer who sends it twice
	if another.status != http.StatusOK || another.text("data.railTransactionId") == again.text("data.railTransactionId") {
		t.Errorf("another transfer is answered with %s", another.body)
	}
}
