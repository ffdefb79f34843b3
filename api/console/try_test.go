package console_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/api"
	"till/flow"
	"till/flow/await"
)

// tries opens a world whose clock can be moved, with a visitor who may play.
func tries(t *testing.T) (*world, *visitor) {
	t.Helper()
	var w *world
	w = open(t, func(c *api.Config) {
		c.AdvanceClock = func(seconds int64) (time.Time, bool) {
			moved := seconds < 1_000_000
			if moved {
				w.pass(time.Duration(seconds) * time.Second)
			}
			return w.now(), moved
		}
	})
	return w, w.as(flow.RoleOwner)
}

func TestASessionIsTriedOut(t *testing.T) {
	w, v := tries(t)
	w.wants(v.get("/try"), http.StatusOK, "No session yet", "/phone?bare")
	w.wants(v.post("/try/open", form("amount", "4,500.00")), http.StatusSeeOther)
	got := v.get("/try")
	w.wants(got, http.StatusOK, "₦4,500.00", "/phone?bare&amp;text=Pay", "not opened", "No account number yet")
	if !strings.Contains(got.header.Get("Content-Security-Policy"), "frame-src 'self'") {
		t.Error("the phone cannot be shown in the page")
	}
	id := flow.SessionID(regexp.MustCompile(`wsp_sess_[0-9a-z]+`).FindString(got.body))
	session, err := w.dbs[flow.Test].Session(t.Context(), id)
	must(t, err)
	p := &payer{w: w, person: "7710", name: nasty}
	p.says(flow.Intent{Kind: flow.MeansCode, Code: session.EntryCode})
	p.transfers()
	w.wants(v.get("/try?session="+string(id)), http.StatusOK, "await transfer", "remind", "Pay half")
	w.wants(v.post("/try/bank", form("session", string(id), "how", "under")), http.StatusSeeOther)
	shows := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			await.Until(t, "the page shows "+text, func() bool { return strings.Contains(v.get("/try?session="+string(id)).body, text) })
		}
	}
	shows("create virtual account", `₦2,250.00</span> of <span class="money">₦4,500.00`)
	w.wants(v.post("/try/bank", form("session", string(id), "how", "by barter")), http.StatusBadRequest)
	w.wants(v.post("/try/card", form("session", string(id), "how", "approved")), http.StatusBadRequest, "no card page")
	for _, how := range []string{"under", "over", "late", "twice", "again", "lost", "exact"} {
		w.wants(v.post("/try/bank", form("session", string(id), "how", how)), http.StatusSeeOther)
	}
	shows(`₦4,500.00</span> of <span class="money">₦4,500.00`, "paid")
}

// What is sent exactly is what is left, also where the bank, which knows its own accounts alone,
// has it otherwise: a part went back.
func TestTheExactAmountIsWhatIsLeft(t *testing.T) {
	w, v := tries(t)
	session := w.opened(w.ada, "")
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session+"/pay/bank-transfer", w.ada.secret, ""), http.StatusOK)
	v.get("/try?session=" + session)
	came := func(most int) (list []flow.Payment) {
		t.Helper()
		await.Until(t, "the money is there", func() bool {
			var err error
			list, err = w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(session))
			must(t, err)
			return len(list) == most
		})
		return list
	}
	w.wants(v.post("/try/bank", form("session", session, "how", "under")), http.StatusSeeOther)
	part := came(1)[0]
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(part.ID)+`","amount":`+part.Amount.Minor()+`}`), http.StatusCreated)
	w.wants(v.post("/try/bank", form("session", session, "how", "exact")), http.StatusSeeOther)
	if list := came(2); list[1].Amount != 500_000 {
		t.Errorf("%s was sent", list[1].Amount.Naira())
	}

	session = w.opened(w.ada, "")
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session+"/pay/bank-transfer", w.ada.secret, ""), http.StatusOK)
	w.pass(31 * time.Minute)
	await.Until(t, "the account is over", func() bool { return w.attempt(session).Status == flow.AttemptExpired })
	w.wants(v.post("/try/bank", form("session", session, "how", "under")), http.StatusSeeOther)
	came(1)
	w.wants(v.get("/try?session="+session), http.StatusOK, w.attempt(session).Instructions.AccountNumber+`</code>, <span class="money">₦2,500.00</span>`)
}

