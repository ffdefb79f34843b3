package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// developerPages are what merchants' developers handle: keys, webhooks and the log of requests.
func developerPages() []Page {
	get, post, develop, own := http.MethodGet, http.MethodPost, flow.MayDevelop, flow.MayOwn
	return slices.Concat([]Page{
		{Method: get, Path: "/signup", do: (*Console).signUpPage},
		{Method: post, Path: "/signup", do: (*Console).signUp},

		{Method: get, Path: "/developers", Right: develop, do: (*Console).keysPage},
		{Method: post, Path: "/developers/keys", Right: develop, do: (*Console).makeKey},
		{Method: post, Path: "/developers/keys/:id/rotate", Right: develop, do: (*Console).rotateKey},
		{Method: post, Path: "/developers/keys/:id/revoke", Right: develop, do: (*Console).revokeKey},
		{Method: post, Path: "/developers/projects", Right: own, anywhere: true, do: (*Console).addProject},

		{Method: get, Path: "/developers/requests", Right: develop, do: (*Console).requestsPage},
		{Method: get, Path: "/developers/requests/:id", Right: develop, do: (*Console).requestPage},
		{Method: get, Path: "/developers/snippets", Right: develop, do: (*Console).snippetsPage},

		{Method: get, Path: "/go-live", Right: develop, do: (*Console).goLivePage},
		{Method: post, Path: "/go-live/kyc", Right: own, do: (*Console).submitKYC},
		{Method: post, Path: "/go-live/account", Right: own, do: (*Console).setPayee},
		{Method: post, Path: "/go-live/said", Right: develop, do: (*Console).sayMet},

		{Method: get, Path: "/team", Right: own, do: (*Console).teamPage},
		{Method: post, Path: "/team", Right: own, do: (*Console).addPerson},
		{Method: get, Path: "/team/audit", Right: own, do: (*Console).teamAudit},
		{Method: get, Path: "/team/audit.csv", Right: own, do: (*Console).teamAuditFile},
		{Method: post, Path: "/team/:id/end", Right: own, do: (*Console).endPerson},
	}, webhookPages())
}

// keysShown is how many keys of a project one page looks through.
const keysShown = 100

// keysView is what the page of keys is given.
type keysView struct {
	Keys  []keyRow
	Older string // where the older ones are, "" where there are none
	Shut  string // why there can be none in this environment
	Own   bool   // may make projects
	Wrong []string
	Name  string // of a project, as it was typed
}

// keyRow is one key.
type keyRow struct {
	flow.Key

	Status flow.KeyStatus
	Works  bool
	Tail   string // its last characters, to type before it is revoked
}

// here refuses what needs a project where none is chosen.
func (v *visit) here() error {
	if v.project.ID == "" {
		return flow.Refuse(flow.CodeNotFound, "There is no project here yet. The owner makes one under Developers.")
	}
	return nil
}

// keysPage is GET /developers.
func (c *Console) keysPage(v *visit) error { return c.showKeys(v, keysView{}) }

func (c *Console) showKeys(v *visit, out keysView) error {
	out.Own = v.who.Role.May(flow.MayOwn)
	if v.project.ID == "" {
		return v.show("developers", "Keys", out)
	}
	if err := v.project.MayUse(v.env); err != nil {
		out.Shut = fmt.Sprintf("Live keys need an approved KYC. That of %s is %s.", v.project.Name, strings.ToLower(string(v.project.KYC)))
	}
	keys, more, err := c.cfg.Accounts.Keys(v.ctx, v.project, v.query("before"), keysShown)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Environment == v.env {
			status := c.cfg.Accounts.KeyStatus(k)
			out.Keys = append(out.Keys, keyRow{k, status, status == flow.KeyActive, tail(k)})
		}
	}
	if more {
		out.Older = "/developers?before=" + keys[len(keys)-1].ID
	}
	return v.show("developers", "Keys", out)
}

// tail is what somebody types who means this key: its last four characters.
func tail(k flow.Key) string { return k.Hint[strings.LastIndex(k.Hint, "…")+len("…"):] }

// secretView is what a page is given that shows secrets once.
type secretView struct {
	Lead    string
	Secrets []shownSecret
	Public  bool // they are no secrets
	Notes   []string
	Next    string // where to go on
	Words   string // of the link there
	Command string
}

// shownSecret is one of them.
type shownSecret struct {
	Label string
	Text  string
}

// madeKey is what is kept, sealed, of a call that made a key.
type madeKey struct {
	ID   string
	Text string
	Kind flow.KeyKind
}

// makeKey is POST /developers/keys.
func (c *Console) makeKey(v *visit) error {
	kind := flow.KeyKind(v.field("kind"))
	if kind != flow.SecretKey && kind != flow.PublicKey {
		return flow.Refuse(flow.CodeInvalidField, "A key is secret or public: choose one.")
	}
	if err := v.here(); err != nil {
		return err
	}
	if err := v.audit("key.make", string(v.project.ID), string(kind), false); err != nil {
		return err
	}
	a, err := c.cfg.Accounts.MakeKey(v.ctx, v.project, v.env, kind, v.once(func(m checkout.Made) any {
		return madeKey{ID: m.Key.Key.ID, Text: m.Key.Text, Kind: kind}
	}))
	if err != nil {
		return err
	}
	return c.showKey(v, a, "")
}

