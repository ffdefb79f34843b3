package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// The bounds of what the sandbox remembers.
const (
	maxCaught     = 100
	maxCaughtBody = 64 << 10
	maxHeaders    = 30
	maxHeader     = 500
	maxBankCalls  = 100
	bankCallsPage = 100
	callsEvery    = time.Second
)

// caught is one webhook that the catcher got.
type caught struct {
	Project  flow.ProjectID
	At       time.Time // of the connection
	Kind     string
	Headers  []header
	Body     string
	Verified bool
	Answer   int
}

type header struct{ Name, Value string }

// sandbox is what /try remembers: webhooks and calls to the bank, the newest of
// them.
type sandbox struct {
	mu      sync.Mutex
	list    []caught // newest first
	answers int      // status that the catcher answers with, 0 for 200

	bankMu sync.Mutex // held while the bank is asked
	bank   []rail.Call
	after  int64
	asked  time.Time
}

// of are the webhooks of a project.
func (s *sandbox) of(project flow.ProjectID) []caught {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), func(c caught) bool { return c.Project != project })
}

func (s *sandbox) answer() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.answers, http.StatusOK)
}

func (s *sandbox) keep(c caught) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append([]caught{c}, s.list...)
	s.list = s.list[:min(len(s.list), maxCaught)]
}

// calls are the newest calls that the bank got about a session, newest first. The
// bank is asked once a second at most.
func (s *sandbox) calls(ctx context.Context, bank rail.TestBank, now time.Time, id flow.SessionID) ([]rail.Call, error) {
	s.bankMu.Lock()
	defer s.bankMu.Unlock()
	for now.Sub(s.asked) >= callsEvery {
		list, err := bank.Calls(ctx, s.after, bankCallsPage)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			s.after = one.Seq
			s.bank = append(s.bank, one)
		}
		s.bank = s.bank[max(0, len(s.bank)-10*maxBankCalls):]
		if len(list) < bankCallsPage {
			s.asked = now
		}
	}
	var out []rail.Call
	for _, one := range slices.Backward(s.bank) {
		if one.Session == string(id) && len(out) < maxBankCalls {
			out = append(out, one)
		}
	}
	return out, nil
}

// catchURL is where a project's webhooks are caught.
func (c *Console) catchURL(project flow.ProjectID) string {
	return strings.TrimSuffix(c.cfg.PublicURL, "/") + "/try/caught/" + string(project)
}

// catching finds the endpoint of a project that is caught here.
func (c *Console) catching(ctx context.Context, service *checkout.Service, project flow.ProjectID) (flow.Endpoint, bool, error) {
	list, err := service.Endpoints(ctx, project)
	if err != nil {
		return flow.Endpoint{}, false, err
	}
	i := slices.IndexFunc(list, func(e flow.Endpoint) bool { return e.URL == c.catchURL(project) })
	if i < 0 {
		return flow.Endpoint{}, false, nil
	}
	return list[i], true, nil
}

// tryCatch is POST /try/catch: the project's webhooks are sent to the catcher
// too, by an endpoint like any other.
func (c *Console) tryCatch(v *visit) error {
	id := trySession(v)
	return c.play(v, "catch", id, func() (string, error) {
		at := c.catchURL(v.project.ID)
		e, there, err := c.catching(v.ctx, v.service, v.project.ID)
		switch {
		case err != nil:
			return "", err
		case there && e.Status == flow.EndpointEnabled:
			return "Webhooks are caught already.", nil
		case there:
			_, err := v.service.ChangeEndpoint(v.ctx, v.project.ID, e.ID, checkout.EndpointChange{Status: flow.EndpointEnabled})
			return "Webhooks are caught again.", err
		}
		if err := c.cfg.CheckURL(v.env, at); err != nil {
			return "", flow.Refuse(flow.CodeInvalidField, "Webhooks cannot be sent to %s: it is %s.", at, err)
		}
		secret, err := c.cfg.NewSecret(flow.SignatureV1)
		if err != nil {
			return "", err
		}
		_, err = v.service.AddEndpoint(v.ctx, flow.Endpoint{URL: at, Description: flow.EarOfSandbox, Secrets: []string{secret}},
			checkout.Call{Project: v.project.ID, Render: func(checkout.Made) (int, []byte, error) { return http.StatusCreated, nil, nil }})
		return "Webhooks are caught from now on.", err
	})
}

