package flow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
)

// VerificationID names one look-up of a person's identity: wsp_ver_….
type VerificationID string

// PrefixVerification is the prefix of the ids of verifications.
const PrefixVerification = "wsp_ver_"

// IdentityType is which register a person is looked up in.
type IdentityType string

// The registers: the Bank Verification Number, which NIBSS keeps for the banks,
// and the National Identification Number of NIMC.
const (
	BVN IdentityType = "bvn"
	NIN IdentityType = "nin"
)

// The bounds of a verification.
const (
	// VerificationLasts is how long a look-up may take before it has failed.
	VerificationLasts = time.Minute
	// VerificationKept is how long its outcome can be read.
	VerificationKept = 90 * 24 * time.Hour
	// identityDigits is how long a BVN and a NIN are.
	identityDigits = 11
)

// IdentityNumber is a person's BVN or NIN. It lives in memory only: whatever
// prints or encodes it gets its mask, and Reveal is for the call to the rail
// alone. The zero value is no number. The digits stand behind a pointer, because
// package fmt looks into the unexported fields of whatever struct holds it.
type IdentityNumber struct{ digits *string }

// ReadIdentityNumber reads eleven digits; ok is false for anything else.
func ReadIdentityNumber(text string) (n IdentityNumber, ok bool) {
	if len(text) != identityDigits || strings.Trim(text, "0123456789") != "" {
		return IdentityNumber{}, false
	}
	return IdentityNumber{&text}, true
}

// Reveal is the number itself, "" for none.
func (n IdentityNumber) Reveal() string {
	if n.digits == nil {
		return ""
	}
	return *n.digits
}

// Mask is the number with all but its last two digits hidden.
func (n IdentityNumber) Mask() string {
	const shown = 2
	digits := n.Reveal()
	if digits == "" {
		return ""
	}
	return strings.Repeat("*", len(digits)-shown) + digits[len(digits)-shown:]
}

// Format prints the mask, whatever the verb: %d and %#v would look inside.
func (n IdentityNumber) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, n.Mask()) }

// MarshalText encodes the mask, in JSON and in logs.
func (n IdentityNumber) MarshalText() ([]byte, error) { return []byte(n.Mask()), nil }