// showKey answers with a key that was just made.
func (c *Console) showKey(v *visit, a checkout.Answer, note string) error {
	var made madeKey
	if err := json.Unmarshal(a.Body, &made); err != nil {
		return fmt.Errorf("read a key that was made: %w", err)
	}
	out := secretView{
		Lead:    fmt.Sprintf("Your new %s %s key. It is shown on this page alone: copy it now.", v.env, made.Kind),
		Secrets: []shownSecret{{"Key", made.Text}}, Next: "/developers", Words: "I have copied it: back to the keys",
	}
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if made.Kind == flow.SecretKey {
		out.Notes = append(out.Notes, "Keep it on your server alone: never in a page, an app or a repository.")
		out.Command = "export TILL_SECRET_KEY=" + made.Text
	}
	return v.show("secret", "New key", out)
}

// ownKey finds a key of the project in the environment that is looked at.
func (c *Console) ownKey(v *visit) (flow.Key, error) {
	k, err := c.cfg.Accounts.Key(v.ctx, v.project, v.http.Params("id"))
	if err == nil && k.Environment != v.env {
		err = flow.Refuse(flow.CodeNotFound, "There is no such key in the %s environment.", v.env)
	}
	return k, err
}

// rotateKey is POST /developers/keys/{id}/rotate.
func (c *Console) rotateKey(v *visit) error {
	k, err := c.ownKey(v)
	if err != nil {
		return err
	}
	hours, err := strconv.Atoi(v.field("hours"))
	if err != nil || hours < 0 || hours > int(flow.MaxOverlap/time.Hour) {
		return flow.Refuse(flow.CodeInvalidField, "The old key works for 0 to %d more hours.", int(flow.MaxOverlap/time.Hour))
	}
	if err := v.audit("key.rotate", k.ID, fmt.Sprintf("the old one works for %d more hours", hours), false); err != nil {
		return err
	}
	a, err := c.cfg.Accounts.RotateKey(v.ctx, v.project, k.ID, time.Duration(hours)*time.Hour, v.once(func(m checkout.Made) any {
		return madeKey{ID: m.Key.Key.ID, Text: m.Key.Text, Kind: m.Key.Key.Kind}
	}))
	if err != nil {
		return err
	}
	note := "The old key " + k.Hint + " ended at once."
	if hours > 0 {
		note = fmt.Sprintf("The old key %s works for %d more hours: put the new one in place before.", k.Hint, hours)
	}
	return c.showKey(v, a, note)
}

// revokeKey is POST /developers/keys/{id}/revoke.
func (c *Console) revokeKey(v *visit) error {
	k, err := c.ownKey(v)
	if err != nil {
		return err
	}
	if v.field("confirm") != tail(k) {
		return flow.Refuse(flow.CodeInvalidField, "Nothing was revoked. To revoke %s, type its last four characters: %s.", k.Hint, tail(k))
	}
	if err := v.audit("key.revoke", k.ID, "", false); err != nil {
		return err
	}
	if k, err = c.cfg.Accounts.RevokeKey(v.ctx, v.project, k.ID); err != nil {
		return err
	}
	return v.to("/developers", "The key "+k.Hint+" is revoked: whoever calls with it is refused.")
}

// addProject is POST /developers/projects.
func (c *Console) addProject(v *visit) error {
	t := v.typing()
	name := t.text("name", "The name", 1, maxTypedName, false)
	if !t.ok() {
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return c.showKeys(v, keysView{Wrong: t.Wrong, Name: v.field("name")})
	}
	if err := v.audit("project.add", v.who.Account, name, false); err != nil {
		return err
	}
	a, err := c.cfg.Accounts.AddProject(v.ctx, v.who.Account, name, v.once(func(m checkout.Made) any { return signedUp{m.Pair[0].Text, m.Pair[1].Text} }))
	if err != nil {
		return err
	}
	var made signedUp
	if err := json.Unmarshal(a.Body, &made); err != nil {
		return fmt.Errorf("read the keys of a project: %w", err)
	}
	v.setCookie(chosenCookie, a.Location+"."+string(v.env), int(flow.DashboardLife.Seconds())*60)
	return v.show("secret", "Its test keys", secretView{
		Lead:    "The project " + name + " is made, and chosen. These are its test keys. The secret one is shown on this page alone: copy it now.",
		Secrets: []shownSecret{{"Secret key, for your server", made.Secret}, {"Public key, for pages and apps", made.Public}},
		Next:    "/developers", Words: "I have copied it: to the project", Command: c.firstRequest(made.Secret),
	})
}
