package flow

import "time"

// This file decides about what a bank can say beside "it came" and "it was
// refused": money that is on its way, that was sent back, that was taken back.

// Coming takes in that the bank knows of money which has not arrived: nobody
// cancels the session, or lets it expire, while it may still be paid.
func Coming(s Session) (Change, error) {
	if s.Status != SessionPending {
		return Change{}, nil
	}
	s, err := s.move(triggerProcess)
	if err != nil {
		return Change{}, err
	}
	return Change{Session: &s}, nil
}

// Resume takes in that the bank knows of no money on its way any more.
func Resume(s Session) (Change, error) {
	if s.Status != SessionProcessing {
		return Change{}, nil
	}
	s, err := s.landed()
	if err != nil {
		return Change{}, err
	}
	return Change{Session: &s}, nil
}

// landed is a session that no money is on its way to.
func (s Session) landed() (Session, error) {
	if s.Status != SessionProcessing {
		return s, nil
	}
	return s.move(triggerResume)
}

// SentBack takes in that the bank sent money back by itself, because it was not
// what was asked for. It never was ours: nothing is booked, and no merchant is
// told; who sent it is.
func SentBack(s Session, a Attempt, n Notice) (Change, error) {
	change, err := Resume(s)
	if err != nil {
		return Change{}, err
	}
	change.News = []News{{Kind: NewsSentBack, Attempt: a.ID, Amount: n.Amount}}
	return change, nil
}

// TakeBack takes in that the bank took a payment back, or a part of it. booked is
// all that was posted for the payment, asking is Asking of the session's attempts.
// Session and attempt are zero for money that belongs to nothing of ours.
//
// A session that is paid stays so, with an exception that says what happened. Of
// one that waits for the rest the part is gone, and asked for again. What came
// beyond what was asked for, lay beside what it is paid with, or was to go back by
// policy, is only told: the payment itself still stands, or all of it is still asked for.
func TakeBack(s Session, asking Attempt, p Payment, booked []Posting, b TakenBack) Change {
	b.Payment, b.Project, b.Session = p.ID, p.Project, p.Session
	b.Postings = takeBack(booked, b.Amount, p.Reversed+b.Amount >= p.Amount)
	held := p.Unapplied
	if !p.held() || s.Status == SessionPaid {
		held = 0
	}
	p.Reversed += b.Amount
	for _, line := range b.Postings {
		switch line.Account {
		case Unapplied:
			p.Unapplied -= line.Amount
		case MerchantPending:
			p.Lost += line.Amount
		case Fees:
			p.FeeBack += line.Amount
		case RailClearing, MerchantAvailable, RefundsPayable, Settled:
		}
	}
	change := Change{TakenBack: &b}
	if p.Unapplied <= 0 && !p.ReturnsAt.IsZero() { // nothing is left that could go back
		p.ReturnsAt = time.Time{}
		change.Payments = []Payment{p}
	}
	if s.ID == "" {
		if p.Project != "" {
			change.Facts = []Fact{{Kind: PaymentReversed, Payment: &p}}
		}
		return change
	}
	change.Session = &s
	change.Facts = []Fact{{Kind: ChargeReversed, Attempt: p.Attempt, Payment: &p}}
	change.News = []News{{Kind: NewsReversed, Attempt: p.Attempt, Payment: &p, Amount: b.Amount}}
	if p.apart() || p.owedBack(s) || p.spares(s) {
		return change
	}
	s = s.With(Reversed)
	if held > 0 { // what was refunded of a part does not count any more
		if s.AmountPaid = max(s.AmountPaid-min(b.Amount, held), 0); s.AmountPaid == 0 {
			s = s.Without(PartiallyPaid)
		}
		if asking, other := s.AskForRest(asking); other {
			change.Attempts = []Attempt{asking}
		}
	}
	return change
}
