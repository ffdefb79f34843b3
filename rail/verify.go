package rail

import (
	"context"
	"errors"

	"till/flow"
)

// ErrNotFound says that the provider looked, and there is no such account, number
// or order.
var ErrNotFound = errors.New("the bank knows of none by this name or number")

// Verifier is what a rail may offer beside payments: to say whose an account is
// and whether a person is who they say. Both only ask; asking twice does no
// harm. Errors are those of Rail, and ErrNotFound.
//
// A provider's own words may repeat a number that it was asked about. An error
// of LookUpIdentity is therefore to be told by which of the errors it is, and
// its text neither kept nor logged.
type Verifier interface {
	// ResolveAccount returns the name that an account is held under.
	ResolveAccount(ctx context.Context, a Account) (name string, err error)
	// LookUpIdentity compares a person with a register.
	LookUpIdentity(ctx context.Context, p Person) (flow.Matches, error)
}

// Account is a bank account.
type Account struct {
	Number   string // ten digits
	BankCode string
}

// Told names an account to whoever asks later which it was: its bank, and the end of
// its number.
func (a Account) Told() string {
	bank, _ := BankByCode(a.BankCode)
	return bank.Name + ", account ending in " + a.Number[max(len(a.Number)-4, 0):]
}

// Person is who is looked up, with their consent.
type Person struct {
	Verification flow.VerificationID // ours, for the provider's records
	Type         flow.IdentityType
	Number       flow.IdentityNumber
	FirstName    string
	LastName     string
	DateOfBirth  string // YYYY-MM-DD, "" where it is not compared
}
