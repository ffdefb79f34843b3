package sim

import (
	"fmt"
	"net/http"
	"time"

	"till/flow"
)

// errands are what merchants and operators do beside asking for money.
func (w *world) errands() {
	any1 := func() time.Duration { return w.between(time.Hour, lasts-2*time.Hour) }
	for range 6 {
		w.after(any1(), "probe", w.probes)
		w.after(any1(), "mistake", w.mistakes)
		w.after(any1(), "mistake", w.mistakes)
		w.after(any1(), "endpoint", w.tendsEndpoint)
	}
	for range 8 {
		w.after(any1(), "scene", w.scenes)
	}
	for range 4 {
		w.after(any1(), "charge", w.charges)
		w.after(any1(), "kyc", w.rules)
		w.after(any1(), "kyc", w.rules)
	}
	if w.roll(40) {
		for range 20 {
			w.after(any1(), "craft", w.crafts)
		}
	}
	w.after(any1(), "stray", w.strays)
	w.after(any1(), "settle", w.settlesNow)
}

// nobody is an id that nothing has.
const nobody = "01m7y6b2svb0wy2rg89w393p3j"

// probes has a merchant ask for what is another's: it must look as if it were not
// there.
func (w *world) probes() {
	if len(w.sessions) == 0 {
		return
	}
	s := pick(w, w.sessions...)
	if s.id == "" {
		return
	}
	other := w.merchants[(s.m.n+1)%len(w.merchants)]
	w.hidden("I10", sessionsPath+"/", s.id, "wsp_sess_", other.secret)
	row := w.book.envs[0].sessions[s.id]
	if row != nil && len(row.money) > 0 {
		w.hidden("I10", "/v1/payments/", row.money[0], "wsp_pay_", other.secret)
	}
}

// crosses has a merchant ask for a live session with its test key, and the other
// way round.
func (w *world) crosses(s *session) {
	w.hidden("I9", sessionsPath+"/", s.id, "wsp_sess_", s.m.secret)
	w.ask("live "+s.ref, request{method: http.MethodGet, path: sessionsPath + "/" + s.id, key: s.m.live}, func(out reply) {
		if out.status != 0 && out.status != http.StatusOK {
			w.breaks("I9", "a live session cannot be read with its live key: %d %s", out.status, out.body)
		}
	})
	w.ask("live pay "+s.ref, request{method: http.MethodPost, path: sessionsPath + "/" + s.id + "/pay/bank-transfer", key: s.m.live}, nil)
	if w.roll(40) {
		w.insist("live cancel "+s.ref, request{method: http.MethodPost, path: sessionsPath + "/" + s.id + "/cancel", key: s.m.live, once: s.m.once()}, nil)
	}
	for _, other := range w.sessions {
		if !other.live && other.id != "" && other.m == s.m {
			w.hidden("I9", sessionsPath+"/", other.id, "wsp_sess_", s.m.live)
			return
		}
	}
}

// hidden judges that what is not a key's looks like nothing at all.
func (w *world) hidden(invariant, path, id, prefix, key string) {
	w.ask("hidden "+path+w.called(id), request{method: http.MethodGet, path: path + id, key: key}, func(theirs reply) {
		w.ask("nothing", request{method: http.MethodGet, path: path + prefix + nobody, key: key}, func(none reply) {
			if theirs.status == 0 || none.status == 0 || none.status == http.StatusForbidden && theirs.status == http.StatusForbidden {
				return
			}
			if theirs.status != http.StatusNotFound || theirs.status != none.status || theirs.code != none.code {
				w.breaks(invariant, "%s%s of another is answered %d %s, and what is not there %d %s", path, w.called(id), theirs.status, theirs.code, none.status, none.code)
			}
		})
	})
}

// charges has a merchant ask for a charge, which calls the bank at once.
func (w *world) charges() {
	m := pick(w, w.merchants...)
	s := &session{n: w.nth, m: m, amount: int64(10_000 + w.rng.IntN(500_000)), mayCall: true, ends: w.age() + time.Hour}
	s.ref = fmt.Sprintf("s%d", s.n)
	w.sessions = append(w.sessions, s)
	w.insist("charge "+s.ref, request{
		method: http.MethodPost, path: "/v1/charges", key: m.secret, once: m.once(),
		body: encoded(map[string]any{"amount": s.amount, "customerEmail": "ada@example.com", "reference": s.ref}),
	}, func(out reply) {
		s.id, s.account = out.text("sessionId"), out.text("virtualAccount.accountNumber")
		w.name(s.id, s.ref)
		if s.id == "" || s.account == "" {
			return
		}
		w.payer(s, "bank-transfer")
		id := out.text("id")
		for range 3 {
			w.after(w.between(time.Second, time.Hour), "requery", func() {
				w.ask("requery "+s.ref, request{method: http.MethodPost, path: "/v1/charges/" + id + "/requery", key: m.secret, once: m.once()}, nil)
			})
		}
	})
}