// tryCatcher is POST /try/catcher: how the catcher answers.
func (c *Console) tryCatcher(v *visit) error {
	return c.play(v, "catcher", trySession(v), func() (string, error) {
		status, known := map[string]int{"200": http.StatusOK, "500": http.StatusInternalServerError, "410": http.StatusGone}[v.field("status")]
		if !known {
			return "", flow.Refuse(flow.CodeInvalidField, "The catcher answers with 200, 500 or 410.")
		}
		c.sandbox.mu.Lock()
		defer c.sandbox.mu.Unlock()
		c.sandbox.answers = status
		return "The catcher answers " + v.field("status") + " from now on.", nil
	})
}

// caught is POST /try/caught/{project}: a webhook comes in. It is not a person
// who sends it: no form, no login; from this machine alone, to an endpoint that a
// project has.
func (c *Console) caught(v *visit) error {
	project := flow.ProjectID(v.http.Params("project"))
	service := c.cfg.Services[flow.Test]
	nothing := flow.Refuse(flow.CodeNotFound, "Nothing is caught at this address.")
	if c.cfg.Demo == "" || !c.cfg.Near(v.http) || service == nil {
		return nothing
	}
	e, there, err := c.catching(v.ctx, service, project)
	if err != nil {
		return err
	}
	if !there {
		return nothing
	}
	body := bytes.Clone(v.http.Body())
	if len(body) > maxCaughtBody {
		return flow.Refuse(flow.CodeTooLarge, "The catcher takes %d bytes.", maxCaughtBody)
	}
	got := caught{Project: project, At: c.cfg.Real(), Body: string(body), Answer: c.sandbox.answer()}
	for name, value := range v.http.GetReqHeaders() {
		text := strings.Join(value, ", ")
		got.Headers = append(got.Headers, header{strings.ToLower(name), text[:min(len(text), maxHeader)]})
	}
	slices.SortFunc(got.Headers, func(a, b header) int { return strings.Compare(a.Name, b.Name) })
	got.Headers = slices.Clone(got.Headers[:min(len(got.Headers), maxHeaders)])
	var shown bytes.Buffer
	if json.Indent(&shown, body, "", "  ") == nil {
		got.Body = shown.String()
	}
	var told struct{ Event, Type string }
	if json.Unmarshal(body, &told) == nil {
		got.Kind = told.Event + told.Type
	}
	got.Verified = signed(e.Signing(service.Now()), v.http.Get("webhook-id"), v.http.Get("webhook-timestamp"), v.http.Get("webhook-signature"), body)
	c.sandbox.keep(got)
	return v.http.Status(got.Answer).SendString("caught")
}

// signed says whether a webhook bears a signature of one of these secrets, as
// Standard Webhooks has them: of id, time and body, by HMAC-SHA256 or by Ed25519. Time
// itself is not judged: the clock of the pretend world is moved.
func signed(secrets []string, id, at, signatures string, body []byte) bool {
	whole := slices.Concat([]byte(id+"."+at+"."), body)
	for _, secret := range secrets {
		if public, ok := strings.CutPrefix(flow.PublicKeyOf(secret), flow.PublicKeyBegins); ok {
			if verified(public, signatures, whole) {
				return true
			}
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, flow.SecretBegins))
		if err != nil {
			continue
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(whole)
		want := []byte(string(flow.SignatureV1) + "," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for one := range strings.FieldsSeq(signatures) {
			if hmac.Equal([]byte(one), want) {
				return true
			}
		}
	}
	return false
}

// verified says whether one of these signatures is of a public key.
func verified(public, signatures string, whole []byte) bool {
	key, err := base64.StdEncoding.DecodeString(public)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	for one := range strings.FieldsSeq(signatures) {
		text, ok := strings.CutPrefix(one, string(flow.SignatureV1A)+",")
		if signature, err := base64.StdEncoding.DecodeString(text); ok && err == nil && ed25519.Verify(key, whole, signature) {
			return true
		}
	}
	return false
}
