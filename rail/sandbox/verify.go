package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"till/flow"
	"till/rail"
)

var _ rail.Verifier = (*Rail)(nil)

// The accounts of the test bank that exist to be looked up.
const (
	accountFound = "0000000001"
	accountDown  = "0000000003" // the bank that holds it does not answer the pretend bank
	accountSlow  = "0000000004" // it answers later than anybody waits
)

// The BVNs and NINs that exist to be looked up: each has its answer, whatever
// names are given, so that a test may use any.
const (
	personMatches   = "22222222221"
	personPartly    = "22222222222"
	personIsAnother = "22222222223"
)

// slowly is how long the slow account takes: longer than a rail waits.
const slowly = hangsFor

// asked is whose account is asked for, or whose it is.
type asked struct {
	AccountNumber string `json:"accountNumber"`
	BankCode      string `json:"bankCode"`
}

// resolved is the answer to asked.
type resolved struct {
	asked
	Found       bool   `json:"found"`
	AccountName string `json:"accountName"`
}

// person is who is compared with the register. The number travels in a body,
// never in a path, and the bank keeps nothing of a person.
type person struct {
	Reference   string            `json:"reference"`
	Type        flow.IdentityType `json:"type"`
	Number      string            `json:"number"`
	FirstName   string            `json:"firstName"`
	LastName    string            `json:"lastName"`
	DateOfBirth string            `json:"dateOfBirth"`
}

// compared is the answer about a person.
type compared struct {
	Reference   string     `json:"reference"`
	Found       bool       `json:"found"`
	FirstName   flow.Match `json:"firstName"`
	LastName    flow.Match `json:"lastName"`
	DateOfBirth flow.Match `json:"dateOfBirth"` // "" where none was given
}

var (
	bankForm   = regexp.MustCompile(`^\d{3,9}$`)
	personForm = regexp.MustCompile(`^\d{11}$`)
)

// ResolveAccount asks under which name an account is held.
func (r *Rail) ResolveAccount(ctx context.Context, a rail.Account) (string, error) {
	var got resolved
	_, err := r.call(ctx, http.MethodPost, "/bank/v1/accounts/resolve", asked{a.Number, a.BankCode}, &got)
	switch {
	case err != nil:
		return "", wrap("resolve an account", err)
	case got.AccountNumber != a.Number || got.BankCode != a.BankCode:
		return "", fmt.Errorf("resolve an account: %w: the answer is about another", rail.ErrUnknown)
	case !got.Found:
		return "", fmt.Errorf("resolve an account: %w", rail.ErrNotFound)
	case got.AccountName == "" || utf8.RuneCountInString(got.AccountName) > maxText || !plain(got.AccountName):
		return "", fmt.Errorf("resolve an account: %w: the answer has no name that can be shown", rail.ErrUnknown)
	}
	return got.AccountName, nil
}

// LookUpIdentity compares a person with the register.
func (r *Rail) LookUpIdentity(ctx context.Context, p rail.Person) (flow.Matches, error) {
	var got compared
	_, err := r.call(ctx, http.MethodPost, "/bank/v1/identities/look-up", person{
		Reference: string(p.Verification), Type: p.Type, Number: p.Number.Reveal(), FirstName: p.FirstName, LastName: p.LastName,
		DateOfBirth: p.DateOfBirth,
	}, &got)
	switch {
	case err != nil:
		return flow.Matches{}, wrap("look an identity up", err)
	case got.Reference != string(p.Verification):
		return flow.Matches{}, fmt.Errorf("look an identity up: %w: the answer is about another", rail.ErrUnknown)
	case !got.Found:
		return flow.Matches{}, fmt.Errorf("look an identity up: %w", rail.ErrNotFound)
	case !judged(got.FirstName) || !judged(got.LastName) || judged(got.DateOfBirth) != (p.DateOfBirth != ""):
		return flow.Matches{}, fmt.Errorf("look an identity up: %w: the answer does not say what agrees", rail.ErrUnknown)
	}
	return flow.Matches{FirstName: got.FirstName, LastName: got.LastName, DateOfBirth: got.DateOfBirth}, nil
}