// Fingerprint says whether two look-ups of a project were about one number,
// without saying which: HMAC-SHA256 under a secret of this installation. A bare
// hash would not do, for there are only 10^11 numbers to try.
func (n IdentityNumber) Fingerprint(pepper []byte, project ProjectID, kind IdentityType) string {
	mac := hmac.New(sha256.New, pepper)
	for _, part := range []string{"identity", string(project), string(kind), n.Reveal()} {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part) // lengths, so that no two inputs run together
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// Match is how well what was given agrees with the register; "" where nothing
// was given or nothing is known yet.
type Match string

// The degrees of a match.
const (
	MatchExact   Match = "EXACT"
	MatchPartial Match = "PARTIAL"
	MatchNone    Match = "NONE"
)

// Matches is what a register answers about a person. DateOfBirth is "" where
// none was given.
type Matches struct {
	FirstName   Match
	LastName    Match
	DateOfBirth Match
}

// NoMatch is the answer about a number that nobody has.
func NoMatch(withBirth bool) Matches {
	m := Matches{FirstName: MatchNone, LastName: MatchNone}
	if withBirth {
		m.DateOfBirth = MatchNone
	}
	return m
}

// Status judges an answer. One name that agrees may be a relative's: only when
// everything given agrees exactly is it a match, and without any name it is none.
func (m Matches) Status() VerificationStatus {
	switch {
	case m.FirstName == MatchNone && m.LastName == MatchNone:
		return VerificationNotMatched
	case m.FirstName == MatchExact && m.LastName == MatchExact && (m.DateOfBirth == MatchExact || m.DateOfBirth == ""):
		return VerificationMatched
	}
	return VerificationPartial
}

// VerificationStatus is where a verification stands. It leaves PENDING once.
type VerificationStatus string

// The states of a verification. FAILED means that the register did not answer,
// which says nothing about the person.
const (
	VerificationPending    VerificationStatus = "PENDING"
	VerificationMatched    VerificationStatus = "MATCHED"
	VerificationPartial    VerificationStatus = "PARTIAL"
	VerificationNotMatched VerificationStatus = "NOT_MATCHED"
	VerificationFailed     VerificationStatus = "FAILED"
)

// Why a verification ended as it did, where its status does not say it all.
const (
	ReasonNoSuchNumber  = "number_not_found" // NOT_MATCHED: nobody has this number
	ReasonInterrupted   = "interrupted"      // FAILED: the process ended during the look-up
	ReasonRailRejected  = string(CodeRailRejected)
	ReasonRailAway      = string(CodeRailUnavailable)
	ReasonRailTimeout   = string(CodeRailTimeout)
	ReasonInternalFault = string(CodeInternal)
)

// Verification is one look-up of a person, as it is kept: never the number, and
// neither the names nor the date that it was compared with.
type Verification struct {
	ID          VerificationID
	Project     ProjectID
	Key         string // id of the API key that asked
	Type        IdentityType
	Fingerprint string // of the number
	Mask        string // of the number
	Purpose     string // what the person consented to
	Status      VerificationStatus
	Matches     Matches
	Reason      string
	CreatedAt   time.Time
	DueAt       time.Time // when it has failed if nothing was heard
	DoneAt      time.Time // zero while PENDING
}

// Answered ends a verification with what the register said; reason may be "".
func (v Verification) Answered(m Matches, reason string, now time.Time) Verification {
	v.Status, v.Matches, v.Reason, v.DoneAt = m.Status(), m, reason, now
	return v
}

// Failed ends a verification that the register did not answer.
func (v Verification) Failed(reason string, now time.Time) Verification {
	v.Status, v.Matches, v.Reason, v.DoneAt = VerificationFailed, Matches{}, reason, now
	return v
}

// EventKind is what the merchant is told of its end. A merchant who reads the
// kind alone must not take a stranger in: only a full match is a verified one.
func (v Verification) EventKind() EventKind {
	if v.Status == VerificationMatched {
		return IdentityVerified
	}
	return IdentityFailed
}

// VerificationRecord is a verification as its merchant reads it.
type VerificationRecord struct {
	ID           VerificationID     `json:"id"`
	Type         IdentityType       `json:"type"`
	Status       VerificationStatus `json:"status"`
	Matches      MatchesRecord      `json:"matches"`
	NumberMasked string             `json:"numberMasked"`
	Purpose      string             `json:"purpose"`
	Reason       *string            `json:"reason"`
	Livemode     bool               `json:"livemode"`
	CreatedAt    string             `json:"createdAt"`
	CompletedAt  *string            `json:"completedAt"`
	ExpiresAt    string             `json:"expiresAt"`
}

// MatchesRecord is what agreed; null where it is not known, or was not given.
type MatchesRecord struct {
	FirstName   *string `json:"firstName"`
	LastName    *string `json:"lastName"`
	DateOfBirth *string `json:"dateOfBirth"`
}

// Expires is until when the outcome can be read.
func (v Verification) Expires() time.Time { return v.CreatedAt.Add(VerificationKept) }

// RecordVerification makes the record of a verification.
func RecordVerification(v Verification, around Surroundings) VerificationRecord {
	return VerificationRecord{
		ID: v.ID, Type: v.Type, Status: v.Status, NumberMasked: v.Mask, Purpose: v.Purpose, Reason: OrNull(v.Reason),
		Livemode: around.Live, CreatedAt: Stamp(v.CreatedAt), CompletedAt: StampOrNull(v.DoneAt), ExpiresAt: Stamp(v.Expires()),
		Matches: MatchesRecord{
			FirstName: OrNull(v.Matches.FirstName), LastName: OrNull(v.Matches.LastName),
			DateOfBirth: OrNull(v.Matches.DateOfBirth),
		},
	}
}
