package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
)

// payer is somebody with a chat.
type payer struct {
	w      *world
	person string
	name   string
	sent   int
	chat   flow.ChatID
}

// nasty is a name that a page must not take for markup.
const nasty = `<script>alert(1)</script>"'>`

// says has a payer write something, as it was understood.
func (p *payer) says(in flow.Intent) {
	p.w.t.Helper()
	p.sent++
	err := p.w.services[flow.Test].Hear(p.w.t.Context(), checkout.Inbound{
		Message: fmt.Sprintf("IN%s%d", p.person, p.sent), Number: "2348000000001", Person: p.person, Phone: "2348031234567", Name: p.name, Intent: in,
	})
	must(p.w.t, err)
	row, found, err := p.w.dbs[flow.Test].ChatOf(p.w.t.Context(), "2348000000001", p.person)
	if err != nil || !found {
		p.w.t.Fatal("the payer has no chat", err)
	}
	p.chat = row.ID
}

// opens has a payer open a new session of a merchant in their chat.
func (p *payer) opens(m merchant) flow.SessionID {
	p.w.t.Helper()
	got := p.w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions", m.secret, `{"amount":500000,"customerEmail":"a@example.com","mode":"chat","description":"for `+m.project.Name+`"}`)
	p.w.wants(got, http.StatusCreated)
	id := flow.SessionID(regexp.MustCompile(`wsp_sess_[0-9a-z]+`).FindString(got.body))
	session, err := p.w.dbs[flow.Test].Session(p.w.t.Context(), id)
	must(p.w.t, err)
	p.says(flow.Intent{Kind: flow.MeansCode, Code: session.EntryCode, Text: "Pay " + flow.ShowCode(session.EntryCode)})
	return id
}

