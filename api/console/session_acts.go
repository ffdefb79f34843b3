package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"till/flow"
	"till/flow/checkout"
)

// audited keeps what is about to be done about a session, in the session's own
// project whatever the visitor looks at.
func (c *Console) audited(v *visit, s flow.Session, action, subject, reason string, reasoned bool) error {
	return c.cfg.Accounts.Audit(v.ctx, flow.Audited{
		Actor: v.who.Email, Role: v.who.Role, Account: v.who.Account, Project: s.Project, Environment: v.env,
		Action: action, Subject: subject, Reason: reason,
	}, reasoned)
}

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
	reason, done := v.field("reason"), ""
	if err = c.audited(v, s, action, cmp.Or(subject, string(s.ID)), reason, true); err == nil {
		done, err = do(s)
	}
	if err != nil {
		return c.refusedAct(v, err, sessionView{Reason: reason})
	}
	return v.to("/sessions/"+string(s.ID), done)
}

// refusedAct shows the page again where a refusal is about what was typed or
// about now; others are the foundation's to show.
func (c *Console) refusedAct(v *visit, err error, form sessionView) error {
	here := []flow.Code{
		flow.CodeMissingField, flow.CodeInvalidField, flow.CodeRateLimited, flow.CodeNotResolvable, flow.CodeRailUnavailable, flow.CodeEndpointDisabled,
		flow.CodeProjectSuspended, flow.CodeRefundNotRetryable, flow.CodeRefundOverBalance,
	}
	code := flow.CodeOf(err)
	if !slices.Contains(here, code) {
		return err
	}
	form.Wrong = "Not done: " + plainWords(err)
	v.http.Status(c.cfg.Status(code))
	return c.showSession(v, form)
}

// revealPhone is POST /sessions/{id}/reveal: the payer's phone, once.
func (c *Console) revealPhone(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	reason := v.field("reason")
	if err := c.audited(v, s, "phone.reveal", string(s.ID), reason, true); err != nil {
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
	if err = c.audited(v, s, "session.note", string(s.ID), "", false); err == nil {
		err = v.service.Note(v.ctx, s.Project, s.ID, v.who.Email, text)
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

// call is a command that only this page hears the answer of.
func call(project flow.ProjectID) checkout.Call {
	return checkout.Call{Project: project, Render: func(checkout.Made) (int, []byte, error) { return http.StatusOK, nil, nil }}
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
		to := 0
		how := call(s.Project)
		how.Render = func(m checkout.Made) (int, []byte, error) {
			to = len(m.Sending.To)
			return http.StatusOK, nil, nil
		}
		if _, err := v.service.Resend(v.ctx, id, "", how); err != nil {
			return "", err
		}
		if to == 0 {
			return "", flow.Refuse(flow.CodeInvalidField, "No endpoint of this project wants %s: there is nobody to send it to.", e.Kind)
		}
		return fmt.Sprintf("%s is on its way to %d endpoint(s).", e.Kind, to), nil
	})
}

// decision reads what a form decides about set-aside money: never without the
// box that confirms it.
func (v *visit) decision() (accept bool, err error) {
	switch v.field("decision") {
	case "accept":
		accept = true
	case "refund":
	default:
		return false, flow.Refuse(flow.CodeInvalidField, "Decide: accept the money, or send it back.")
	}
	if v.field("confirm") != "yes" {
		return false, flow.Refuse(flow.CodeMissingField, "Tick the box: this cannot be undone.")
	}
	return accept, nil
}

// resolve gives set-aside money to its merchant, or sends it back.
func (v *visit) resolve(project flow.ProjectID, id flow.PaymentID, accept bool) (string, error) {
	_, err := v.service.Resolve(v.ctx, id, checkout.NewResolution{Accept: accept, Key: v.by(), Reason: v.field("reason")}, call(project))
	if accept {
		return "The money is accepted.", err
	}
	return "The money goes back to who paid it.", err
}

// by is the id of who decides, as a payment's record shows it.
func (v *visit) by() string { return cmp.Or(v.who.Person, v.who.Account, string(v.who.Role)) }

// retryRefund is POST /sessions/{id}/retry: a refund that did not work is sent
// once more.
func (c *Console) retryRefund(v *visit) error {
	if v.field("confirm") != "yes" {
		return c.refusedAct(v, flow.Refuse(flow.CodeMissingField, "Tick the box: this cannot be undone."), sessionView{Reason: v.field("reason")})
	}
	id := flow.RefundID(v.field("refund"))
	return c.sessionAct(v, "refund.retry", string(id), func(s flow.Session) error {
		r, err := v.service.ViewRefund(v.ctx, s.Project, id)
		if err == nil && r.Session != s.ID {
			err = flow.Refuse(flow.CodeNotFound, "There is no refund %q of this session.", id)
		}
		return err
	}, func(s flow.Session) (string, error) {
		_, err := v.service.RetryRefund(v.ctx, id, v.by(), call(s.Project))
		return "The bank is told of the refund once more.", err
	})
}

// resolvePayment is POST /sessions/{id}/resolve.
func (c *Console) resolvePayment(v *visit) error {
	accept, err := v.decision()
	if err != nil {
		return c.refusedAct(v, err, sessionView{Reason: v.field("reason")})
	}
	id := flow.PaymentID(v.field("payment"))
	return c.sessionAct(v, decided(accept), string(id), func(s flow.Session) error {
		p, err := v.service.Payment(v.ctx, s.Project, id)
		if err == nil && p.Session != s.ID {
			err = flow.Refuse(flow.CodeNotFound, "There is no payment %q of this session.", id)
		}
		return err
	}, func(s flow.Session) (string, error) { return v.resolve(s.Project, id, accept) })
}

// decided is how a decision stands in the audit log.
func decided(accept bool) string {
	if accept {
		return "payment.accept"
	}
	return "payment.send_back"
}

// resolveUnmatched is POST /exceptions/resolve: money that no session is of.
func (c *Console) resolveUnmatched(v *visit) error {
	accept, err := v.decision()
	if err != nil {
		return err
	}
	id := flow.PaymentID(v.field("payment"))
	p, err := v.service.Reader().Payment(v.ctx, id)
	if err == nil && (p.Session != "" || v.project.ID != "" && p.Project != v.project.ID) {
		err = flow.Refuse(flow.CodeNotFound, "There is no such payment that belongs to no session.")
	}
	if err == nil && p.Project == "" {
		err = flow.Refuse(flow.CodeNotResolvable, "This money came to no project of ours, so that there is nobody to give it to and no books to send it back from. Settle it with the bank.")
	}
	if err != nil {
		return err
	}
	if err := c.audited(v, flow.Session{Project: p.Project}, decided(accept), string(id), v.field("reason"), true); err != nil {
		return err
	}
	done, err := v.resolve(p.Project, id, accept)
	if err != nil {
		return err
	}
	return v.to("/exceptions?queue=unmatched", done)
}
