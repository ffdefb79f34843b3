package api

import (
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

type signedUpRecord struct {
	Account ownerRecord   `json:"account"`
	Project projectRecord `json:"project"`
	Keys    keysRecord    `json:"keys"`
}

type ownerRecord struct {
	ID           string `json:"id"`
	Email        string `json:"email"`
	BusinessName string `json:"businessName"`
	CreatedAt    string `json:"createdAt"`
}

type keysRecord struct {
	Environment flow.Environment `json:"environment"`
	PublicKey   string           `json:"publicKey"`
	SecretKey   string           `json:"secretKey"` // shown here and never again
}

func recordOwner(a flow.Account) ownerRecord {
	return ownerRecord{a.ID, a.Email, a.Business, flow.Stamp(a.CreatedAt)}
}

// signUp is POST /v1/auth/signup: an account, its first project and its test keys.
func (s *Server) signUp(c *call) error {
	f := c.form(decodeRules{})
	email := f.email("email")
	password := f.text("password", text{required: true, least: flow.MinPassword, most: flow.MaxPassword, said: true})
	business := f.text("businessName", text{required: true, most: maxName, said: true})
	if err := f.done(); err != nil {
		return err
	}
	if err := s.cfg.Accounts.MaySignUp(c.ctx, c.address()); err != nil {
		return err
	}
	record := func(m checkout.Made) any {
		made := m.SignedUp
		return signedUpRecord{recordOwner(made.Account), recordProject(made.Project), keysRecord{flow.Test, made.PublicKey, made.SecretKey}}
	}
	return c.effect(http.StatusCreated, record, projectsPath, func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.SignUp(c.ctx, email, password, business, c.address(), once)
	})
}
