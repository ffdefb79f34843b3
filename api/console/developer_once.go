package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// once is the form as a call that happens once. Each page gives its forms a token
// (view.Once): the same form with the same token, as a reload sends it, gets the
// same answer and makes nothing new. What is kept of the answer opens with the
// token, the form and the visitor's own cookie together alone. show is what is
// kept: what the answer's page is made of.
func (v *visit) once(show func(checkout.Made) any) checkout.Call {
	call := checkout.Call{Scope: "console/" + v.who.Account, Project: v.project.ID, Render: func(m checkout.Made) (int, []byte, error) {
		body, err := json.Marshal(show(m))
		return http.StatusOK, body, err
	}}
	token := v.field("once")
	if token == "" {
		return call
	}
	const bound = 64
	sum := func(what, with string) []byte {
		h := sha256.New()
		for _, part := range []string{what, v.http.Path(), token[:min(len(token), bound)], string(v.http.Body()), with} {
			one := sha256.Sum256([]byte(part)) // so that no two lists of parts run together
			_, _ = h.Write(one[:])
		}
		return h.Sum(nil)
	}
	call.Key = hex.EncodeToString(sum("key", ""))
	call.Hash = hex.EncodeToString(sum("hash", ""))
	call.Secret = sum("secret", v.text)
	return call
}

// plainly is once for a form of a project of whose answer nothing is kept.
func (v *visit) plainly(project flow.ProjectID) checkout.Call {
	how := v.once(func(checkout.Made) any { return nil })
	how.Project = project
	return how
}

// onlyOnce does what a form of a project orders unless the same form did it already: who
// presses twice reads what came of it, and not that it cannot be done any more.
func (v *visit) onlyOnce(project flow.ProjectID, do func() error) error {
	_, err := v.service.Once(v.ctx, v.plainly(project), func() (checkout.Answer, error) {
		return checkout.Answer{Status: http.StatusOK}, do()
	})
	return err
}
