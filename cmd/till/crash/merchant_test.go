package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// sale is one session and what the driver knows to have been done to it.
type sale struct {
	session   string
	reference string
	amount    int64
	paid      int64 // by transfers to its account
	full      bool  // by a code or a card
	cancelled bool
	refunded  bool
	chat      bool
}

// due says whether the session must be PAID in the end.
func (s sale) due() bool { return s.full || s.paid >= s.amount }

// shop is where merchants write down what they sold.
type shop struct {
	w     *world
	mu    sync.Mutex
	sales map[string]sale // by session

	paydays chan string // days that somebody wants the shop to be paid out for
}

func (s *shop) note(one sale) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sales[one.session] = one
}

func (s *shop) all() []sale {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.sales))
}

// atBank plays something at the bank, which nobody kills: it must work.
func (w *world) atBank(path string, body any) (reply, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	r, err := w.callAt(w.bank, http.MethodPost, path, "", string(text))
	if err == nil && r.status >= 300 {
		err = fmt.Errorf("the bank answers %s with %d %s", path, r.status, r.body)
	}
	return r, err
}

// weather sets the bank's conditions.
func (w *world) weather(conditions object) {
	w.tb.Helper()
	text, err := json.Marshal(conditions)
	must(w.tb, err)
	if r, err := w.callAt(w.bank, http.MethodPut, "/bank/test/conditions", "", string(text)); err != nil || r.status >= 300 {
		w.tb.Fatalf("the bank's conditions: %d %s (%v)", r.status, r.body, err)
	}
}

// transfer pays to an account, and keeps what the bank said of it.
func (w *world) transfer(one *sale, account string, amount int64) error {
	r, err := w.atBank("/bank/test/transfers", object{"accountNumber": account, "amount": amount})
	if err != nil {
		return err
	}
	var made struct{ RailTransactionID string }
	if err := json.Unmarshal([]byte(r.body), &made); err != nil {
		return err
	}
	one.paid += amount
	return w.journal.keep(entry{Kind: "transfer", ID: made.RailTransactionID, Session: one.session, Amount: amount})
}

// sell is one merchant's work until it is told to stop: sessions of all kinds,
// one after the other.
func (s *shop) sell(ctx context.Context, name int, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		one := sale{reference: fmt.Sprintf("sale-%d-%d", name, n), amount: int64(100+random.IntN(50_000)) * 100}
		if err := s.once(&one, random); err != nil {
			s.w.wrong("work", "%s: %v", one.reference, err)
		}
		if one.session != "" {
			s.note(one)
		}
		time.Sleep(time.Duration(random.IntN(int(pace)))) // merchants have other work too
	}
}

// pace is the longest pause of a merchant between two sales.
const pace = 150 * time.Millisecond

// once opens a session and does something with it.
func (s *shop) once(one *sale, random *rand.Rand) error {
	const sessions = "/v1/whatsapp/checkout/sessions"
	r, err := s.w.surely(one.reference, sessions, object{"amount": one.amount, "customerEmail": "bola@example.com", "reference": one.reference})
	if err != nil {
		return err
	}
	if r.status >= 300 {
		if r.code() == "duplicate_reference" {
			s.w.wrong("doubled", "the session of %s was kept without the reply to its key", one.reference)
		}
		return fmt.Errorf("open a session: %d %s", r.status, r.body)
	}
	one.session = r.text("id")
	path := sessions + "/" + one.session
	switch dice := random.IntN(100); {
	case dice < 8: // nobody pays
		return nil
	case dice < 18:
		r, err := s.w.surely(one.reference+"-cancel", path+"/cancel", nil)
		one.cancelled = err == nil && r.status < 300
		return err
	case dice < 32:
		return s.byCode(one, path)
	case dice < 46:
		return s.byCard(one, path)
	default:
		return s.byTransfer(one, path, random)
	}
}

