package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"till/flow"
	"till/rail"
)

// maxDraws bounds how often a number is drawn that turned out to be taken.
const maxDraws = 20

// maxText is how long a name may be, in characters.
const maxText = 100

// readOrder reads and judges what the rail orders.
func readOrder(w http.ResponseWriter, r *http.Request) (order, error) {
	var o order
	if err := readJSON(w, r, &o); err != nil {
		return order{}, err
	}
	switch {
	case !referenceForm.MatchString(o.Reference):
		return order{}, refuse(http.StatusBadRequest, "invalid_reference", "a reference has 1 to 100 of A-Z a-z 0-9 . _ = -")
	case o.Amount < 1 || flow.Kobo(o.Amount) > flow.MaxAmount:
		return o.named(), refuse(http.StatusUnprocessableEntity, "invalid_amount", "the amount is 1 to "+flow.MaxAmount.Minor()+" kobo")
	case len(o.Session) > maxText || !plain(o.Session):
		return order{Reference: o.Reference}, refuse(http.StatusBadRequest, "invalid_session", "a session is named in at most 100 characters")
	case o.AccountName == "" || utf8.RuneCountInString(o.AccountName) > maxText || !plain(o.AccountName):
		return o.named(), refuse(http.StatusBadRequest, "invalid_name", "an account name has 1 to 100 printable characters")
	case o.ExpiresAt.Year() < 2000 || o.ExpiresAt.Year() > 2200:
		return o.named(), refuse(http.StatusBadRequest, "invalid_expiry", "expiresAt is a time")
	}
	o.ExpiresAt = o.ExpiresAt.UTC().Truncate(time.Millisecond)
	return o, nil
}

// named is what the call log keeps of an order that was refused.
func (o order) named() order {
	if len(o.Session) > maxText || !plain(o.Session) {
		o.Session = ""
	}
	return order{Reference: o.Reference, Session: o.Session}
}

// plain says whether text is valid and holds nothing that does not print.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
}

// create makes the instrument of a method, or finds the one that the reference
// has already.
func (b *Bank) create(method flow.Method) func(books, order, *http.Request) (answered, error) {
	return func(f books, o order, r *http.Request) (answered, error) {
		if method == flow.USSD && (flow.Kobo(o.Amount) > flow.MaxUSSD || !flow.Kobo(o.Amount).Whole()) {
			return answered{}, refuse(http.StatusUnprocessableEntity, "invalid_amount", "USSD takes whole naira up to "+flow.MaxUSSD.Naira())
		}
		m, found, err := f.instrumentBy("reference", o.Reference)
		if err != nil {
			return answered{}, err
		}
		if found {
			if m.Method != method || m.Amount != o.Amount || m.Session != o.Session {
				return answered{}, refuse(http.StatusConflict, "reference_reused", "the reference belongs to another order")
			}
			return answered{status: http.StatusOK, body: b.show(m, r)}, nil
		}
		m = made{order: o, Method: method, CreatedAt: b.now()}
		for range maxDraws {
			if err := b.number(&m); err != nil {
				return answered{}, err
			}
			added, err := f.add(m)
			if err != nil {
				return answered{}, err
			}
			if added {
				return answered{status: http.StatusCreated, body: b.show(m, r)}, nil
			}
		}
		return answered{}, errors.New("no number is free that was drawn")
	}
}

// number draws what a payer pays to: an account, a code or a link.
func (b *Bank) number(m *made) error {
	var err error
	switch m.Method {
	case flow.BankTransfer:
		m.Account, err = b.accountNumber()
	case flow.USSD:
		var n uint64
		n, err = b.below(90_000_000)
		m.Code = strconv.FormatUint(10_000_000+n, 10)
	case flow.Card:
		m.Token, err = b.token()
	}
	return err
}

// accountNumber draws a NUBAN of the test bank. They begin with 9, away from
// the low numbers that are reserved for looking accounts up.
func (b *Bank) accountNumber() (string, error) {
	n, err := b.below(100_000_000)
	if err != nil {
		return "", err
	}
	serial := strconv.FormatUint(900_000_000+n, 10)
	check, err := rail.NUBANCheckDigit(rail.TestBankCode, serial)
	if err != nil {
		return "", fmt.Errorf("make an account number: %w", err)
	}
	return serial + strconv.Itoa(check), nil
}

// show is an instrument as the rail is told of it.
func (b *Bank) show(m made, r *http.Request) instrument {
	out := instrument{Reference: m.Reference, Method: m.Method, Amount: m.Amount, ExpiresAt: m.ExpiresAt, Outcome: m.Outcome}
	switch m.Method {
	case flow.BankTransfer:
		out.AccountName, out.AccountNumber, out.BankCode, out.BankName = m.AccountName, m.Account, rail.TestBankCode, rail.TestBankName
	case flow.USSD:
		out.PaymentCode, out.DialCodes = m.Code, rail.DialCodes(m.Code)
	case flow.Card:
		base := cmp.Or(strings.TrimSuffix(b.cfg.BaseURL, "/"), "http://"+r.Host)
		out.CheckoutURL = base + "/card/" + m.Token
	}
	return out
}

// find shows the instrument of a reference.
func (b *Bank) find(f books, o order, r *http.Request) (answered, error) {
	m, found, err := f.instrumentBy("reference", o.Reference)
	if err != nil {
		return answered{}, err
	}
	if !found {
		// An answer, not a refusal: the bank says that it made nothing.
		return answered{status: http.StatusNotFound, body: errorBody{refuse(http.StatusNotFound, "no_such_reference", "nothing was made for this reference")}}, nil
	}
	return answered{status: http.StatusOK, body: b.show(m, r)}, nil
}

// check lists what was booked for a reference; nothing, for an unknown one.
func (b *Bank) check(f books, o order, r *http.Request) (answered, error) {
	var after int64
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return answered{}, refuse(http.StatusBadRequest, "invalid_after", "after is the next of an earlier answer")
		}
	}
	page, err := f.movements(o.Reference, after, b.now())
	return answered{status: http.StatusOK, body: page}, err
}
