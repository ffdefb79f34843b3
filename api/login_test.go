package api

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

const (
	ownerEmail = "owner@example.com"
	ownerPass  = "correct horse battery"
)

// signedUp signs the owner up.
func (s *shop) signedUp() reply {
	s.t.Helper()
	r := s.ask("POST", "/v1/auth/signup", "", `{"email":"`+ownerEmail+`","password":"`+ownerPass+`","businessName":"Ada Stores"}`)
	s.want(r, http.StatusCreated, nil)
	return r
}

func login(email, password string) string {
	return `{"email":"` + email + `","password":"` + password + `"}`
}

// desk adds a merchant and logs in without the cost of hashing a password.
func (s *shop) desk(name string) (token string, p flow.Project) {
	s.t.Helper()
	p = s.keep(name)
	return s.tokenFor(p), p
}

// tokenFor logs the owner of a project in.
func (s *shop) tokenFor(p flow.Project) string {
	s.t.Helper()
	token := s.tokenOfNobody()
	err := s.accounts.Update(s.t.Context(), func(tx *store.Tx) error {
		k := flow.Token{Hash: flow.HashKey(token), Account: p.Account, CreatedAt: s.now(), ExpiresAt: s.now().Add(flow.DashboardLife)}
		return tx.AddToken(s.t.Context(), k, 20)
	})
	must(s.t, err)
	return token
}

func TestALoginGivesATokenThatEnds(t *testing.T) {
	s := open(t)
	up := s.signedUp()
	s.want(up, http.StatusCreated, map[string]string{"data.project.kycStatus": "NONE"})
	r := s.ask("POST", "/v1/auth/login", "", login("Owner@Example.com", ownerPass)) // people write it so
	s.want(r, http.StatusOK, map[string]string{"data.account.email": ownerEmail, "data.account.id": up.text("data.account.id")})
	token := r.text("data.token")
	if !flow.IsTokenText(token) || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the token %q may be kept by a cache, or is none", token)
	}
	if at, err := time.Parse(time.RFC3339, r.text("data.expiresAt")); err != nil || at.Sub(s.now()).Round(time.Minute) != 12*time.Hour {
		t.Errorf("it expires at %s", r.text("data.expiresAt"))
	}
	s.want(s.ask("GET", projectsPath, token, ""), http.StatusOK, nil)
	second := s.ask("POST", "/v1/auth/login", "", login(ownerEmail, ownerPass)).text("data.token")

	for key, code := range map[string]string{
		"": "missing_api_key", s.key: "invalid_api_key", up.text("data.keys.secretKey"): "invalid_api_key", "dash_nonsense": "invalid_api_key",
		s.tokenOfNobody(): "invalid_api_key",
	} {
		if r := s.ask("GET", projectsPath, key, ""); r.status != http.StatusUnauthorized || r.code() != code {
			t.Errorf("%q opens a dashboard: %d %s", key, r.status, r.body)
		}
	}
	astray := s.ask("GET", sessions, token, "")
	s.want(astray, http.StatusUnauthorized, map[string]string{"error.code": "invalid_api_key"})
	if !strings.Contains(astray.text("error.message"), "dashboard token") { // it was copied whole, and there is no more to it
		t.Errorf("who calls with a token learns %q", astray.text("error.message"))
	}

	s.want(s.ask("POST", "/v1/auth/logout", token, ""), http.StatusOK, map[string]string{"data.loggedOut": "true"})
	s.want(s.ask("GET", projectsPath, token, ""), http.StatusUnauthorized, map[string]string{"error.code": "revoked_api_key"})
	s.pass(12*time.Hour - time.Minute)
	s.want(s.ask("GET", projectsPath, second, ""), http.StatusOK, nil)
	s.pass(time.Minute)
	s.want(s.ask("GET", projectsPath, second, ""), http.StatusUnauthorized, map[string]string{"error.code": "expired_api_key"})
	s.want(s.ask("POST", "/v1/auth/logout", second, ""), http.StatusUnauthorized, map[string]string{"error.code": "expired_api_key"})
	for _, secret := range []string{token, second, "horse", flow.HashKey(token)} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func (s *shop) tokenOfNobody() string {
	token, err := flow.NewTokenText(rand.Reader)
	must(s.t, err)
	return token
}

