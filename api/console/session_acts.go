package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"till/flow"
	"till/flow/checkout"
)

// sessionAct does something about a session for a reason, once that is kept. What is
// refused is told beside the forms, as they were filled in. subject "" is the
// session; of another one theirs says whether it is the session's: nothing is kept
// of what somebody only says that they did to a stranger's.
func (c *Console) sessionAct(v *visit, action, subject string, theirs func(s flow.Session) error, do func(s flow.Session) (done string, err error)) error {
	s, err := v.session()
	if err == nil && theirs != nil {
		err = theirs(s)
	}
	if err != nil {
		return err
	}
	reason, done := v.reason(), ""
	if err = v.auditIn(s.Project, action, cmp.Or(subject, string(s.ID)), reason, true); err == nil {
		done, err = do(s)
	}
	if err != nil {
		return c.refusedAct(v, err, sessionView{Reason: reason})
	}
	return v.to("/sessions/"+string(s.ID), done)
}

// refusedAct shows the page again where a refusal is told beside the form; others are the
// foundation's to show.
func (c *Console) refusedAct(v *visit, err error, form sessionView) error {
	if !v.told(err, &form) {
		return err
	}
	return c.showSession(v, form)
}

// told puts a refusal of what was typed, or for what is so now, into the form that is
// shown again.
func (v *visit) told(err error, form *sessionView) bool {
	here := []flow.Code{
		flow.CodeMissingField, flow.CodeInvalidField, flow.CodeRateLimited, flow.CodeNotResolvable, flow.CodeRailUnavailable, flow.CodeEndpointDisabled,
		flow.CodeProjectSuspended, flow.CodeRefundNotRetryable, flow.CodeRefundOverBalance, flow.CodeRefundExceeds, flow.CodeNotCancellable,
	}
	if !slices.Contains(here, flow.CodeOf(err)) {
		return false
	}
	form.Wrong = "Not done: " + plainWords(err)
	v.http.Status(v.refused(err))
	return true
}

// revealPhone is POST /sessions/{id}/reveal: the payer's phone, once.
func (c *Console) revealPhone(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	reason := v.reason()
	if err := v.auditIn(s.Project, "phone.reveal", string(s.ID), reason, true); err != nil {
		return c.refusedAct(v, err, sessionView{Reason: reason})
	}
	return c.showSession(v, sessionView{Shown: true})
}

// noteSession is POST /sessions/{id}/note.
func (c *Console) noteSession(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	text := v.field("note")
	if err = v.auditIn(s.Project, "session.note", string(s.ID), "", false); err == nil {
		err = v.service.Note(v.ctx, s.ID, v.who.Email, text, v.plainly(s.Project))
	}
	if err != nil {
		return c.refusedAct(v, err, sessionView{Note: text})
	}
	return v.to("/sessions/"+string(s.ID), "The note is kept.")
}

// sayAgain is POST /sessions/{id}/instructions.
func (c *Console) sayAgain(v *visit) error {
	return c.sessionAct(v, "instructions.resend", "", nil, func(s flow.Session) (string, error) {
		chats, err := v.service.SayAgain(v.ctx, s.Project, s.ID, v.who.Email)
		if err == nil && chats == 0 {
			err = flow.Refuse(flow.CodeInvalidField, "Nobody has opened this session in a chat yet, so there is nobody to send to. Give the payer its link.")
			if s.Mode != flow.InChat {
				err = flow.Refuse(flow.CodeInvalidField, "This session has no chat and no link: its merchant shows the payer how to pay. What was made for that stands under “Ways to pay that were opened”.")
			}
		}
		return "The payer is sent once more where the payment stands.", err
	})
}

// askBank is POST /sessions/{id}/check.
func (c *Console) askBank(v *visit) error {
	return c.sessionAct(v, "bank.ask", "", nil, func(s flow.Session) (string, error) {
		return "The bank was asked. What it knows stands in the timeline.", v.service.AskBank(v.ctx, s.Project, s.ID)
	})
}

// resendHere is POST /sessions/{id}/resend.
func (c *Console) resendHere(v *visit) error {
	id := flow.EventID(v.field("event"))
	var e flow.Event
	return c.sessionAct(v, "event.resend", string(id), func(s flow.Session) (err error) {
		if e, err = v.service.Reader().Event(v.ctx, s.Project, id); err == nil && e.Session != s.ID {
			err = flow.Refuse(flow.CodeNotFound, "There is no event %q of this session.", id)
		}
		return err
	}, func(s flow.Session) (string, error) {
		how := v.once(func(m checkout.Made) any { return len(m.Sending.To) })
		how.Project = s.Project
		a, err := v.service.Resend(v.ctx, id, "", how)
		if err != nil {
			return "", err
		}
		to := 0
		if err := json.Unmarshal(a.Body, &to); err != nil {
			return "", fmt.Errorf("read where an event was sent: %w", err)
		}
		if to == 0 {
			return "", flow.Refuse(flow.CodeInvalidField, "No endpoint of this project wants %s: there is nobody to send it to.", e.Kind)
		}
		return fmt.Sprintf("%s is on its way to %d endpoint(s).", e.Kind, to), nil
	})
}

// by is who decides, as a payment's record shows it to its merchant, who knows no
// operator's id.
func (v *visit) by() string {
	if v.who.Role == flow.RoleOperator {
		return flow.ByOperator
	}
	return cmp.Or(v.who.Person, v.who.Account)
}
