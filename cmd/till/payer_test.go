package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/redistest"
	"till/flow/store"
)

// A payer who was forgotten stands in no byte of what Till keeps: not in its
// databases, their logs, the keys of its numbers, its log or a dump of Redis. What
// is left is proven as before, and tells their conversation without them.
func TestAForgottenPayerStandsInNoByte(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return "" },
		"postgres": func(t *testing.T) string { t.Helper(); return ownDatabase(t, "forgotten") },
	} {
		t.Run(name, func(t *testing.T) { forgetAda(t, url(t)) })
	}
}

// What is exported of a payer is of one moment: what comes while it is read is in none of it.
func TestAPayerIsReadAsTheyAreAtOneMoment(t *testing.T) {
	dir := t.TempDir()
	at := func(env flow.Environment) store.Config {
		return store.Config{Schema: store.Checkout, Dir: dir, Name: string(env)}
	}
	opens := func(env flow.Environment, id flow.SessionID) {
		db, err := store.Open(t.Context(), at(env))
		must(t, err)
		must(t, db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddSession(t.Context(), flow.Session{
				ID: id, Project: "wsp_prj_1", Merchant: "Ada Stores", Mode: flow.Headless, Amount: 500_000, Status: flow.SessionPending,
				AllowedMethods: flow.Methods(), CustomerEmail: "ada@example.com", Policy: flow.DefaultPolicy(), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
			})
			return err
		}))
		must(t, db.Close())
	}
	opens(flow.Test, "wsp_sess_1")
	opens(flow.Live, "wsp_sess_1")
	c := payerOf{local: local{Settings: config.Settings{
		HTTPAddr: "127.0.0.1:1", DataDir: dir, WhatsAppNetwork: "local", WhatsAppSends: 20, WhatsAppChats: 6, WhatsAppNumbers: 1, RateLimitTest: 50, RateLimitLive: 100,
	}}}
	w := &world{ctx: t.Context(), out: io.Discard, err: io.Discard}
	found, err := c.find(w, knownBy{email: "ada@example.com"}, func(f payerIn, r store.Reader) error {
		opens(f.env, "wsp_sess_2")
		again, err := checkout.FindPayer(t.Context(), r, "", "ada@example.com")
		if len(f.payer.Sessions) != 1 || len(again.Sessions) != 1 {
			t.Errorf("%s: %d sessions are found, and read %d", f.env, len(f.payer.Sessions), len(again.Sessions))
		}
		return err
	})
	if err != nil || len(found) != 2 {
		t.Fatalf("found in %d environments: %v", len(found), err)
	}
}

// forgetAda has one payer pay and be forgotten, and another one stay.
func forgetAda(t *testing.T, database string) {
	t.Helper()
	redis, o := redistest.Start(t), newOutside(t)
	o.env = append(o.env, "TILL_REDIS_URL="+redis.URL, "TILL_DATABASE_URL="+database, "TILL_LOG_LEVEL=debug")
	x, m := running(t, o)
	s := newSink(m)
	ada := payerNamed(m, "+2348039990001", "Adaeze Obinwanne")
	number := strings.TrimPrefix(mustUnescape(t, ada.phone), "+")
	session := payAs(m, ada, s, number, "ada@private.example", "the blue gate")
	ben := payerNamed(m, "+2348039990002", "Benedict Stays")
	payAs(m, ben, s, strings.TrimPrefix(mustUnescape(t, ben.phone), "+"), "ben@example.com", "the market")
	owner := enter(t, m.base, "owner")
	owner.sends("/sessions/"+session, "/sessions/"+session+"/reveal", "reason", "Adaeze rang from "+spaced(number))
	owner.sends("/sessions?q="+url.QueryEscape(spaced(number)), "/filters", "name", "Ada", "q", spaced(number))
	owner.sends("/sessions?q=Adaeze", "/filters", "name", "Late", "q", "Adaeze")
	owner.sends("/sessions?q=benedict", "/filters", "name", "Ben", "q", "benedict")

	if out, err := x.p.Beside("payer", "forget", number, "--dry-run"); err != nil || !strings.Contains(out, "test      1 session, 1 chat, ") || !strings.Contains(out, "Nothing was changed") {
		t.Fatalf("a dry run: %v\n%s", err, out)
	}
	out, err := x.p.Beside("payer", "export", number)
	if err != nil || !json.Valid([]byte(out)) || !strings.Contains(out, "Adaeze rang from") || !strings.Contains(out, `"action": "look.session"`) || strings.Contains(out, "Benedict") {
		t.Fatalf("her export: %v\n%s", err, out)
	}
	lid := between(out, `"person": "`, `"`)
	if out, err := x.p.Beside("payer", "forget", number, "--yes"); err == nil || database == "" && !strings.Contains(out, "stop it first") {
		t.Fatalf("beside a server: %v\n%s", err, out)
	}
	if out, err := x.p.Beside("payer", "forget", number); err == nil || !strings.Contains(out, "cannot be undone") {
		t.Fatalf("without being meant: %v\n%s", err, out)
	}
	secrets := []string{number, "0" + strings.TrimPrefix(number, "234"), lid, "Adaeze", "Obinwanne", "ada@private.example", "the blue gate", spaced(number)}
	if found := bytesIn(t, redis, x.dir, secrets); len(found) == 0 {
		t.Fatal("the search finds nothing before she is forgotten")
	}
	x.p.End(os.Interrupt)
	// Cut off when the log, the accounts and the keys are done, and nothing else is: the second try finds the rest.
	if out, err := x.p.Beside("payer", "forget", number, "--yes", "--redis-url", "redis://127.0.0.1:1"); err == nil || !strings.Contains(out, "make Redis forget") {
		t.Fatalf("with no Redis there: %v\n%s", err, out)
	}
	out, err = x.p.Beside("payer", "forget", number, "--yes", "--json")
	if err != nil || !strings.Contains(out, `"as": "payer_`) {
		t.Fatalf("to forget her: %v\n%s", err, out)
	}
	for _, found := range bytesIn(t, redis, x.dir, secrets) {
		t.Errorf("she still stands in %s", found)
	}
	if database != "" {
		rowsHold(t, database, secrets)
	}
	for _, args := range [][]string{{"verify"}, {"ledger", "check"}, {"replay", session, "--verify"}} {
		if out, err := x.p.Beside(args...); err != nil {
			t.Errorf("till %v: %v\n%s", args, err, out)
		}
	}
	if out, err := x.p.Beside("replay", session); err != nil || !strings.Contains(out, "the payer was forgotten") {
		t.Errorf("her story: %v\n%s", err, out)
	}
	if out, err := x.p.Beside("payer", "export", number); err != nil || !strings.Contains(out, `"sessions": []`) || !strings.Contains(out, `"chats": []`) {
		t.Errorf("what is kept of her: %v\n%s", err, out)
	}
	// Whoever writes again is somebody new, and the other one goes on.
	x.start()
	x.p.Line(`/phone$|of that network`)
	waitReady(m)
	_, text := m.openChat(300_000, "order-again")
	ada = payerNamed(m, "+"+number, "Adaeze Obinwanne") // whose phone it was is forgotten too
	ada.says(text)
	ada.hears(`Ada Stores(?s:.*)₦3,000`)
	ben.says("receipt")
	ben.hears(`(?i)receipt`)
}