// A card page that is answered twice is no fault of ours: it ended, and says how.
func TestACardIsApprovedOnce(t *testing.T) {
	w, v := tries(t)
	session := w.opened(w.ada, "")
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session+"/pay/card", w.ada.secret, ""), http.StatusOK)
	v.get("/try?session=" + session)
	w.wants(v.post("/try/card", form("session", session, "how", "approved")), http.StatusSeeOther)
	for _, how := range []string{"approved", "declined"} {
		w.wants(v.post("/try/card", form("session", session, "how", how)), http.StatusBadRequest, "This payment has ended already, with the outcome &#34;approved&#34;. It ends only once.")
	}
	if strings.Contains(w.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log holds an error: %s", w.log)
	}
}

func TestTheBankMisbehavesAsItIsTold(t *testing.T) {
	w, v := tries(t)
	wanted := form("down", "1", "latency", "120", "loss", "5", "copies", "7", "refunds", "bounce", "payouts", "ok")
	w.wants(v.post("/try/chaos", wanted), http.StatusSeeOther)
	w.wants(v.get("/try"), http.StatusOK, `value="1" checked> The bank is down`, `value="120"`, `value="bounce" selected`)
	now, err := w.bank.Conditions(t.Context())
	if err != nil || now.Up || now.LatencyMs != 120 || now.NotifyLossPercent != 5 || now.DuplicatePercent != 7 {
		t.Errorf("the bank is set to %+v, %v", now, err)
	}
	for name, odd := range map[string]string{"latency": "30001", "loss": "101", "copies": "-1", "refunds": "eaten"} {
		bad := form("latency", "0", "refunds", "ok", "payouts", "ok")
		bad.Set(name, odd)
		w.wants(v.post("/try/chaos", bad), http.StatusBadRequest)
	}
	before := w.now()
	w.wants(v.post("/try/clock", form("seconds", "3600")), http.StatusSeeOther)
	if w.now().Sub(before) < time.Hour {
		t.Error("the clock was not moved")
	}
	v.get("/try")
	w.wants(v.post("/try/clock", form("seconds", "864000")), http.StatusSeeOther)
	w.wants(v.get("/try"), http.StatusOK, "It stands at") // still logged in
	for _, odd := range []string{"0", "-5", "x", "99999999999", "2000000"} {
		w.wants(v.post("/try/clock", form("seconds", odd)), http.StatusBadRequest)
	}
	w.wants(v.post("/try/dial", form("code", "ring ring")), http.StatusBadRequest)
	w.wants(v.post("/try/dial", form("code", "*737*000*9999999999#")), http.StatusNotFound)
}

