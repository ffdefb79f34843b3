package console

import (
	"encoding/json"
	"fmt"
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// signUpView is what the page to sign up is given.
type signUpView struct {
	Email    string
	Business string
	Wrong    []string
}

// signUpPage is GET /signup.
func (c *Console) signUpPage(v *visit) error { return c.askSignUp(v, signUpView{}) }

func (*Console) askSignUp(v *visit, data signUpView) error {
	if v.who.Role != "" {
		return v.to("/developers", "You are logged in already.")
	}
	v.greet()
	return v.show("signup", "Sign up", data)
}

// signedUp is what is kept, sealed, of a sign-up.
type signedUp struct{ Public, Secret string }

// signUp is POST /signup: an account, its first project and its test keys, and
// whoever made it is logged in.
func (c *Console) signUp(v *visit) error {
	if v.who.Role != "" {
		return v.to("/developers", "You are logged in already.")
	}
	t := v.typing()
	email := t.email("email")
	business := t.text("business", "The name of your business", 1, maxTypedName, false)
	password := t.password("password", "The password")
	again := func() error {
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return c.askSignUp(v, signUpView{v.field("email"), v.field("business"), t.Wrong})
	}
	if !t.ok() {
		return again()
	}
	address := c.cfg.Address(v.http)
	if err := c.cfg.Accounts.MaySignUp(v.ctx, address); err != nil {
		return err
	}
	call := v.once(func(m checkout.Made) any { return signedUp{m.SignedUp.PublicKey, m.SignedUp.SecretKey} })
	a, err := c.cfg.Accounts.SignUp(v.ctx, email, password, business, address, call)
	if flow.CodeOf(err) == flow.CodeInvalidField {
		t.fail("An account with this e-mail address exists. Log in instead.")
		return again()
	}
	if err != nil {
		return err
	}
	var made signedUp
	if err := json.Unmarshal(a.Body, &made); err != nil {
		return fmt.Errorf("read the keys of a sign-up: %w", err)
	}
	in, err := c.cfg.Accounts.Enter(v.ctx, email, password, address)
	if err != nil {
		return err
	}
	v.setCookie(visitCookie, in.Text, int(flow.DashboardLife.Seconds()))
	v.text, v.who = in.Text, in.Visit
	if err := v.choose(); err != nil {
		return err
	}
	return v.show("secret", "Your test keys", secretView{
		Lead:    "Welcome. These are your test keys: no papers needed, and no real money moves with them. The secret one is shown on this page alone: copy it now.",
		Secrets: []shownSecret{{"Secret key, for your server", made.Secret}, {"Public key, for pages and apps", made.Public}},
		Next:    "/developers/snippets", Words: "I have copied it: to the first request", Command: c.firstRequest(made.Secret),
	})
}

// firstRequest is a command that opens a session.
func (c *Console) firstRequest(secret string) string {
	return "curl " + c.cfg.PublicURL + "/v1/whatsapp/checkout/sessions -H \"Authorization: Bearer " + secret +
		"\" -H 'Content-Type: application/json' -d '{\"amount\": 500000, \"customerEmail\": \"ada@example.com\"}'"
}
