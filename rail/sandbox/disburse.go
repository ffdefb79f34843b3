package sandbox

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"till/flow"
	"till/rail"
)

// The bounds of what is sent out.
const (
	clears       = 100 * time.Millisecond // how long money is on its way out
	bounces      = time.Second            // and how long after that it comes back, when it does
	maxHeld      = 500                    // disbursements that wait for other weather
	maxNarration = 50
)

// accountMissing is the account of the test bank that nobody has; accountDown
// and accountSlow are for payouts what they are for looking an account up.
const accountMissing = "0000000002"

// disburse is POST /bank/v1/disbursements: money is ordered to be sent out.
func (b *Bank) disburse(w http.ResponseWriter, r *http.Request) {
	var in disbursement
	b.railCall("disburse", func(w http.ResponseWriter, r *http.Request) (order, error) {
		if err := readJSON(w, r, &in); err != nil {
			return order{}, err
		}
		if !referenceForm.MatchString(in.Reference) {
			return order{}, refuse(http.StatusBadRequest, "invalid_reference", "a reference has 1 to 100 of A-Z a-z 0-9 . _ = -")
		}
		if p := in.judge(); p != nil {
			return order{Reference: in.Reference}, p
		}
		return order{Reference: in.Reference, credit: in.Credit, project: in.Project}, nil
	}, func(f books, _ order, r *http.Request) (answered, error) { return b.takeOn(f, in, b.dayOf(r)) })(w, r)
}

// judge refuses an order that makes no sense, whatever lies at the bank.
func (d disbursement) judge() *problem {
	_, known := rail.BankByCode(d.BankCode)
	refund := d.Kind == flow.DisburseRefund
	switch {
	case !refund && d.Kind != flow.DisbursePayout:
		return refuse(http.StatusBadRequest, "invalid_kind", "the kind is refund or payout")
	case d.Amount < 1 || d.Amount > maxPayout:
		return refuse(http.StatusUnprocessableEntity, "invalid_amount", "the amount is 1 to 1000000000000000 kobo")
	case refund != (d.Credit != "") || len(d.Credit) > maxText || !plain(d.Credit):
		return refuse(http.StatusBadRequest, "invalid_credit", "a refund names the credit that it is of, and a payout none")
	case refund && (d.BankCode != "" || d.AccountNumber != "" || d.AccountName != ""):
		return refuse(http.StatusBadRequest, "invalid_account", "a refund goes to where its credit came from")
	case !refund && (!known || !accountForm.MatchString(d.AccountNumber)):
		return refuse(http.StatusBadRequest, "invalid_account", "a payout names an account: ten digits and the code of a bank")
	case utf8.RuneCountInString(d.AccountName) > maxText || !plain(d.AccountName):
		return refuse(http.StatusBadRequest, "invalid_name", "an account name has at most 100 printable characters")
	case len(d.Narration) > maxNarration || strings.ContainsFunc(d.Narration, func(c rune) bool { return c < ' ' || c > '~' }):
		return refuse(http.StatusBadRequest, "invalid_narration", "a narration has at most 50 characters of printable ASCII")
	case len(d.Project) > maxText || !plain(string(d.Project)):
		return refuse(http.StatusBadRequest, "invalid_project", "a project is named in at most 100 characters")
	}
	return nil
}

// takeOn takes an order on, refuses it, or says what became of it when it came
// before. A refusal that is the bank's last word is kept: the same order is
// refused the same way when the weather has changed. day is what time it is for who
// orders it.
func (b *Bank) takeOn(f books, in disbursement, day time.Time) (answered, error) {
	was, found, err := f.disbursement(in.Reference)
	if err != nil {
		return answered{}, err
	}
	if found {
		if was.disbursement != in {
			return answered{}, refuse(http.StatusConflict, "reference_reused", "the reference belongs to another order")
		}
		if was.refused != "" {
			return answered{}, refuse(http.StatusUnprocessableEntity, was.refused, was.why)
		}
		out, err := b.outcome(f, was)
		return answered{status: http.StatusOK, body: out}, err
	}
	weather, err := f.conditions()
	if err != nil {
		return answered{}, err
	}
	fate := weather.Payouts
	if in.Kind == flow.DisburseRefund {
		fate = weather.Refunds
	}
	d := disbursal{disbursement: in, held: fate == rail.FatePending, takenAt: day}
	if p, err := b.unsendable(f, in, fate); err != nil {
		return answered{}, err
	} else if p != nil {
		if p.status == http.StatusUnprocessableEntity {
			d.refused, d.why, d.held = p.Code, p.Message, false
			err = f.keep(d)
		}
		if err == nil {
			err = p
		}
		return answered{}, err
	}
	if err := f.keep(d); err != nil {
		return answered{}, err
	}
	var wait time.Duration
	if in.BankCode == rail.TestBankCode && in.AccountNumber == accountSlow {
		wait = slowly
	}
	if !d.held {
		if err := b.conclude(f, d, fate, day, wait); err != nil {
			return answered{}, err
		}
		b.nudge() // it looks when the books are free again, and that is after the commit
	}
	out, err := b.outcome(f, d)
	return answered{status: http.StatusCreated, body: out, wait: wait}, err
}

