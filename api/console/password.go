package console

import (
	"till/flow"
)

// passwordView is what the page of one's own password is given.
type passwordView struct{ Wrong []string }

// passwordPage is GET /password.
func (c *Console) passwordPage(v *visit) error { return v.show("password", "Password", passwordView{}) }

// changePassword is POST /password.
func (c *Console) changePassword(v *visit) error {
	t := v.typing()
	to := t.password("new", "The new password")
	if to != "" && to != v.form.Get("again") {
		t.fail("The new password was not typed the same twice.")
	}
	if to != "" && to == v.form.Get("old") {
		t.fail("The new password is the old one.")
	}
	err := error(flow.Refuse(flow.CodeInvalidField, "The new password cannot be used."))
	if t.ok() {
		if err := v.audit("password.change", v.who.Email, "", false); err != nil {
			return err
		}
		err = c.cfg.Accounts.ChangePassword(v.ctx, v.who, v.form.Get("old"), to, c.cfg.Address(v.http))
		switch code := flow.CodeOf(err); {
		case err == nil:
			return v.to("/password", "Changed. Every other login of yours has ended; this one goes on.")
		case code == flow.CodeCredentials:
			t.fail("The old password is not right.")
		case code == flow.CodeRateLimited:
			t.fail("%s", plainWords(err))
		default:
			return err
		}
	}
	v.http.Status(v.refused(err))
	return v.show("password", "Password", passwordView{Wrong: t.Wrong})
}