// A wrong password and an unknown address are answered alike, after the same work.
func TestALoginDoesNotTellWhoHasAnAccount(t *testing.T) {
	s := open(t)
	s.signedUp()
	wrong := s.ask("POST", "/v1/auth/login", "", login(ownerEmail, "not the password"))
	unknown := s.ask("POST", "/v1/auth/login", "", login("nobody@example.com", "not the password"))
	s.want(wrong, http.StatusUnauthorized, map[string]string{"error.code": "invalid_credentials"})
	same := func(r reply) string {
		return strings.ReplaceAll(r.body, r.text("error.requestId"), "")
	}
	if same(wrong) != same(unknown) || unknown.status != wrong.status {
		t.Errorf("they differ:\n%s\n%s", wrong.body, unknown.body)
	}
	for body, code := range map[string]string{
		`{}`:                            "missing_field",
		login("owner", ownerPass):       "invalid_email",
		login(ownerEmail, ""):           "invalid_field",
		login(ownerEmail, "x\\u0007yz"): "invalid_field",
		login(ownerEmail, strings.Repeat("x", 129)):                           "invalid_field",
		`{"email":"` + ownerEmail + `","password":["a"]}`:                     "invalid_field",
		`{"email":"` + ownerEmail + `","password":"x","password":"y"}`:        "malformed_json",
		`{"email":"` + ownerEmail + `","password":"` + ownerPass + `","a":1}`: "unknown_field",
	} {
		if r := s.ask("POST", "/v1/auth/login", "", body); r.status != http.StatusBadRequest || r.code() != code {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

// caller calls the server over the network from one of this machine's addresses.
func (s *shop) caller(url, from string) func(method, path, key, body string) reply {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext,
	}}
	return func(method, path, key, body string) reply {
		r, err := http.NewRequestWithContext(s.t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			s.t.Error(err)
			return reply{}
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		answer, err := client.Do(r)
		if err != nil {
			s.t.Error(err)
			return reply{}
		}
		defer func() { _ = answer.Body.Close() }()
		all, err := io.ReadAll(answer.Body)
		if err != nil {
			s.t.Error(err)
		}
		return reply{answer.StatusCode, answer.Header, string(all)}
	}
}

func TestWhoGuessesAPasswordIsStoppedAndItsOwnerIsNot(t *testing.T) {
	s := open(t)
	s.signedUp()
	url := "http://" + s.listen()
	thief, owner := s.caller(url, "127.0.0.2"), s.caller(url, "127.0.0.3")
	var refused, limited atomic.Int32
	var all sync.WaitGroup
	for n := range 30 { // all at once: no more of them are tried for that
		all.Go(func() {
			switch r := thief("POST", "/v1/auth/login", "", login(ownerEmail, fmt.Sprintf("guess number %d", n))); r.status {
			case http.StatusUnauthorized:
				refused.Add(1)
			case http.StatusTooManyRequests:
				limited.Add(1)
			default:
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	all.Wait()
	if refused.Load() != 10 || limited.Load() != 20 {
		t.Errorf("%d guesses were judged, %d refused unseen", refused.Load(), limited.Load())
	}
	r := thief("POST", "/v1/auth/login", "", login(ownerEmail, ownerPass))
	s.want(r, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited", "error.retryable": "true"})
	if n, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || n < 800 || n > 900 {
		t.Errorf("Retry-After: %q", r.header.Get("Retry-After"))
	}
	s.want(owner("POST", "/v1/auth/login", "", login(ownerEmail, ownerPass)), http.StatusOK, nil)
	s.want(thief("POST", "/v1/auth/login", "", login("other@example.com", ownerPass)), http.StatusUnauthorized, nil)
	s.pass(15*time.Minute + time.Second)
	s.want(thief("POST", "/v1/auth/login", "", login(ownerEmail, ownerPass)), http.StatusOK, nil)
}

// Behind a proxy of ours an address is what the proxy says it is; nobody else
// can say where a call came from.
func TestAnAddressIsNotWhatACallerSays(t *testing.T) {
	s := open(t)
	s.server.cfg.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct{ from, told, want string }{
		{"192.0.2.1", "", "192.0.2.1"},
		{"192.0.2.1", "198.51.100.7", "192.0.2.1"},
		{"10.0.0.1", "198.51.100.7", "198.51.100.7"},
		{"10.0.0.1", "203.0.113.9, 198.51.100.7", "198.51.100.7"},
		{"10.0.0.1", "203.0.113.9, 198.51.100.7, 10.0.0.2", "198.51.100.7"},
		{"10.0.0.1", "203.0.113.9\n198.51.100.7,10.1.2.3", "198.51.100.7"},
		{"10.0.0.1", "198.51.100.7, nonsense", "10.0.0.1"},
		{"10.0.0.1", "", "10.0.0.1"},
		{"10.0.0.1", "203.0.113.9:1, 198.51.100.7:50123, 10.0.0.2:443", "198.51.100.7"},
		{"10.0.0.1", "[2001:db8:1:2:3:4:5:6]:50123", "2001:db8:1:2::/64"},
		{"10.0.0.1", "[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::/64"},
		{"10.0.0.1", "[fd00::9]:1, [::ffff:198.51.100.7]:2", "198.51.100.7"},
		{"10.0.0.1", "198.51.100.7, 198.51.100.8:http", "10.0.0.1"},
		{"10.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"},
		{"fd00::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"2001:db8:1:2:3::9", "198.51.100.7", "2001:db8:1:2::/64"},
		{"::ffff:192.0.2.1", "", "192.0.2.1"},
	} {
		ctx := &fasthttp.RequestCtx{}
		ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.ParseIP(c.from)}, nil)
		for line := range strings.SplitSeq(c.told, "\n") {
			if line != "" {
				ctx.Request.Header.Add("X-Forwarded-For", line)
			}
		}
		f := s.server.app.AcquireCtx(ctx)
		if got := (&call{http: f, proxies: s.server.cfg.Proxies}).address(); got != c.want {
			t.Errorf("from %s, told %q: %s, want %s", c.from, c.told, got, c.want)
		}
		s.server.app.ReleaseCtx(f)
	}
}

func TestAnAddressSignsUpOnlySoOften(t *testing.T) {
	s := open(t)
	for range 100 {
		must(t, s.server.cfg.Accounts.MaySignUp(t.Context(), "0.0.0.0"))
	}
	r := s.ask("POST", "/v1/auth/signup", "", `{"email":"a@example.com","password":"correct horse battery","businessName":"A"}`)
	s.want(r, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited"})
	s.pass(16 * time.Minute)
	s.signedUp()
}

// Where the test environment's clock is not everybody's, moving it ends test
// keys alone: no login, no live key, and nobody may guess on.
func TestAMovedTestClockMovesNothingElse(t *testing.T) {
	s := open(t)
	s.server.cfg.Accounts.Clocks(time.Now, time.Now)
	token, p := s.desk("Ada Stores")
	test, live := s.newKey(flow.Test, flow.SecretKey), s.newKey(flow.Live, flow.SecretKey)
	id := func() string {
		made, err := s.server.cfg.IDs.New(flow.PrefixKey)
		must(t, err)
		return made
	}
	err := s.accounts.Update(t.Context(), func(tx *store.Tx) error {
		for text, env := range map[string]flow.Environment{test: flow.Test, live: flow.Live} {
			k := key(text, env, 1, 0)
			k.ID, k.Project, k.CreatedAt = id(), p.ID, s.now()
			if err := tx.AddKey(t.Context(), k); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, err)
	for range 100 {
		must(t, s.server.cfg.Accounts.MaySignUp(t.Context(), "0.0.0.0"))
	}
	s.pass(24 * time.Hour)
	s.want(s.ask("GET", sessions, test, ""), http.StatusUnauthorized, map[string]string{"error.code": "expired_api_key"})
	s.want(s.ask("GET", sessions, live, ""), http.StatusForbidden, map[string]string{"error.code": "kyc_required"})
	s.want(s.ask("GET", projectsPath, token, ""), http.StatusOK, nil)
	if s.server.cfg.Accounts.MaySignUp(t.Context(), "0.0.0.0") == nil {
		t.Error("a moved clock lets an address sign up again")
	}
}

// Who may use Till belongs to no environment: an account and its project are as old
// as the machine's clock says, while their test keys follow the one of test.
func TestAnAccountIsNoOlderThanItIs(t *testing.T) {
	s := open(t)
	s.server.cfg.Accounts.Clocks(time.Now, time.Now)
	s.pass(48 * time.Hour)
	r := s.signedUp()
	account, _, err := s.accounts.AccountByEmail(t.Context(), ownerEmail)
	must(t, err)
	p, err := s.accounts.Project(t.Context(), flow.ProjectID(r.text("data.project.id")))
	must(t, err)
	for what, at := range map[string]time.Time{"account": account.CreatedAt, "project": p.CreatedAt} {
		if ahead := time.Until(at); ahead > time.Hour {
			t.Errorf("the %s is of a time that comes in %v", what, ahead)
		}
	}
}

// The newest logins of an account stay; nobody fills the store with them.
func TestAnAccountHasFewLogins(t *testing.T) {
	s := open(t)
	token, p := s.desk("Ada")
	must(t, s.accounts.Update(t.Context(), func(tx *store.Tx) error {
		for n := range 25 {
			k := flow.Token{Hash: fmt.Sprint(n), Account: p.Account, CreatedAt: s.now().Add(time.Duration(n+1) * time.Second), ExpiresAt: s.now().Add(time.Hour)}
			if err := tx.AddToken(t.Context(), k, 20); err != nil {
				return err
			}
		}
		return nil
	}))
	for n := range 25 {
		if _, found, err := s.accounts.TokenByHash(t.Context(), fmt.Sprint(n)); err != nil || found != (n >= 5) {
			t.Errorf("login %d: %v %v", n, found, err)
		}
	}
	s.want(s.ask("GET", projectsPath, token, ""), http.StatusUnauthorized, map[string]string{"error.code": "invalid_api_key"})
}

// second is another process on the same accounts.
func (s *shop) second() *checkout.Accounts {
	accounts := checkout.NewAccounts(s.accounts, s.now, rand.Reader)
	accounts.PasswordsCost(8, 1)
	return accounts
}