func (s *shop) byCode(one *sale, path string) error {
	r, err := s.w.surely(one.reference+"-ussd", path+"/pay/ussd", nil)
	if err != nil || r.status >= 300 {
		return fmt.Errorf("pay by USSD: %d %s %w", r.status, r.body, orGone(err))
	}
	_, err = s.w.atBank("/bank/test/ussd/"+r.text("paymentCode")+"/complete", object{"outcome": "success"})
	one.full = err == nil
	return err
}

func (s *shop) byCard(one *sale, path string) error {
	r, err := s.w.surely(one.reference+"-card", path+"/pay/card", nil)
	if err != nil || r.status >= 300 {
		return fmt.Errorf("pay by card: %d %s %w", r.status, r.body, orGone(err))
	}
	_, err = s.w.atBank("/bank/test/cards/"+r.text("reference")+"/complete", object{"outcome": "approved"})
	one.full = err == nil
	return err
}

func (s *shop) byTransfer(one *sale, path string, random *rand.Rand) error {
	r, err := s.w.surely(one.reference+"-transfer", path+"/pay/bank-transfer", nil)
	if err != nil || r.status >= 300 {
		return fmt.Errorf("pay by transfer: %d %s %w", r.status, r.body, orGone(err))
	}
	account := r.text("accountNumber")
	amounts := []int64{one.amount}
	switch dice := random.IntN(100); {
	case dice < 8: // too little
		amounts = []int64{one.amount / 2}
	case dice < 16: // too little, and then the rest
		amounts = []int64{one.amount / 2, one.amount - one.amount/2}
	case dice < 24: // too much
		amounts = []int64{one.amount + 5_000}
	case dice < 32: // twice
		amounts = []int64{one.amount, one.amount}
	}
	for _, amount := range amounts {
		if err := s.w.transfer(one, account, amount); err != nil {
			return err
		}
	}
	if random.IntN(100) < 25 && len(amounts) == 1 && one.paid == one.amount {
		return s.refund(one)
	}
	return nil
}

// refund sends back what was paid, once it is there.
func (s *shop) refund(one *sale) error {
	var payment string
	there := await.Within(tilltest.Patience, func() bool {
		r, err := s.w.call(http.MethodGet, "/v1/payments?sessionId="+one.session, "", "")
		if err != nil || len(r.items()) == 0 {
			return false
		}
		payment, _ = r.items()[0]["id"].(string)
		return true
	})
	if !there {
		return fmt.Errorf("the payment of %s is not there", one.session)
	}
	r, err := s.w.surely(one.reference+"-refund", "/v1/refunds", object{"paymentId": payment})
	if err != nil {
		return err
	}
	one.refunded = r.status < 300
	if !one.refunded && r.code() != "refund_exceeds_balance" {
		return fmt.Errorf("refund: %d %s", r.status, r.body)
	}
	return nil
}

// payOuts has the shop paid out for each day that somebody wants it to be.
func (s *shop) payOuts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case day := <-s.paydays:
			if err := s.payOut(ctx, day); err != nil {
				s.w.wrong("work", "pay out for %s: %v", day, err)
			}
		}
	}
}

// payOut has the shop paid out for a day, once there is something to pay out.
func (s *shop) payOut(ctx context.Context, day string) error {
	for n := 0; ctx.Err() == nil; n++ {
		r, err := s.w.surely(fmt.Sprintf("payday-%s-%d", day, n), "/v1/test/settlements/run", object{"date": day})
		if err != nil || r.status != http.StatusOK {
			return fmt.Errorf("%d %s %w", r.status, r.body, orGone(err))
		}
		if len(r.items()) > 0 {
			return nil
		}
		time.Sleep(pace) // until more is sold
	}
	return nil
}

// orGone is an error that was there, or one for a refusal.
func orGone(err error) error {
	if err == nil {
		return errRefused
	}
	return err
}

var errRefused = errors.New("it was refused")
