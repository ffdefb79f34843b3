package flow

import "time"

// ProposalID names what one person wants done with much money, until a second one
// has agreed: wsp_prp_….
type ProposalID string

// PrefixProposal is the prefix of the ids of proposals.
const PrefixProposal = "wsp_prp_"

// ProposalLife is how long a proposal waits for a second person.
const ProposalLife = 24 * time.Hour

// MoneyAct is what a person can have done with money that is there already.
type MoneyAct string

// The acts, by the names that the audit log knows them by.
const (
	ActAccept   MoneyAct = "payment.accept"      // set-aside money goes to the merchant
	ActSendBack MoneyAct = "payment.send_back"   // it goes back to who paid it
	ActRetry    MoneyAct = "refund.retry"        // a refund that did not work is sent once more
	ActByHand   MoneyAct = "refund.done_by_hand" // it was paid by hand, and the bank is told nothing
)

// OfRefund says whether an act is about a refund, and not about a payment.
func (a MoneyAct) OfRefund() bool { return a == ActRetry || a == ActByHand }

// ProposalStatus is where a proposal stands.
type ProposalStatus string

// The states of a proposal. All but the first are its end.
const (
	ProposalOpen    ProposalStatus = "OPEN"
	ProposalAgreed  ProposalStatus = "AGREED" // and done
	ProposalRefused ProposalStatus = "REFUSED"
	ProposalExpired ProposalStatus = "EXPIRED" // nobody agreed in time
)

// Proposal is what one person wants done with so much money that a second one has
// to agree. Who they are is told by their e-mail addresses, which nobody shares.
type Proposal struct {
	ID       ProposalID
	Project  ProjectID
	Session  SessionID // "" of money without one
	Act      MoneyAct
	Subject  string    // id of the payment or the refund
	Amount   Kobo      // that it was about when it was asked for
	Reason   string    // of who asked
	Transfer string    // of what was paid by hand: the bank's name of it
	SentAt   time.Time // and when the bank sent it
	Key      string    // id of who asked, as records show it
	By       string    // their e-mail address
	At       time.Time
	Status   ProposalStatus
	EndedBy  string // e-mail address of the second person; of who refused, or took back
	EndedWhy string
	EndedAt  time.Time
}

// Open says whether a proposal still waits.
func (p Proposal) Open(now time.Time) bool {
	return p.Status == ProposalOpen && now.Before(p.At.Add(ProposalLife))
}

// Agree is a proposal that a second person agrees to; amount is what it is about by
// now. Errors: payment_not_resolvable.
func (p Proposal) Agree(by, why string, amount Kobo, now time.Time) (Proposal, error) {
	switch {
	case !p.Open(now):
		return p, Refuse(CodeNotResolvable, "This does not wait any more: %s.", p.ended(now))
	case by == "" || by == p.By:
		return p, Refuse(CodeNotResolvable, "You asked for this yourself: somebody else has to agree.")
	case amount == 0:
		return p, Refuse(CodeNotResolvable, "This money was decided about otherwise meanwhile, went back by itself, or was taken back by the bank. Refuse it.")
	case amount != p.Amount:
		return p, Refuse(CodeNotResolvable, "It is about %s by now, and %s was asked for. Refuse it, and ask again.", amount.Naira(), p.Amount.Naira())
	}
	return p.end(ProposalAgreed, by, why, now), nil
}

// Refuse is a proposal that somebody refuses, or that who asked takes back.
// Errors: payment_not_resolvable.
func (p Proposal) Refuse(by, why string, now time.Time) (Proposal, error) {
	if !p.Open(now) {
		return p, Refuse(CodeNotResolvable, "This does not wait any more: %s.", p.ended(now))
	}
	return p.end(ProposalRefused, by, why, now), nil
}

func (p Proposal) end(as ProposalStatus, by, why string, now time.Time) Proposal {
	p.Status, p.EndedBy, p.EndedWhy, p.EndedAt = as, by, why, now
	return p
}

// ended says for people how a proposal ended.
func (p Proposal) ended(now time.Time) string {
	switch {
	case p.Status == ProposalAgreed:
		return p.EndedBy + " agreed, and it was done"
	case p.Status == ProposalRefused:
		return p.EndedBy + " refused it"
	case p.Status == ProposalExpired || !p.Open(now):
		return "nobody agreed within 24 hours"
	}
	return "it ended"
}