// unsendable is why an order is not taken on: for good (422), or for now (503).
func (b *Bank) unsendable(f books, in disbursement, fate rail.Fate) (*problem, error) {
	busy, err := f.full(4) // of each notice there may be two, and there may be two notices
	if err != nil {
		return nil, err
	}
	held, err := f.holding(in.Kind)
	if err != nil {
		return nil, err
	}
	testAccount := in.BankCode == rail.TestBankCode
	switch {
	case busy || held >= maxHeld:
		return refuse(http.StatusServiceUnavailable, "busy", "too much is under way already"), nil
	case testAccount && in.AccountNumber == accountDown:
		return refuse(http.StatusServiceUnavailable, "issuer_down", "the bank of this account does not answer"), nil
	case testAccount && in.AccountNumber == accountMissing:
		return refuse(http.StatusUnprocessableEntity, "account_not_found", "nobody has this account"), nil
	case fate == rail.FateReject:
		return refuse(http.StatusUnprocessableEntity, "not_accepted", "the bank accepts no "+string(in.Kind)+"s for the moment"), nil
	}
	if in.Kind == flow.DisburseRefund {
		credit, found, err := f.movementByID(in.Credit, b.now())
		if err != nil {
			return nil, err
		}
		if !found || credit.Kind != flow.Credit {
			return refuse(http.StatusUnprocessableEntity, "no_such_credit", "no credit has the name that the refund is of"), nil
		}
		left, err := f.refundable(credit, b.now())
		if err != nil {
			return nil, err
		}
		if in.Amount > left {
			return refuse(http.StatusUnprocessableEntity, "exceeds_credit", "of the credit "+flow.Kobo(left).Naira()+" can be refunded"), nil
		}
	}
	balance, err := f.balance(b.now())
	if err == nil && in.Amount > balance {
		// How much lies there is everybody's, and merchants are told why a refund of theirs failed.
		return refuse(http.StatusUnprocessableEntity, "insufficient_funds", "less than that lies at the bank"), nil
	}
	return nil, err
}

// conclude books what becomes of an order that was taken on, in a moment, or
// later when it is slow.
func (b *Bank) conclude(f books, d disbursal, fate rail.Fate, day time.Time, slow time.Duration) error {
	move := movement{
		Kind: flow.PaidOut, Reference: d.Reference, AccountNumber: d.AccountNumber, Amount: d.Amount, Channel: flow.BankTransfer,
	}
	if d.Kind == flow.DisburseRefund {
		credit, _, err := f.movementByID(d.Credit, b.now())
		if err != nil {
			return err
		}
		move.Channel, move.PayerName, move.PayerBank, move.PayerAccount = credit.Channel, credit.PayerName, credit.PayerBank, credit.PayerAccount
	}
	if fate == rail.FateFail || fate == rail.FateReject {
		move.Kind, move.Reason = flow.PayoutFailed, "The receiving bank did not take the money."
	}
	if err := b.land(f, &move, day, clears+slow); err != nil || fate != rail.FateBounce {
		return err
	}
	back := move
	back.ID, back.Kind, back.Reverses, back.Reason = "", flow.PayoutFailed, move.ID, "The receiving bank sent the money back."
	return b.land(f, &back, day, clears+slow+bounces)
}

// land books a movement that is there after a while, and is told of then.
func (b *Bank) land(f books, m *movement, day time.Time, after time.Duration) error {
	lands := b.now().Add(after) // read before the notice gets its time: one that was due sooner would tell of money on its way, and nobody of its end
	m.ValueTime = day.Add(after)
	if err := b.enter(f, m, telling{delay: after, copies: 1}); err != nil {
		return err
	}
	return f.transit(m.Seq, lands, false)
}

// release lets what was held meet the weather that is now.
func (b *Bank) release(f books, weather rail.Conditions, day time.Time) error {
	for _, kind := range []flow.DisbursementKind{flow.DisburseRefund, flow.DisbursePayout} { // always the same first
		fate := weather.Payouts
		if kind == flow.DisburseRefund {
			fate = weather.Refunds
		}
		if fate == rail.FatePending {
			continue
		}
		held, err := f.held(kind)
		if err != nil {
			return err
		}
		for _, d := range held {
			meets := fate
			if back, err := f.reversed(d.Credit); err != nil {
				return err
			} else if back { // what is left of it was taken back while this waited
				meets = rail.FateFail
			}
			if err := b.conclude(f, d, meets, day, 0); err != nil {
				return err
			}
		}
		if err := f.letGo(kind); err != nil {
			return err
		}
	}
	return nil
}

// outcome is where an order stands that was taken on.
func (b *Bank) outcome(f books, d disbursal) (disbursed, error) {
	out := disbursed{disbursement: d.disbursement, Found: true, Status: flow.DisbursementPending, At: d.takenAt}
	last, found, err := f.sent(d.Reference, b.now())
	if err != nil || !found {
		return out, err
	}
	out.Status, out.RailTransactionID, out.At, out.Reason = flow.DisbursementDone, last.ID, last.ValueTime, last.Reason
	if last.Kind == flow.PayoutFailed {
		out.Status, out.Reverses, out.SentAt = flow.DisbursementFailed, last.Reverses, last.SentAt
	}
	return out, nil
}

// disbursed is GET /bank/v1/disbursements/{reference}. What was refused was
// never taken on.
func (b *Bank) disbursed(f books, o order, _ *http.Request) (answered, error) {
	d, found, err := f.disbursement(o.Reference)
	if err != nil {
		return answered{}, err
	}
	if !found || d.refused != "" {
		return answered{status: http.StatusOK, body: disbursed{disbursement: disbursement{Reference: o.Reference}}}, nil
	}
	out, err := b.outcome(f, d)
	return answered{status: http.StatusOK, body: out}, err
}