func TestWebhooksAreCaught(t *testing.T) {
	w, v := tries(t)
	to := "/try/caught/" + string(w.ada.project.ID)
	catch := func(secret, body string) reply {
		t.Helper()
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		must(t, err)
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte("msg_1.1800000000." + body))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+to, strings.NewReader(body))
		must(t, err)
		r.Header.Set("Webhook-Id", "msg_1")
		r.Header.Set("Webhook-Timestamp", "1800000000")
		r.Header.Set("Webhook-Signature", "v1,bm9uZQ== v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		r.Header.Set("Content-Type", "application/json")
		return w.do(&http.Client{}, r)
	}
	none := "whsec_" + base64.StdEncoding.EncodeToString([]byte("some other secret"))
	w.wants(catch(none, "{}"), http.StatusNotFound)
	w.wants(v.get("/try"), http.StatusOK, "Nothing is caught")
	w.wants(v.post("/try/catch", nil), http.StatusSeeOther)
	w.wants(v.post("/try/catch", nil), http.StatusSeeOther)
	list, err := w.services[flow.Test].Endpoints(t.Context(), w.ada.project.ID)
	if err != nil || len(list) != 1 {
		t.Fatalf("the project has %d endpoints, %v", len(list), err)
	}
	w.wants(catch(none, `{"event":"forged.`+strings.ReplaceAll(nasty, `"`, `'`)+`"}`), http.StatusOK)
	w.wants(v.get("/try"), http.StatusOK, "forged.&lt;script&gt;", "does not verify")
	w.wants(catch(list[0].Secrets[0], `{"event":"charge.success","data":{}}`), http.StatusOK)
	w.wants(v.get("/try"), http.StatusOK, "charge.success", "signature verifies", "webhook-id")
	w.wants(v.post("/try/catcher", form("status", "410")), http.StatusSeeOther)
	w.wants(catch(none, "{}"), http.StatusGone, "caught")
	w.wants(v.post("/try/catcher", form("status", "204")), http.StatusBadRequest)
}

// The sandbox is the pretend world's own: it is not there elsewhere, nor for
// another's sessions, nor with real money, nor by another site's form.
func TestTheSandboxIsThisMachinesAlone(t *testing.T) {
	w, v := tries(t)
	p := &payer{w: w, person: "7711", name: "Bola"}
	id := p.opens(w.ada)
	other := w.as(flow.RoleOwner, w.merchant("Eve Shoes"))
	for _, path := range []string{"/try?session=", "/try/live?session="} {
		w.wants(other.get(path+string(id)), http.StatusNotFound)
	}
	for _, path := range []string{"open", "bank", "dial", "card", "clock", "chaos", "catch", "catcher"} {
		w.wants(other.post("/try/"+path, form("session", string(id), "how", "exact", "amount", "none")), map[bool]int{true: http.StatusBadRequest, false: http.StatusNotFound}[path == "open"])
		w.wants(v.post("/try/"+path, form("csrf", "guessed")), http.StatusForbidden)
		w.wants(w.visitor().post("/try/"+path, nil), http.StatusSeeOther)
	}
	for role, paths := range map[flow.Role]string{flow.RoleSupport: "open catch", flow.RoleOperator: "open catch"} {
		for path := range strings.FieldsSeq(paths) {
			w.wants(w.as(role).post("/try/"+path, nil), http.StatusForbidden)
		}
	}
	operator := w.as(flow.RoleOperator) // looks at all projects until one is chosen
	w.wants(operator.get("/"), http.StatusOK, "All projects", "Choose a project")
	w.wants(operator.get("/try"), http.StatusOK, "Which one?", `action="/choose"`, `value="`+string(w.ada.project.ID)+`"`)
	w.wants(operator.get("/try/live"), http.StatusBadRequest, "Choose a project")
	w.wants(operator.post("/choose", form("project", string(w.ada.project.ID), "env", "test", "next", "/try")), http.StatusSeeOther)
	w.wants(operator.get("/try"), http.StatusOK, "phone?bare")
	far, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+"/try", http.NoBody)
	must(t, err)
	for _, cookie := range v.http.Jar.Cookies(far.URL) {
		far.AddCookie(cookie)
	}
	far.Host = "till.example"
	w.wants(w.do(&http.Client{}, far), http.StatusNotFound)
	w.wants(v.post("/choose", form("env", "live", "project", string(w.ada.project.ID), "next", "/try")), http.StatusSeeOther)
	w.wants(v.get("/try"), http.StatusForbidden, "real money")
	elsewhere := open(t, func(c *api.Config) { c.Demo = "" })
	elsewhere.wants(elsewhere.as(flow.RoleOwner).get("/try"), http.StatusNotFound)
}
