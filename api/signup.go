package api

import (
	"net/http"

	"till/flow"
)

// The bounds of a password, in characters. The upper one keeps hashing cheap
// to refuse.
const (
	minPassword = 10
	maxPassword = 128
)

type signedUpRecord struct {
	Account accountRecord `json:"account"`
	Project projectRecord `json:"project"`
	Keys    keysRecord    `json:"keys"`
}

type accountRecord struct {
	ID           string `json:"id"`
	Email        string `json:"email"`
	BusinessName string `json:"businessName"`
	CreatedAt    string `json:"createdAt"`
}

type projectRecord struct {
	ID        flow.ProjectID `json:"id"`
	Name      string         `json:"name"`
	CreatedAt string         `json:"createdAt"`
}

type keysRecord struct {
	Environment flow.Environment `json:"environment"`
	PublicKey   string           `json:"publicKey"`
	SecretKey   string           `json:"secretKey"` // shown here and never again
}

// signUp is POST /v1/auth/signup: an account, its first project and its test keys.
func (s *Server) signUp(c *call) error {
	f, err := c.form(decodeRules{})
	if err != nil {
		return err
	}
	email := f.email("email")
	password := f.text("password", text{required: true, least: minPassword, most: maxPassword})
	business := f.text("businessName", text{required: true, most: maxName})
	if err := f.done(); err != nil {
		return err
	}
	made, err := s.cfg.Accounts.SignUp(c.ctx, email, password, business)
	if err != nil {
		return err
	}
	return c.send(http.StatusCreated, signedUpRecord{
		Account: accountRecord{made.Account.ID, made.Account.Email, made.Account.Business, flow.Stamp(made.Account.CreatedAt)},
		Project: projectRecord{made.Project.ID, made.Project.Name, flow.Stamp(made.Project.CreatedAt)},
		Keys:    keysRecord{flow.Test, made.PublicKey, made.SecretKey},
	})
}
