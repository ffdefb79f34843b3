package sandbox

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"till/flow"
	"till/rail"
)

// How a payer ends a USSD or card payment.
const (
	ussdSuccess  = "success"
	ussdFailed   = "failed"
	cardApproved = "approved"
	cardDeclined = "declined"
)

func (b *Bank) completeUSSD(w http.ResponseWriter, r *http.Request) {
	b.complete(w, r, "payment_code", r.PathValue("paymentCode"), flow.USSD)
}

func (b *Bank) completeCard(w http.ResponseWriter, r *http.Request) {
	b.complete(w, r, "reference", r.PathValue("reference"), flow.Card)
}

// complete ends a USSD or card payment through the test door.
func (b *Bank) complete(w http.ResponseWriter, r *http.Request, column, value string, method flow.Method) {
	var in ended
	if err := readJSON(w, r, &in); err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	b.test(w, r, func(f books) (any, error) {
		m, found, err := f.instrumentBy(column, value)
		if err != nil {
			return nil, err
		}
		if !found || m.Method != method {
			return nil, refuse(http.StatusNotFound, "no_such_payment", "nothing of this method is waiting under this name")
		}
		if err := b.end(f, m, in.Outcome, b.dayOf(r)); err != nil {
			return nil, err
		}
		return in, nil
	})
}

// end ends a USSD or card payment with its one outcome. It does so after the
// instrument's end too: a confirmation that comes late is worth testing.
func (b *Bank) end(f books, m made, outcome string, day time.Time) error {
	good, bad, reason := ussdSuccess, ussdFailed, "The payer's bank did not make the USSD payment."
	if m.Method == flow.Card {
		good, bad, reason = cardApproved, cardDeclined, "The card was declined."
	}
	if outcome != good && outcome != bad {
		return refuse(http.StatusBadRequest, "invalid_outcome", "the outcome is "+good+" or "+bad)
	}
	n, err := f.exec(`UPDATE instruments SET outcome = ? WHERE reference = ? AND outcome = ''`, outcome, m.Reference)
	if err != nil {
		return err
	}
	if n != 1 {
		p := refuse(http.StatusConflict, "already_completed", "this payment has ended already")
		p.Outcome = m.Outcome
		return p
	}
	from, _ := rail.BankByCode(defaultBank)
	move := movement{
		Kind: flow.Credit, Reference: m.Reference, Amount: m.Amount, Channel: m.Method, ValueTime: day,
		PayerName: defaultPayer, PayerBank: from.Name,
	}
	if outcome == bad {
		move.Kind, move.Reason = flow.Declined, reason
	}
	return b.enter(f, &move, telling{copies: 1})
}

// telling is how Till hears of a movement.
type telling struct {
	delay  time.Duration
	copies int
	drop   bool
}

// namesMovement begins the name of each movement.
const namesMovement = "ttb_"

// enter books a movement, under a name of its own where it has none, and owes its
// notices.
func (b *Bank) enter(f books, m *movement, how telling) error {
	full, err := f.full(2 * how.copies)
	if err != nil {
		return err
	}
	if full {
		return refuse(http.StatusServiceUnavailable, "busy", "too many notices are owed already")
	}
	for m.ID == "" || flow.HoldsCard(m.ID) { // a name that looks like a card is taken nowhere
		raw, err := b.bytes(16)
		if err != nil {
			return err
		}
		m.ID = namesMovement + hex.EncodeToString(raw)
	}
	if m.NIPSessionID == "" && (m.Kind == flow.Credit || m.Kind == flow.PaidOut) && m.Channel == flow.BankTransfer {
		n, err := b.below(1_000_000_000_000)
		if err != nil {
			return err
		}
		m.NIPSessionID = rail.TestBankNIP + m.ValueTime.Format("060102150405") + fmt.Sprintf("%012d", n)
	}
	if m.PayerAccount == "" && m.Kind == flow.Credit && m.Channel == flow.BankTransfer {
		n, err := b.below(10_000)
		if err != nil {
			return err
		}
		m.PayerAccount = fmt.Sprintf("******%04d", n)
	}
	if m.Seq, err = f.book(*m); err != nil {
		return err
	}
	if how.drop {
		return nil
	}
	return b.oweAll(f, m.Seq, how)
}

// oweAll owes the notices of a movement, as the weather has it: a lost one is
// never sent, so that only asking the bank finds the money.
func (b *Bank) oweAll(f books, seq int64, how telling) error {
	weather, err := f.conditions()
	if err != nil {
		return err
	}
	due := b.now().Add(how.delay)
	for range how.copies {
		state, times := "owed", 1
		if hit, err := b.percent(weather.NotifyLossPercent); err != nil {
			return err
		} else if hit {
			state = "lost"
		}
		if hit, err := b.percent(weather.DuplicatePercent); err != nil {
			return err
		} else if hit && state == "owed" {
			times = 2
		}
		for range times {
			if err := f.owe(seq, state, due); err != nil {
				return err
			}
		}
	}
	return nil
}

// percent says yes so many times of a hundred.
func (b *Bank) percent(p int) (bool, error) {
	if p <= 0 {
		return false, nil
	}
	n, err := b.below(100)
	return n < uint64(p), err
}