// strays sends money to an account that is nobody's.
func (w *world) strays() {
	w.plays("stray money", func() error {
		_, err := w.bank.player.Transfer(w.ctx, transferTo("9123456789", 70_000, w))
		return err
	})
}

// settlesNow has a merchant try a settlement out.
func (w *world) settlesNow() {
	m := pick(w, w.merchants...)
	w.insist("settle "+m.name, request{method: http.MethodPost, path: "/v1/test/settlements/run", key: m.secret, once: m.once(), body: `{}`}, nil)
}

// tendsEndpoint has a merchant do something about its endpoint.
func (w *world) tendsEndpoint() {
	m := pick(w, w.merchants...)
	if len(m.sinks) == 0 || m.sinks[0].id == "" {
		return
	}
	k := m.sinks[0]
	at := "/v1/webhook-endpoints/" + k.id
	switch w.rng.IntN(5) {
	case 0:
		w.rotates(k)
	case 1:
		w.insist("ping "+k.url, request{method: http.MethodPost, path: at + "/ping", key: m.secret, once: m.once()}, nil)
	case 2:
		w.ask("disable "+k.url, request{method: http.MethodPatch, path: at, key: m.secret, body: `{"status":"DISABLED"}`}, nil)
		w.after(w.between(time.Minute, 3*time.Hour), "ping", func() {
			w.insist("ping "+k.url, request{method: http.MethodPost, path: at + "/ping", key: m.secret, once: m.once()}, nil)
		})
		w.after(w.between(3*time.Hour, 9*time.Hour), "enable", func() { w.enables(k) })
	case 3:
		w.insist("replay "+k.url, request{
			method: http.MethodPost, path: at + "/replay", key: m.secret, once: m.once(), body: encoded(map[string]any{"from": flow.Stamp(w.now().Add(-6 * time.Hour)), "to": flow.Stamp(w.now())}),
		}, nil)
	default:
		w.ask("events", request{method: http.MethodGet, path: "/v1/events?limit=5", key: m.secret}, func(out reply) {
			items, ok := out.data["items"].([]any)
			if !ok || len(items) == 0 {
				return
			}
			one, ok := items[0].(map[string]any)
			if id, is := one["id"].(string); ok && is {
				w.insist("resend "+w.called(id), request{method: http.MethodPost, path: "/v1/events/" + id + "/resend", key: m.secret, once: m.once()}, nil)
			}
		})
	}
}

// rules has an operator, or the newcomer itself, move its KYC.
func (w *world) rules() {
	i, project := w.inst, w.tpl.project
	ways := map[string][]flow.Ruling{"SUBMITTED": {flow.Approve, flow.Approve, flow.Reject, flow.Suspend}, "APPROVED": {flow.Suspend}, "SUSPENDED": {flow.Approve}}
	do := flow.Ruling("")
	if to := ways[w.kyc]; len(to) > 0 {
		do = pick(w, to...)
	}
	if w.roll(20) { // or what does not fit
		do = pick(w, "", flow.Approve, flow.Reject, flow.Suspend)
	}
	w.goes(i, func() {
		if do == "" {
			if _, err := i.accounts.SubmitKYC(i.ctx, project, flow.KYCDetails{LegalName: "New Traders"}, plainCall(project)); err != nil {
				w.saw("kyc: cannot be handed in")
				return
			}
		} else if _, err := i.accounts.RuleKYC(i.ctx, project, do, "as the simulation has it"); err != nil {
			w.saw("kyc: cannot be ruled so")
			return
		}
		moves, err := i.accounts.KYC(i.ctx, project)
		if err != nil || len(moves) == 0 {
			return
		}
		w.soon(0, "kyc", func() {
			for _, m := range moves[min(w.ruled, len(moves)):] {
				w.ruled++
				w.ruling(string(m.From), string(m.To))
			}
		})
	})
}

// ruling judges a move of the newcomer's KYC.
func (w *world) ruling(was, is string) {
	if was != w.kyc {
		w.breaks("I6", "KYC was %s and moved from %s to %s", w.kyc, was, is)
	}
	if !w.goals.edge("kyc", was, is) {
		w.breaks("I6", "KYC went from %s to %s, which no table knows", was, is)
	}
	w.kyc = is
	w.saw("kyc: %s → %s", was, is)
}
