package api

import (
	"fmt"
	"net/http"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// KeyRecord is a key as its owner reads it, over REST and on the command line. Key
// is there once, in the answer that made it.
type KeyRecord struct {
	ID          string           `json:"id"`
	Environment flow.Environment `json:"environment"`
	Kind        flow.KeyKind     `json:"kind"`
	Key         string           `json:"key,omitempty"`
	Hint        string           `json:"hint"`
	Status      flow.KeyStatus   `json:"status"`
	CreatedAt   string           `json:"createdAt"`
	LastUsedAt  *string          `json:"lastUsedAt"`
	ExpiresAt   *string          `json:"expiresAt"`
	RevokedAt   *string          `json:"revokedAt"`
}

// rotatedRecord is a new key and the one it takes the place of.
type rotatedRecord struct {
	KeyRecord

	Replaces KeyRecord `json:"replaces"`
}

// RecordKey writes a key down as it stands; text is all of it, "" where that is
// not said again.
func RecordKey(a *checkout.Accounts, k flow.Key, text string) KeyRecord {
	return KeyRecord{
		ID: k.ID, Environment: k.Environment, Kind: k.Kind, Key: text, Hint: k.Hint, Status: a.KeyStatus(k),
		CreatedAt: flow.Stamp(k.CreatedAt), LastUsedAt: flow.StampOrNull(k.LastUsedAt), ExpiresAt: flow.StampOrNull(k.ExpiresAt), RevokedAt: flow.StampOrNull(k.RevokedAt),
	}
}

// addKey is POST /v1/projects/{id}/keys.
func (s *Server) addKey(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	f := c.form(decodeRules{})
	f.required("environment", "kind") // nobody gets a live or a secret key by leaving a word out
	env := f.oneOf("environment", flow.CodeInvalidField, string(flow.Test), string(flow.Live))
	kind := f.oneOf("kind", flow.CodeInvalidField, string(flow.SecretKey), string(flow.PublicKey))
	if err := f.done(); err != nil {
		return err
	}
	if err := c.audit(flow.Environment(env), "key.make", string(c.project.ID), kind); err != nil {
		return err
	}
	return c.effect(http.StatusCreated, func(m checkout.Made) any { return RecordKey(s.cfg.Accounts, m.Key.Key, m.Key.Text) }, c.keysPath(), func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.MakeKey(c.ctx, c.project, flow.Environment(env), flow.KeyKind(kind), once)
	}, c.bearer)
}

// keysPath is where the keys of the call's project are.
func (c *call) keysPath() string { return projectsPath + "/" + string(c.project.ID) + "/keys" }

// readKey is GET /v1/projects/{id}/keys/{kid}.
func (s *Server) readKey(c *call) error {
	id, err := s.ownKey(c)
	if err != nil {
		return err
	}
	k, err := s.cfg.Accounts.Key(c.ctx, c.project, id)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, RecordKey(s.cfg.Accounts, k, ""))
}

// listKeys is GET /v1/projects/{id}/keys, newest first.
func (s *Server) listKeys(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	limit, before, err := c.turnedPage(flow.PrefixKey)
	if err != nil {
		return err
	}
	keys, more, err := s.cfg.Accounts.Keys(c.ctx, c.project, before, limit)
	if err != nil {
		return err
	}
	return sendPage(c, keys, more, func(k flow.Key) KeyRecord { return RecordKey(s.cfg.Accounts, k, "") }, func(k flow.Key) string { return k.ID })
}

// ownKey finds the project of the path, and the key; what cannot be an id does not
// exist.
func (s *Server) ownKey(c *call) (string, error) {
	if err := s.ownProject(c); err != nil {
		return "", err
	}
	id := c.param("kid")
	if !isID(id, flow.PrefixKey) {
		return "", flow.Refuse(flow.CodeNotFound, "There is no such key.")
	}
	return id, nil
}

// rotateKey is POST /v1/projects/{id}/keys/{kid}/rotate.
func (s *Server) rotateKey(c *call) error {
	id, err := s.ownKey(c)
	if err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	const usual = 24
	hours := f.whole("expiresOldInHours", 0, int64(flow.MaxOverlap/time.Hour), usual)
	if err := f.done(); err != nil {
		return err
	}
	k, err := s.cfg.Accounts.Key(c.ctx, c.project, id)
	if err != nil {
		return err
	}
	if err := c.audit(k.Environment, "key.rotate", id, fmt.Sprintf("the old one works for %d more hours", hours)); err != nil {
		return err
	}
	return c.effect(http.StatusCreated, func(m checkout.Made) any {
		return rotatedRecord{RecordKey(s.cfg.Accounts, m.Key.Key, m.Key.Text), RecordKey(s.cfg.Accounts, m.Replaced, "")}
	}, c.keysPath(), func(once checkout.Call) (checkout.Answer, error) {
		return s.cfg.Accounts.RotateKey(c.ctx, c.project, id, time.Duration(hours)*time.Hour, once)
	}, c.bearer)
}

// revokeKey is DELETE /v1/projects/{id}/keys/{kid}.
func (s *Server) revokeKey(c *call) error {
	id, err := s.ownKey(c)
	if err != nil {
		return err
	}
	k, err := s.cfg.Accounts.Key(c.ctx, c.project, id)
	if err != nil {
		return err
	}
	if err := c.audit(k.Environment, "key.revoke", id, ""); err != nil {
		return err
	}
	if k, err = s.cfg.Accounts.RevokeKey(c.ctx, c.project, id); err != nil {
		return err
	}
	return c.send(http.StatusOK, RecordKey(s.cfg.Accounts, k, ""))
}