// transfers has a payer choose a bank transfer, and waits for the instructions.
func (p *payer) transfers() {
	p.w.t.Helper()
	p.says(flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1 " + nasty})
	await.Until(p.w.t, "the instructions are told", func() bool {
		told, err := p.w.services[flow.Test].Retell(p.w.t.Context(), "", p.chat, "")
		return err == nil && told.Scenes[len(told.Scenes)-1].After == flow.AwaitTransfer
	})
}

// pays has the bank get all that a session asks for, and waits until its webhook
// is out.
func (p *payer) pays(id flow.SessionID) {
	p.w.t.Helper()
	p.w.wants(p.w.ask(http.MethodPost, "/v1/webhook-endpoints", p.w.ada.secret, `{"url":"https://ada.example/hook"}`), http.StatusCreated)
	attempts, err := p.w.dbs[flow.Test].Attempts(p.w.t.Context(), id)
	if err != nil || len(attempts) == 0 {
		p.w.t.Fatal("the session has no attempt", err)
	}
	p.w.wants(p.w.ask(http.MethodPost, "/v1/test/bank/transfers", p.w.ada.secret, `{"accountNumber":"`+attempts[0].Instructions.AccountNumber+`"}`), http.StatusOK)
	await.Until(p.w.t, "the payment is told to its merchant", func() bool {
		tries, err := p.w.dbs[flow.Test].Tries(p.w.t.Context(), id, 1)
		return err == nil && len(tries) > 0
	})
}

func TestAConversationIsReplayed(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7700", name: nasty}
	id := p.opens(w.ada)
	p.transfers()
	page := "/sessions/" + string(id) + "/replay"
	support := w.as(flow.RoleSupport)
	got := support.get(page)
	w.wants(got, http.StatusOK, "Replay matches log", "transfer_how", "&lt;script&gt;alert(1)", "bank transfer", "choosing", "opening", "await transfer", "start bank_transfer",
		"answer about", "data-player", "/console/replay.js", "till replay "+string(id))
	if strings.Contains(got.body, "08031234567") || strings.Contains(got.body, "2348031234567") {
		t.Error("a whole phone number stands on the page")
	}
	w.wants(support.get("/chats/"+string(p.chat)+"/replay"), http.StatusOK, "Replay matches log")
	w.wants(w.visitor().get("/console/replay.js"), http.StatusOK, "data-player")

	p.pays(id)
	w.wants(support.get(page), http.StatusOK, "charge.success, try 1", "rail clearing", "till: paid ₦5,000", "matches log",
		"The bank tells us that ₦5,000 came by bank transfer, with the time ", "A webhook, charge.success, was made for the merchant")

	first := support.get(page + "?at=1")
	w.wants(first, http.StatusOK, "Step 1 of", "Pay "+entryCode(t, w, id))
	if strings.Contains(first.body, "transfer_how") || !strings.Contains(first.body, "at=2") {
		t.Error("a step shows what came after it, or does not lead on")
	}
	for _, odd := range []string{"?at=-1", "?at=999999999999999999999", "?at=x", "?from=99", "?chat=chat_other"} {
		w.wants(support.get(page+odd), http.StatusOK, "Replay")
	}
}

// entryCode is the entry code of a session as people read it.
func entryCode(t *testing.T, w *world, id flow.SessionID) string {
	t.Helper()
	session, err := w.dbs[flow.Test].Session(t.Context(), id)
	must(t, err)
	return flow.ShowCode(session.EntryCode)
}

// What a payer writes to the person who has their chat is no surprise: the bot is silent.
func TestWhatIsWrittenToAPersonIsNoSurprise(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7704", name: "Bola"}
	id := p.opens(w.ada)
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	must(t, w.services[flow.Test].Claim(t.Context(), p.chat, w.ada.email, 0))
	p.says(flow.Intent{Kind: flow.MeansNothing, Text: "my parcel is wet"})
	p.says(flow.Intent{Kind: flow.MeansThanks, Text: "thank you"})
	page := w.as(flow.RoleSupport).get("/sessions/" + string(id) + "/replay")
	w.wants(page, http.StatusOK, "my parcel is wet", "thank you")
	for _, odd := range []string{"it was not understood", "nothing came of it"} {
		if strings.Contains(page.body, odd) {
			t.Errorf("the replay says %q", odd)
		}
	}
}

func TestAReplayNamesTheFirstLineThatDiffers(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7701", name: "Bola"}
	id := p.opens(w.ada)
	p.transfers()
	w.rewords(func(key string) string { return strings.Replace(key, "transfer_how", "another way to say it", 1) })
	w.wants(w.as(flow.RoleSupport).get("/sessions/"+string(id)+"/replay"), http.StatusOK, "Replay differs from log", "copy-only", "transfer_how", "another way to say it", "First surprise")
}

func TestASessionThatNobodyOpenedHasNothingToReplay(t *testing.T) {
	w := open(t)
	got := w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions", w.ada.secret, `{"amount":500000,"customerEmail":"a@example.com"}`)
	id := regexp.MustCompile(`wsp_sess_[0-9a-z]+`).FindString(got.body)
	w.wants(w.as(flow.RoleSupport).get("/sessions/"+id+"/replay"), http.StatusOK, "Nobody has opened this session")
}

// One payer speaks of two merchants' payments in one chat: neither sees a word
// of the other's.
func TestWhatWasSaidOfAnothersPaymentIsNotShown(t *testing.T) {
	w := open(t)
	eve := w.merchant("Eve Shoes")
	p := &payer{w: w, person: "7702", name: "Bola"}
	adas := p.opens(w.ada)
	p.transfers()
	eves := p.opens(eve)
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "a person for the shoes"})
	ada, other, operator := w.as(flow.RoleSupport), w.as(flow.RoleSupport, eve), w.as(flow.RoleOperator)
	chat := "/chats/" + string(p.chat) + "/replay"
	for _, c := range []struct {
		who         *visitor
		path        string
		status      int
		holds, lack string
	}{
		{ada, "/sessions/" + string(adas) + "/replay", 200, "transfer_how", string(eves)},
		{ada, "/sessions/" + string(eves) + "/replay", 404, "", "for the shoes"},
		{other, "/sessions/" + string(adas) + "/replay", 404, "", "transfer_how"},
		{other, "/sessions/" + string(eves) + "/replay", 200, "for the shoes", string(adas)},
		{ada, chat, 200, "transfer_how", "for the shoes"},
		{ada, chat, 200, "transfer_how", string(eves)},
		{other, chat, 200, "for the shoes", "transfer_how"},
		{other, chat, 200, "for the shoes", string(adas)},
		{operator, chat, 200, "for the shoes", "\x00"},
		{operator, chat, 200, "transfer_how", "\x00"},
		{ada, "/sessions/" + string(adas), 200, "Bola", "waiting"},
		{ada, "/sessions/" + string(adas), 200, "Bola", "asks for a person"},
		{other, "/sessions/" + string(eves), 200, "waiting", string(adas)},
		{ada, "/inbox", 200, "Nobody waits for an answer", "Bola"},
		{other, "/inbox", 200, "Bola", string(adas)},
		{operator, "/inbox", 200, "Bola", "\x00"},
		{ada, "/inbox/" + string(p.chat), 200, "somebody else's payment", "for the shoes"},
		{other, "/inbox/" + string(p.chat), 200, "for the shoes", "transfer_how"},
	} {
		got := c.who.get(c.path)
		w.wants(got, c.status, c.holds)
		if strings.Contains(got.body, c.lack) {
			t.Errorf("%s shows %q to whom it does not belong", c.path, c.lack)
		}
	}
	w.wants(ada.post("/inbox/"+string(p.chat)+"/claim", form("reason", "I want to read it")), http.StatusForbidden)
	stranger := w.as(flow.RoleOwner, w.merchant("Nobody's Friend"))
	for _, path := range []string{chat, "/inbox/" + string(p.chat), "/inbox/" + string(p.chat) + "/live", "/chats/chat_none/replay", "/sessions/wsp_sess_none/replay"} {
		w.wants(stranger.get(path), http.StatusNotFound)
	}
	for _, do := range []string{"claim", "reply", "release"} {
		w.wants(stranger.post("/inbox/"+string(p.chat)+"/"+do, form("reason", "none of mine", "text", "hello")), http.StatusNotFound)
	}
}