// judged says whether a match is one of those that there are.
func judged(m flow.Match) bool {
	switch m {
	case flow.MatchExact, flow.MatchPartial, flow.MatchNone:
		return true
	}
	return false
}

// resolveAccount is POST /bank/v1/accounts/resolve: NIP's name enquiry.
func (b *Bank) resolveAccount(w http.ResponseWriter, r *http.Request) {
	var in asked
	b.railCall("resolve_account", func(w http.ResponseWriter, r *http.Request) (order, error) {
		if err := readJSON(w, r, &in); err != nil {
			return order{}, err
		}
		if !accountForm.MatchString(in.AccountNumber) || !bankForm.MatchString(in.BankCode) {
			return order{}, refuse(http.StatusBadRequest, "invalid_account", "an account is ten digits and the code of a bank")
		}
		if in == (asked{accountSlow, rail.TestBankCode}) {
			b.dawdle(r, slowly)
		}
		return order{}, nil
	}, func(f books, _ order, _ *http.Request) (answered, error) {
		out := resolved{asked: in}
		switch {
		case in.BankCode != rail.TestBankCode: // no other bank is pretended
		case in.AccountNumber == accountFound:
			out.Found, out.AccountName = true, defaultPayer
		case in.AccountNumber == accountDown:
			return answered{}, refuse(http.StatusServiceUnavailable, "issuer_down", "the bank of this account does not answer")
		default:
			m, found, err := f.instrumentBy("account", in.AccountNumber)
			if err != nil {
				return answered{}, err
			}
			out.Found, out.AccountName = found, m.AccountName // a virtual account
		}
		return answered{status: http.StatusOK, body: out}, nil
	})(w, r)
}

// lookUpIdentity is POST /bank/v1/identities/look-up: BVN and NIN matching.
func (b *Bank) lookUpIdentity(w http.ResponseWriter, r *http.Request) {
	var in person
	b.railCall("look_up_identity", func(w http.ResponseWriter, r *http.Request) (order, error) {
		if err := readJSON(w, r, &in); err != nil {
			if p, ok := errors.AsType[*problem](err); ok && p.Code == "malformed_json" {
				err = refuse(p.status, p.Code, "the body is not a person") // the decoder's own words may repeat a number
			}
			return order{}, err
		}
		switch {
		case !referenceForm.MatchString(in.Reference) || personForm.MatchString(in.Reference):
			return order{}, refuse(http.StatusBadRequest, "invalid_reference", "a reference has 1 to 100 of A-Z a-z 0-9 . _ = -")
		case in.Type != flow.BVN && in.Type != flow.NIN:
			return order{Reference: in.Reference}, refuse(http.StatusBadRequest, "invalid_type", "the type is bvn or nin")
		case !personForm.MatchString(in.Number):
			return order{Reference: in.Reference}, refuse(http.StatusBadRequest, "invalid_number", "a number has eleven digits")
		case in.FirstName == "" || in.LastName == "":
			return order{Reference: in.Reference}, refuse(http.StatusBadRequest, "invalid_name", "a person has a first and a last name")
		}
		return order{Reference: in.Reference}, nil
	}, func(books, order, *http.Request) (answered, error) {
		out := compared{Reference: in.Reference, Found: true, FirstName: flow.MatchExact, LastName: flow.MatchExact, DateOfBirth: flow.MatchExact}
		switch in.Number {
		case personMatches:
		case personPartly:
			out.LastName = flow.MatchPartial
		case personIsAnother:
			out.FirstName, out.LastName, out.DateOfBirth = flow.MatchNone, flow.MatchNone, flow.MatchNone
		default:
			out = compared{Reference: in.Reference}
		}
		if in.DateOfBirth == "" {
			out.DateOfBirth = ""
		}
		return answered{status: http.StatusOK, body: out}, nil
	})(w, r)
}

// dawdle waits, unless the caller or the bank goes first.
func (b *Bank) dawdle(r *http.Request, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-b.closing:
	}
}
