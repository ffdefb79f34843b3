package api

import (
	"crypto/subtle"
	"net/http"
	"strings"

	"till/flow"
	"till/flow/planted"
)

// KeyKind says which key a route asks for.
type KeyKind string

// The kinds of key that routes ask for.
const (
	KeyNone      KeyKind = "none"      // open to all
	KeyPublic    KeyKind = "public"    // any key: what is read is no secret
	KeySecret    KeyKind = "secret"    // a secret key of either environment
	KeySession   KeyKind = "session"   // a secret key, or a public one with the session's client secret
	KeyTest      KeyKind = "test"      // a secret key of the test environment
	KeyDashboard KeyKind = "dashboard" // a dashboard token, from a login
	KeyPhone     KeyKind = "phone"     // no key: the phone page's own calls, from this machine
)

// admit checks the key of a call, before a byte of its body is looked at.
func (s *Server) admit(c *call, kind KeyKind) error {
	switch kind {
	case KeyNone:
		if strings.HasPrefix(c.noted.route, "/v1/auth/") {
			return s.countAddress(c)
		}
		return nil
	case KeyPhone:
		return s.admitPhone(c)
	case KeyDashboard:
		return s.admitDashboard(c)
	case KeyPublic, KeySecret, KeySession, KeyTest:
	}
	text, err := bearer(c.http.Get("Authorization"))
	if err == nil {
		c.key, c.project, err = s.cfg.Accounts.Authenticate(c.ctx, text)
	}
	if err != nil {
		return s.wrongKey(c, err)
	}
	c.noted.project, c.noted.env, c.noted.hint = c.project.ID, c.key.Environment, c.key.Hint
	if c.key.Kind == flow.PublicKey {
		return s.admitPage(c, kind)
	}
	if err := s.countKey(c); err != nil {
		return err
	}
	return s.allow(c, kind)
}

// admitPage checks a call with a public key. Everybody can read that in a page:
// only what brings a session's client secret too counts against the session and
// the key, all else against where it comes from, or anybody could use the key up.
func (s *Server) admitPage(c *call, kind KeyKind) error {
	err := s.allow(c, kind)
	if err == nil && kind == KeySession {
		var id flow.SessionID
		if id, err = s.admitClient(c); err == nil {
			return s.countPayer(c, id)
		}
	}
	if limited := s.countAddress(c); limited != nil {
		return limited
	}
	return err
}

// allow says whether a route is open to a key that holds.
func (s *Server) allow(c *call, kind KeyKind) error {
	open := c.project.MayUse(c.key.Environment)
	if flow.CodeOf(open) == flow.CodeProjectSuspended {
		return open
	}
	if kind == KeyTest && c.key.Environment != flow.Test {
		return flow.Refuse(flow.CodeTestOnly, "This only works with a test key: there is no pretending with real money.")
	}
	if c.key.Kind != flow.SecretKey && kind != KeySession && kind != KeyPublic {
		return flow.Refuse(flow.CodeSecretKeyRequired, "This needs a secret key (sk_…). Call it from your server, never from a browser or an app.")
	}
	if open != nil {
		return open
	}
	env := c.key.Environment
	if planted.LiveForTest && c.http.Method() == http.MethodGet {
		env = flow.Live
	}
	service, there := s.cfg.Services[env]
	if !there {
		return flow.Refuse(flow.CodeKYCRequired, "The %s environment is not open on this server.", c.key.Environment)
	}
	c.service = service
	return nil
}

// bearer takes the key out of an Authorization header.
func bearer(header string) (string, error) {
	if header == "" {
		return "", flow.Refuse(flow.CodeMissingKey, "Send your secret key: Authorization: Bearer sk_test_….")
	}
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" || strings.ContainsAny(text, " \t,") {
		return "", flow.Refuse(flow.CodeInvalidKey, "The Authorization header must be: Bearer, one space, the key.")
	}
	return text, nil
}

// admitDashboard checks the token of a call that is about an account.
func (s *Server) admitDashboard(c *call) error {
	text, err := bearer(c.http.Get("Authorization"))
	if flow.CodeOf(err) == flow.CodeMissingKey {
		err = flow.Refuse(flow.CodeMissingKey, "Send a dashboard token from POST /v1/auth/login: Authorization: Bearer dash_….")
	}
	if err == nil {
		c.token, err = s.cfg.Accounts.Dashboard(c.ctx, text)
	}
	if flow.CodeOf(err) == flow.CodeRevokedKey && c.noted.route == logoutPath {
		err = nil // perhaps by this very call, whose answer was lost: logging out judges it
	}
	if err != nil {
		return s.wrongKey(c, err)
	}
	c.bearer = text
	return s.countAccount(c)
}

// admitClient lets a public key read and pay the one session whose client
// secret it brings, and says which that is. A session that is not there looks
// like a wrong secret: a public key must not find out which ids exist.
func (s *Server) admitClient(c *call) (flow.SessionID, error) {
	no := flow.Refuse(flow.CodeSecretKeyRequired, "This needs a secret key, or a public key with the session's clientSecret in X-Client-Secret.")
	given := c.http.Get("X-Client-Secret")
	id, err := c.sessionID()
	if given == "" || err != nil {
		return "", no
	}
	view, err := c.service.View(c.ctx, c.project.ID, id)
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		return "", no
	case err != nil:
		return "", err
	}
	secret := c.service.Record(view).ClientSecret
	if secret == "" || subtle.ConstantTimeCompare([]byte(secret), []byte(given)) != 1 {
		return "", no
	}
	return id, nil
}

// admitPhone lets the phone page in: a browser on this machine that loaded the
// page from us. The header cannot be sent by another site's page without asking
// first, which we never allow; the Host keeps a name of theirs that resolves to
// this machine out.
func (s *Server) admitPhone(c *call) error {
	if !c.near() {
		return flow.Refuse(flow.CodeTestOnly, "The phone page only works on this machine: open it as localhost.")
	}
	if c.http.Get("X-Till-Phone") != "1" {
		return flow.Refuse(flow.CodeTestOnly, "This is the phone page's own call. Use /v1/test with a test key instead.")
	}
	return nil
}