func TestAChatIsHandedOver(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7703", name: nasty}
	p.opens(w.ada)
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	support, owner := w.as(flow.RoleSupport), w.as(flow.RoleOwner)
	at := "/inbox/" + string(p.chat)
	w.wants(support.get("/inbox"), http.StatusOK, "&lt;script&gt;", "waiting", "asks for a person", "till desk")
	w.pass(31 * time.Minute)
	await.Until(t, "the queue says that nobody has come", func() bool { return strings.Contains(support.get("/inbox").body, "asks for a person: nobody has come") })
	w.wants(support.get("/inbox"), http.StatusOK, "too long")

	w.wants(support.get(at), http.StatusOK, "waits for a person", "&lt;script&gt;", "data-live=")
	_, err := w.accounts.AddPerson(t.Context(), w.ada.account, "o'neil@example.com", "a long password", flow.RoleSupport, "")
	must(t, err)
	in, err := w.accounts.Enter(t.Context(), "o'neil@example.com", "a long password", "192.0.2.1")
	must(t, err)
	w.wants(w.carrying(in.Text).get(at), http.StatusOK, html.EscapeString(`--as 'o'\''neil@example.com' --reason`)) // as a shell takes it
	w.wants(support.post(at+"/reply", form("text", "hello & welcome")), http.StatusConflict, "claim the chat first")
	w.wants(support.post(at+"/claim", form("reason", " ")), http.StatusBadRequest, "Say why")
	w.wants(support.post(at+"/claim", form("reason", "the payer asked")), http.StatusSeeOther)
	w.wants(support.get(at), http.StatusOK, "You have this chat")
	w.stops(w.ada, flow.MerchantStopped)
	w.wants(support.get(at), http.StatusOK, "This project is stopped or suspended") // its payer cannot pay, and asks why
	w.stops(w.ada, "")
	if got := support.get(at); strings.Contains(got.body, "stopped or suspended") {
		t.Error("whoever answers still reads that it is stopped")
	}
	w.wants(owner.get(at), http.StatusOK, "has this chat")
	w.wants(owner.post(at+"/claim", form("reason", "mine now")), http.StatusConflict, "has this chat")
	w.wants(owner.post(at+"/reply", form("text", "typed & kept")), http.StatusConflict, "has this chat")
	for _, nothing := range []string{"  ", "\u200b", " \u2060\n\u00ad"} { // the network takes no message of nothing, and holds back what follows it
		w.wants(support.post(at+"/reply", form("text", nothing)), http.StatusBadRequest, "A reply has 1 to")
	}
	w.wants(support.post(at+"/reply", form("text", "Good <b>day</b>")), http.StatusSeeOther)
	w.wants(support.get(at), http.StatusOK, "Good &lt;b&gt;day")
	// As the page counts: letters and not bytes, and a new line, which a form sends as two signs, as one.
	w.wants(support.post(at+"/reply", form("text", strings.Repeat("ọ\r\n", 1999)+"ọ.")), http.StatusSeeOther)
	w.wants(support.post(at+"/reply", form("text", strings.Repeat("o", 4001))), http.StatusBadRequest, "A reply has 1 to 4000 characters")
	w.wants(support.post(at+"/reply", form("text", "x", "csrf", "y")), http.StatusForbidden)
	w.wants(support.post(at+"/release", nil), http.StatusSeeOther)
	list, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Subject: string(p.chat), Limit: 20})
	must(t, err)
	did := map[string]int{}
	for _, a := range list {
		if a.Subject == string(p.chat) {
			did[a.Action+" "+a.Reason]++
		}
	}
	if did["chat.claim the payer asked"] != 1 || did["chat.reply "] < 1 || did["chat.release "] != 1 || did["chat.claim  "] != 0 {
		t.Errorf("the audit log holds %v", did)
	}
}