// spaced is a number as people write it down.
func spaced(number string) string { return "0" + number[3:6] + " " + number[6:9] + " " + number[9:] }

func mustUnescape(t *testing.T, text string) string {
	t.Helper()
	plain, err := url.PathUnescape(text)
	must(t, err)
	return plain
}

// between is what of a text stands between two others, first found.
func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// payerNamed is a person with a phone and a name.
func payerNamed(m *merchant, number, name string) *payer {
	m.t.Helper()
	data := m.call(http.MethodPost, "/v1/test/phones", object{"phone": number, "pushName": name})
	return &payer{m: m, phone: url.PathEscape(data["phone"].(string))}
}

// payAs has a person pay for a session that was made for them.
func payAs(m *merchant, p *payer, s *sink, number, email, place string) (session string) {
	m.t.Helper()
	data := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{
		"amount": 500_000, "customerEmail": email, "customerPhone": "+" + number, "mode": "chat", "reference": "order-" + number[len(number)-4:],
		"description": "lamp for " + place, "metadata": object{"address": place},
	})
	link, err := url.Parse(data["checkoutUrl"].(string))
	must(m.t, err)
	p.says(link.Query().Get("text"))
	p.hears(`₦5,000(?s:.*)1 Bank transfer`)
	p.says("leave it at " + place + " please")
	p.says("1")
	payByTransfer(m.t, m, p, "")
	p.hears(`(?i)receipt(?s:.*)₦5,000`)
	s.success()
	return data["id"].(string)
}

// bytesIn names the files under a data dir, and the dump of Redis, in which any of
// some texts stands.
func bytesIn(t *testing.T, r *redistest.Server, dir string, texts []string) (found []string) {
	t.Helper()
	look := func(name string, text []byte) {
		for _, one := range texts {
			if one == "" {
				t.Fatal("there is nothing to search for")
			}
			if bytes.Contains(text, []byte(one)) {
				found = append(found, name+": "+one)
			}
		}
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		look(strings.TrimPrefix(path, dir), text)
		return err
	})
	must(t, err)
	look("redis", r.Dump())
	return found
}

// rowsHold fails where any of some texts stands in a row of PostgreSQL.
func rowsHold(t *testing.T, database string, texts []string) {
	t.Helper()
	for name, schema := range stores() {
		err := store.Look(t.Context(), store.Config{Schema: schema, URL: database, Name: name}, func(r store.Reader) error {
			for _, one := range texts {
				places, err := r.Mentions(t.Context(), one)
				if err != nil {
					return err
				}
				if len(places) > 0 {
					t.Errorf("%q still stands in %s: %v", one, name, places)
				}
			}
			return nil
		})
		must(t, err)
	}
}
