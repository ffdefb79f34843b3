package flow

import (
	"errors"
	"time"
)

// KYCStatus says how far an operator knows who is behind a project. Live keys
// only work for a project that is APPROVED.
type KYCStatus string

// The states of a project's KYC.
const (
	KYCNone      KYCStatus = "NONE"
	KYCSubmitted KYCStatus = "SUBMITTED"
	KYCApproved  KYCStatus = "APPROVED"
	KYCRejected  KYCStatus = "REJECTED"
	KYCSuspended KYCStatus = "SUSPENDED"
)

// KYCStatuses are all states of a project's KYC.
func KYCStatuses() []KYCStatus {
	return []KYCStatus{KYCNone, KYCSubmitted, KYCApproved, KYCRejected, KYCSuspended}
}

// Ruling is what an operator may decide about a project.
type Ruling string

// The rulings of an operator.
const (
	Approve Ruling = triggerApprove
	Reject  Ruling = triggerReject
	Suspend Ruling = triggerSuspend
)

// KYCDetails is what a merchant says of its business. All of it is optional: an
// operator asks for what is missing by rejecting with a reason.
type KYCDetails struct {
	LegalName          string `json:"legalName,omitempty"`
	RegistrationNumber string `json:"registrationNumber,omitempty"`
	Address            string `json:"address,omitempty"`
	ContactName        string `json:"contactName,omitempty"`
	ContactPhone       Phone  `json:"contactPhone,omitempty"`
	Website            string `json:"website,omitempty"`
}

// KYCMove is one step of a project's KYC, kept for ever.
type KYCMove struct {
	Project ProjectID
	From    KYCStatus
	To      KYCStatus
	At      time.Time
	Reason  string     // of an operator's decision
	Details KYCDetails // of a submission
}

// SubmitKYC is a merchant handing in what it is known by. Errors:
// project_suspended, kyc_not_submittable.
func SubmitKYC(p Project, d KYCDetails, now time.Time) (KYCMove, error) {
	if p.KYC == KYCSuspended {
		return KYCMove{}, p.mayGoLive()
	}
	to, err := move(kycTable, string(p.KYC), triggerSubmit)
	if _, illegal := errors.AsType[*IllegalMove](err); illegal {
		return KYCMove{}, Refuse(CodeKYCDecided, "The KYC of this project is %s: there is nothing to submit.", p.KYC)
	}
	return KYCMove{Project: p.ID, From: p.KYC, To: KYCStatus(to), At: now, Details: d}, err
}

// DecideKYC is an operator's decision about a project. Errors: *IllegalMove.
func DecideKYC(p Project, d Ruling, reason string, now time.Time) (KYCMove, error) {
	to, err := move(kycTable, string(p.KYC), string(d))
	return KYCMove{Project: p.ID, From: p.KYC, To: KYCStatus(to), At: now, Reason: reason}, err
}

// MayUse says whether the project may act in an environment. Errors:
// kyc_required, project_suspended.
func (p Project) MayUse(env Environment) error {
	if env != Live {
		return nil
	}
	return p.mayGoLive()
}

// NotSuspended refuses what a suspended project asks for in live, which needs no
// approval otherwise. Errors: project_suspended.
func (p Project) NotSuspended(env Environment) error {
	if env == Live && p.KYC == KYCSuspended {
		return p.mayGoLive()
	}
	return nil
}

func (p Project) mayGoLive() error {
	switch p.KYC {
	case KYCApproved:
		return nil
	case KYCSuspended:
		return Refuse(CodeProjectSuspended, "This project is suspended: its live keys do not work. Ask support about it.")
	case KYCNone, KYCSubmitted, KYCRejected:
	}
	return Refuse(CodeKYCRequired, "Live keys need an approved KYC; this project's is %s. See POST /v1/projects/{id}/kyc.", p.KYC)
}
