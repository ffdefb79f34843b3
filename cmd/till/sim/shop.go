package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/rail"
)

const (
	sessionsPath = "/v1/whatsapp/checkout/sessions"
	maxPatience  = 30 // tries of a merchant whose call was cut off, or is to come again
)

// session is a request for money as its merchant knows it.
type session struct {
	n      int
	m      *merchant
	ref    string
	id     string
	amount int64
	live   bool
	link   string  // into the chat
	payer  *person // who opens it in a chat, nil for nobody
	// mayCall says that a bank may be called for it: a method was asked for over
	// REST, or its payer wrote what may choose one.
	mayCall bool
	account string // of the instructions last given out
	code    string // to dial
	attempt string
	ends    time.Duration
	money   []string // the bank's names of what was paid
}

// once is a key that this merchant did not use before. Other merchants use the
// same ones: whose key it is must count.
func (m *merchant) once() string {
	m.calls++
	return fmt.Sprintf("key-%d", m.calls)
}

// insist makes a call that has a key until it is answered for good: a merchant's
// library does so.
func (w *world) insist(name string, r request, then func(reply)) {
	tries := 0
	var try func()
	try = func() {
		w.ask(name, r, func(out reply) {
			retry := out.status == 0 || out.code == "idempotency_in_progress" || out.code == "storage_unavailable"
			if out.status == 0 && r.once != "" {
				w.unheard[r.key+r.once] = true
			}
			if tries++; retry && tries < maxPatience {
				w.after(w.between(time.Second, 20*time.Second), name+" once more", try)
				return
			}
			if then != nil && out.status != 0 {
				then(out)
			}
		})
		if r.once != "" && w.roll(w.swarm.double) { // its connection broke, and it asks a second time while the first is at work, or just was
			w.after(w.between(0, 2*time.Second), "second "+name, func() { w.ask("second "+name, r, nil) })
		}
	}
	try()
}

// opens has a merchant ask for money.
func (w *world) opens(chat, live bool, then func(*session)) {
	s := &session{n: w.nth, m: pick(w, w.merchants...), live: live}
	if live {
		s.m = w.merchants[w.rng.IntN(2)]
	}
	w.sessions = append(w.sessions, s)
	s.ref = fmt.Sprintf("s%d", s.n)
	s.amount = pick(w, int64(500_000), 100, 249_999, 250_000, 12_345, 2_500_000, 1_999_950, 2_500_000_000, 777_700, int64(1000+w.rng.IntN(900_000)))
	minutes := pick(w, 5, 15, 30, 30, 60, 60, 180, 1440, 4320)
	s.ends = w.age() + time.Duration(minutes)*time.Minute
	body := map[string]any{
		"amount": s.amount, "customerEmail": fmt.Sprintf("payer%d@example.com", s.n), "reference": s.ref, "expiresInMinutes": minutes,
		"underpayment": pick(w, "hold", "hold", "accept", "refund"), "overpayment": pick(w, "accept", "refund_excess"), "latePayment": pick(w, "review", "accept", "refund"),
	}
	if chat {
		body["mode"] = "chat"
	}
	if w.roll(10) {
		body["allowedMethods"] = []string{pick(w, "bank_transfer", "card")}
	}
	r := request{method: http.MethodPost, path: sessionsPath, key: s.m.secret, body: encoded(body), once: s.m.once()}
	if live {
		r.key = s.m.live
	}
	if w.roll(8) {
		r.once = ""
	}
	w.insist("open "+s.ref, r, func(out reply) {
		if out.status != http.StatusCreated {
			if out.status == 0 || out.code == "whatsapp_unavailable" || out.code == "project_suspended" || out.code == "duplicate_reference" || out.code == "rate_limited" {
				return
			}
			w.breaks("sim", "%s cannot be opened: %d %s", s.ref, out.status, out.body)
			return
		}
		s.id, s.link = out.text("id"), out.text("checkoutUrl")
		w.name(s.id, s.ref)
		then(s)
		if r.once != "" && w.roll(15) {
			a := w.acks[len(w.acks)-1]
			w.after(w.between(time.Minute, 22*time.Hour), "again", func() { w.askAgain(a) })
		}
	})
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts and numbers can be encoded
	}
	return string(text)
}

