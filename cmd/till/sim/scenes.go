package sim

import (
	"cmp"
	"net/http"
	"time"

	"till/flow"
)

// scenes are what merchants do that their sessions' own ways do not lead to.
func (w *world) scenes() {
	var s *session
	for range 10 {
		if len(w.sessions) > 0 && (s == nil || s.id == "" || s.live) {
			s = pick(w, w.sessions...)
		}
	}
	if s == nil || s.id == "" || s.live {
		return
	}
	status := ""
	if row := w.book.envs[0].sessions[s.id]; row != nil {
		status = row.status
	}
	at := sessionsPath + "/" + s.id
	switch w.rng.IntN(9) {
	case 0: // a second one of the same name
		w.ask("open "+s.ref+" anew", request{
			method: http.MethodPost, path: sessionsPath, key: s.m.secret, once: s.m.once(),
			body: encoded(map[string]any{"amount": 70_000, "customerEmail": "ada@example.com", "reference": s.ref}),
		}, func(out reply) {
			if out.status == http.StatusCreated {
				w.breaks("sim", "%s was opened twice", s.ref)
			}
		})
	case 1: // an old key for something else
		if len(w.acks) > 0 {
			a := pick(w, w.acks...)
			r := a.r
			r.body = goodBody
			if r.path == sessionsPath && w.age()-a.at < keysKept {
				w.ask("misuse of a key", r, func(out reply) {
					if out.status == http.StatusCreated {
						w.breaks("I5", "a key was taken for another request: %s", out.body)
					}
				})
			}
		}
	case 2:
		if status == "PAID" {
			w.ask("pay "+s.ref+" although it is paid", request{method: http.MethodPost, path: at + "/pay/card", key: s.m.secret}, nil)
		}
	case 3:
		for range 10 { // one that is open, if there is one
			if one := pick(w, w.sessions...); status != "PENDING" && !one.live && w.book.envs[0].sessions[one.id] != nil {
				s, status, at = one, w.book.envs[0].sessions[one.id].status, sessionsPath+"/"+one.id
			}
		}
		if status == "PENDING" {
			w.ask("receipt of "+s.ref, request{method: http.MethodGet, path: at + "/receipt.png", key: s.m.secret}, nil)
		}
	case 4:
		if status == "PENDING" {
			w.ask("pay "+s.ref+" from a bank of nobody's", request{method: http.MethodPost, path: at + "/pay/ussd", key: s.m.secret, body: `{"bankCode":"777"}`}, nil)
		}
	case 5: // one secret after the other
		k := s.m.sinks[0]
		for range 9 {
			w.rotates(k)
		}
	case 6:
		w.stops(s.m)
	case 7:
		if w.kyc == "SUBMITTED" || w.kyc == "APPROVED" {
			w.ask("kyc handed in again", request{method: http.MethodPost, path: "/v1/projects/" + string(w.tpl.project) + "/kyc", key: w.tpl.token}, nil)
		}
	default:
		for range 2 {
			if len(s.money) > 0 {
				w.ask("reversal of "+s.ref, request{method: http.MethodPost, path: "/v1/test/bank/reversals", key: s.m.secret, body: encoded(map[string]any{"railTransactionId": s.money[0]})}, nil)
			}
		}
	}
}

// rotates has a merchant draw a new secret for an endpoint, and a key pair every other
// time.
func (w *world) rotates(k *sink) {
	if k.id == "" {
		return
	}
	w.mu.Lock()
	kind := flow.Signatures()[len(k.secrets)%2]
	w.mu.Unlock()
	w.insist("rotate "+k.url, request{method: http.MethodPost, path: "/v1/webhook-endpoints/" + k.id + "/rotate-secret", key: k.m.secret, once: k.m.once(), body: encoded(map[string]any{"signature": kind})}, func(out reply) {
		if secret := cmp.Or(out.text("secret"), out.text("publicKey")); secret != "" {
			w.mu.Lock()
			k.secrets, k.learnt = append(k.secrets, secret), append(k.learnt, w.age())
			w.mu.Unlock()
		}
	})
}

// stops has an operator stop a merchant for a while: what is paid is kept all the
// same.
func (w *world) stops(m *merchant) {
	move := func(to string) {
		i := w.inst
		w.goes(i, func() {
			if _, err := i.board.Move(i.ctx, flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(m.project), To: to, Reason: "as the simulation has it", By: "operator", At: w.now()}); err != nil && !i.dead.Load() {
				w.breaks("sim", "stop %s: %v", m.name, err)
			}
		})
		w.saw("%s is %q", m.name, to)
	}
	move(flow.MerchantStopped)
	w.after(w.between(10*time.Minute, 3*time.Hour), "goes on", func() { move("") })
}