// Whoever is shut out has no chat any more: nobody else could give it back, and the
// bot was silent in it.
func TestTheChatsOfWhoIsShutOutAreTheBotsAgain(t *testing.T) {
	w := open(t)
	owner, operator := w.as(flow.RoleOwner), w.as(flow.RoleOperator)
	for i, one := range []struct {
		account string
		role    flow.Role
		shut    *visitor
		at      string
	}{{w.ada.account, flow.RoleSupport, owner, "/team/"}, {"", flow.RoleOperator, operator, "/ops/people/"}} {
		p := &payer{w: w, person: fmt.Sprint("771", i), name: "Bola"}
		p.opens(w.ada)
		p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
		email := fmt.Sprintf("obi%d@example.com", i)
		obi, err := w.accounts.AddPerson(t.Context(), one.account, email, "a long password", one.role, "")
		must(t, err)
		in, err := w.accounts.Enter(t.Context(), email, "a long password", "192.0.2.1")
		must(t, err)
		at := "/inbox/" + string(p.chat)
		w.wants(w.carrying(in.Text).post(at+"/claim", form("reason", "the payer asked")), http.StatusSeeOther)
		w.wants(owner.get(at), http.StatusOK, email+" has this chat")
		// Killed between the two halves of it: the bot has the chat, and they are still in
		// and take it again. Done once more it is whole.
		has := func() bool { return strings.Contains(owner.get(at).body, "The bot answers") }
		must(t, w.services[flow.Test].GiveBack(t.Context(), email))
		await.Until(t, "the bot has the chat for the first time", has)
		must(t, w.services[flow.Test].Claim(t.Context(), p.chat, email, 0))
		w.wants(one.shut.post(one.at+obi.ID+"/end", form("confirm", "yes", "reason", "they left us")), http.StatusSeeOther)
		await.Until(t, "the bot has the chat of "+email, has)
		w.wants(w.carrying(in.Text).get(at), http.StatusSeeOther)
		w.wants(owner.post(at+"/claim", form("reason", "the payer still waits")), http.StatusSeeOther)
		w.wants(owner.get(at), http.StatusOK, "You have this chat")
	}
}

func TestAChatIsLive(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7704", name: "Bola"}
	p.opens(w.ada)
	_, lines := w.as(flow.RoleSupport).stream("/inbox/" + string(p.chat) + "/live")
	w.shows(lines, "event: part")
	p.says(flow.Intent{Kind: flow.MeansThanks, Text: "thanks from afar"})
	w.shows(lines, "thanks from afar")
}

// Who may see what: a role that may not is told so, and nobody is sent to log in.
func TestWhoMayReplayAndAnswer(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7705", name: "Bola"}
	id := p.opens(w.ada)
	for path, roles := range map[string]string{
		"/sessions/" + string(id) + "/replay":  "owner developer support operator",
		"/chats/" + string(p.chat) + "/replay": "owner developer support operator",
		"/inbox":                               "owner support operator",
		"/inbox/" + string(p.chat):             "owner support operator",
	} {
		w.wants(w.visitor().get(path), http.StatusSeeOther)
		for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator} {
			want := http.StatusForbidden
			if strings.Contains(roles, string(role)) {
				want = http.StatusOK
			}
			w.wants(w.as(role).get(path), want)
		}
	}
	for _, do := range []string{"claim", "reply", "release"} {
		w.wants(w.as(flow.RoleDeveloper).post("/inbox/"+string(p.chat)+"/"+do, form("reason", "just so", "text", "x")), http.StatusForbidden)
	}
}