// pays asks for a method over REST, and has somebody pay.
func (w *world) pays(s *session, method string) {
	s.mayCall = true
	r := request{method: http.MethodPost, path: sessionsPath + "/" + s.id + "/pay/" + method, key: s.m.secret, once: s.m.once()}
	if method == "ussd" {
		r.body = `{"bankCode":"058"}`
	}
	if w.roll(10) { // the payer's browser asks by itself
		r.key, r.header = s.m.public, map[string]string{"X-Client-Secret": "cs_" + s.id}
	}
	tries := 0
	w.insist(fmt.Sprintf("pay %s by %s", s.ref, method), r, func(out reply) {
		if out.status == http.StatusServiceUnavailable && tries < 4 { // the bank did not answer
			tries++
			w.after(w.between(5*time.Second, 5*time.Minute), "ask again", func() { w.pays(s, method) })
			return
		}
		if out.status != http.StatusOK && out.status != http.StatusCreated {
			return
		}
		s.account, s.code, s.attempt = cmp.Or(out.text("accountNumber"), s.account), cmp.Or(out.text("paymentCode"), s.code), out.text("attemptId")
		w.payer(s, method)
	})
}

// payer has somebody pay to the instructions that a session has, or not.
func (w *world) payer(s *session, method string) {
	left := max(s.ends-w.age(), 0)
	soon := w.between(10*time.Second, 10*time.Minute)
	switch method {
	case "ussd":
		w.after(soon, "dial", func() {
			w.plays("dial "+s.ref, func() error {
				return w.bank.player.CompleteUSSD(w.ctx, s.code, pick(w, "success", "success", "failed"))
			})
		})
	case "card":
		w.after(soon, "card", func() {
			w.ask("card "+s.ref, request{
				method: http.MethodPost, path: "/v1/test/cards/" + s.attempt + "/complete", key: s.m.secret,
				body: `{"outcome":"` + pick(w, "approved", "approved", "declined") + `"}`,
			}, nil)
		})
	default:
		plan := w.rng.IntN(100)
		switch {
		case plan < 42:
			w.transfers(s, soon, 0, rail.Transfer{})
		case plan < 50: // less
			w.transfers(s, soon, max(s.amount/2, 1), rail.Transfer{})
		case plan < 57: // in two parts
			w.transfers(s, soon, max(s.amount/3, 1), rail.Transfer{})
			w.transfers(s, soon+w.between(time.Minute, 20*time.Minute), s.amount-max(s.amount/3, 1), rail.Transfer{})
		case plan < 64: // more
			w.transfers(s, soon, s.amount+int64(1+w.rng.IntN(100_000)), rail.Transfer{})
		case plan < 70: // twice
			w.transfers(s, soon, s.amount, rail.Transfer{})
			w.transfers(s, soon+w.between(time.Second, 3*time.Hour), s.amount, rail.Transfer{})
		case plan < 78: // when it is over
			w.transfers(s, left+w.between(time.Minute, 8*time.Hour), s.amount, rail.Transfer{})
		case plan < 82: // around its end
			w.transfers(s, left+w.between(0, 12*time.Minute)-6*time.Minute, s.amount, rail.Transfer{})
		case plan < 86:
			w.transfers(s, soon, s.amount, rail.Transfer{PendingMs: 1000 * (30 + w.rng.IntN(500))})
		case plan < 88:
			w.transfers(s, soon, s.amount, rail.Transfer{Returned: true, PendingMs: 1000 * w.rng.IntN(500)})
		case plan < 91: // taken back later
			w.transfers(s, soon, s.amount, rail.Transfer{})
			w.after(soon+w.between(time.Minute, 30*time.Hour), "take back", func() { w.takesBack(s) })
		case plan < 95: // cancelled, and paid after all
			w.after(soon, "cancel", func() { w.cancels(s) })
			w.transfers(s, soon+w.between(time.Minute, time.Hour), s.amount, rail.Transfer{})
		}
	}
	if w.roll(35) {
		w.after(soon+w.between(time.Minute, 40*time.Hour), "aftercare", func() { w.aftercare(s) })
	}
	if w.roll(20) {
		w.after(soon+w.between(0, time.Hour), "read", func() {
			w.ask("read "+s.ref, request{method: http.MethodGet, path: sessionsPath + "/" + s.id, key: s.m.secret}, nil)
		})
	}
}

// plays has the world do something at the bank.
func (w *world) plays(name string, do func() error) {
	err := do()
	w.saw("%s%s", name, map[bool]string{true: ": refused"}[err != nil])
}

// transfers has somebody send money to a session's account, amount 0 for what is
// asked for.
func (w *world) transfers(s *session, in time.Duration, amount int64, t rail.Transfer) {
	w.after(in, "transfer", func() {
		if s.account == "" {
			return
		}
		t.AccountNumber, t.Amount = s.account, kobo(amount)
		if t.Amount == 0 {
			t.Amount = kobo(s.amount)
		}
		w.transfer(fmt.Sprintf("transfer %d to %s", t.Amount, s.ref), s, t)
	})
}

// transfer has somebody send money for a session now.
func (w *world) transfer(name string, s *session, t rail.Transfer) {
	t.ValueTime = w.now().Add(time.Duration(t.PendingMs) * time.Millisecond)
	w.plays(name, func() error {
		got, err := w.bank.player.Transfer(w.ctx, t)
		if err == nil {
			s.money = append(s.money, got.RailTransactionID)
			w.name(got.RailTransactionID, fmt.Sprintf("%s.credit%d", s.ref, len(s.money)))
		}
		return err
	})
}

func (w *world) takesBack(s *session) {
	if len(s.money) > 0 {
		w.plays("take back of "+s.ref, func() error {
			_, err := w.bank.player.Reverse(w.ctx, pick(w, s.money...))
			return err
		})
	}
}

func (w *world) cancels(s *session) {
	w.insist("cancel "+s.ref, request{method: http.MethodPost, path: sessionsPath + "/" + s.id + "/cancel", key: s.m.secret, once: s.m.once()}, nil)
}

// aftercare has a merchant decide about the money of a session.
func (w *world) aftercare(s *session) {
	row := w.book.envs[0].sessions[s.id]
	if row == nil {
		return
	}
	if len(row.money) == 0 {
		w.ask("charge of "+s.ref, request{method: http.MethodGet, path: "/v1/charges?limit=5", key: s.m.secret}, nil)
		return
	}
	id := pick(w, row.money...)
	p := w.book.envs[0].payments[id]
	switch w.rng.IntN(5) {
	case 0, 1:
		w.insist("resolve "+w.called(id), request{
			method: http.MethodPost, path: "/v1/payments/" + id + "/resolve", key: s.m.secret, once: s.m.once(),
			body: encoded(map[string]any{"action": pick(w, "accept", "refund"), "reason": "as the simulation has it"}),
		}, nil)
	case 2, 3:
		body := map[string]any{"paymentId": id, "reason": "as the simulation has it"}
		if part := p.amount / int64(1+w.rng.IntN(4)); part > 0 && w.roll(60) {
			body["amount"] = part
		}
		if w.roll(5) {
			body["amount"] = p.amount + 1
		}
		w.refunds(s, body)
	default:
		w.ask("payment "+w.called(id), request{method: http.MethodGet, path: "/v1/payments/" + id, key: s.m.secret}, nil)
	}
}

// refunds asks for a refund, and again where it did not work.
func (w *world) refunds(s *session, body map[string]any) {
	w.insist("refund of "+s.ref, request{method: http.MethodPost, path: "/v1/refunds", key: s.m.secret, once: s.m.once(), body: encoded(body)}, func(out reply) {
		id := out.text("id")
		if out.status != http.StatusCreated || !strings.HasPrefix(id, "wsp_rfd_") {
			return
		}
		for range 2 {
			w.after(w.between(time.Minute, 30*time.Hour), "retry", func() {
				w.insist("retry of "+w.called(id), request{method: http.MethodPost, path: "/v1/refunds/" + id + "/retry", key: s.m.secret, once: s.m.once()}, nil)
			})
		}
	})
}
