package sim

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/store/lite"
	"till/rail"
)

// A tour leads a payer to one place of the conversation and has one thing happen
// there: what payers do by chance reaches most of it often and some of it never.
// Which tours a seed has goes by its number, so that seeds in a row have all of
// them equally often.
type tour struct{ place, event string }

// toursOf is how many tours a seed has.
const toursOf = 3

// The places that a payer is led to, and what may happen there.
var (
	tourPlaces = []string{"choosing", "bank", "opening", "transfer", "ussd", "card", "verifying", "part", "lapsed", "review", "paid", "closed"}
	tourEvents = []string{"pay", "part", "reverse", "cancel", "claim", "bank"}
	tourExtras = []tour{
		{"opening", "refuse"},
		{"opening", "refuse bank"},
		{"opening", "lapse"},
		{"verifying", "lapse"},
		{"ussd", "decline"},
		{"card", "decline"},
		{"desk bot", "own"},
		{"desk waiting", "own"},
		{"desk waiting", "again"},
		{"desk waiting", "claim"},
		{"desk claimed", "own"},
		{"desk claimed", "release"},
		{"desk device", "claim"},
		{"desk bot", "claim"},
		{"desk bot", "call"},
		{"quiet", "choose"},
		{"quiet", "bank"},
		{"quiet", "claim"},
		{"quiet", "part"},
		{"left transfer", "choose"},
		{"left transfer", "bank"},
		{"left ussd", "choose"},
		{"left ussd", "bank"},
		{"left card", "choose"},
		{"left card", "bank"},
	}
)

func tours() []tour {
	list := append([]tour{}, tourExtras...)
	for _, place := range tourPlaces {
		for _, event := range tourEvents {
			list = append(list, tour{place, event})
		}
	}
	return list
}

// The money of a tour: whole naira, as USSD wants it, and a part of it.
const (
	tourAmount = 600_000
	tourPart   = 200_000
)

// guide leads one payer, who does nothing else, on a tour: what is said is about
// this session.
type guide struct {
	w    *world
	t    tour
	p    *person
	s    *session
	at   time.Duration // of the next thing, from when the session is open
	paid int64         // of what was asked for
}

// tours begins the tours of a seed.
func (w *world) tours() {
	all := tours()
	for n := range toursOf {
		g := &guide{w: w, t: all[(int(w.seed%uint64(len(all)))*toursOf+n)%len(all)], p: w.stranger(fmt.Sprintf("t%d", n))} //nolint:gosec // less than the list is long
		w.after(w.between(time.Hour, lasts-30*time.Hour), "tour", g.begins)
	}
}

// stranger is one more payer.
func (w *world) stranger(name string) *person {
	n := len(w.phones.people)
	p := &person{name: name, lid: fmt.Sprintf("10000000%04d", n), phone: flow.Phone(fmt.Sprintf("23480300000%02d", n)), shown: map[string]int{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phones.people = append(w.phones.people, p)
	return p
}

// begins has a merchant ask for money as the tour needs it.
func (g *guide) begins() {
	w, minutes := g.w, 240
	if g.t.place == "quiet" {
		minutes = 2880
	}
	g.s = &session{n: w.nth, m: w.merchants[0], amount: tourAmount, ends: w.age() + time.Duration(minutes)*time.Minute, payer: g.p}
	g.s.ref = fmt.Sprintf("s%d", g.s.n)
	w.sessions = append(w.sessions, g.s)
	body := encoded(map[string]any{
		"amount": tourAmount, "customerEmail": "tour@example.com", "reference": g.s.ref, "expiresInMinutes": minutes, "mode": "chat",
		"underpayment": "hold", "overpayment": "accept", "latePayment": "review",
	})
	w.insist("open "+g.s.ref, request{method: http.MethodPost, path: sessionsPath, key: g.s.m.secret, body: body, once: g.s.m.once()}, func(out reply) {
		if out.status != http.StatusCreated {
			return
		}
		g.s.id, g.s.link = out.text("id"), out.text("checkoutUrl")
		w.name(g.s.id, g.s.ref)
		w.saw("a tour: %s, then %s", g.t.place, g.t.event)
		g.leads()
	})
}

// then has something done after what was planned before it.
func (g *guide) then(in time.Duration, name string, do func()) {
	g.at += in
	g.w.after(g.at, name, do)
}

// say has the payer write, some time after what was before.
func (g *guide) say(text string) { g.then(40*time.Second, "say", func() { g.w.say(g.p, text) }) }

// leads plans the whole tour.
func (g *guide) leads() {
	needs := map[string]bool{"pay": true, "part": true, "reverse": true}[g.t.event] || map[string]bool{"part": true, "review": true, "paid": true}[g.t.place]
	g.say(g.code())
	if needs || g.t.event == "lapse" || g.t == (tour{"quiet", "claim"}) {
		g.then(30*time.Second, "account", g.account)
	}
	switch {
	case g.t.event == "lapse":
	case g.t.place == "paid":
		g.money(tourAmount)
	case g.t.event == "reverse" || g.t.place == "part" || g.t.place == "review":
		g.money(tourPart)
	}
	g.goes()
	soon := 30 * time.Second
	switch {
	case g.t.event == "refuse bank": // before the bank refuses it
		soon = 0
	case g.t.place == "opening" || g.t.place == "verifying":
		soon = 700 * time.Millisecond
	}
	g.then(soon, "event", func() { g.w.saw("now: %s", g.t.event) })
	g.happens()
}

// code is what the link into the chat has a payer write.
func (g *guide) code() string {
	_, code, _ := strings.Cut(g.s.link, "text=Pay%20")
	return "Pay " + code
}

// account asks over REST for an account, which is paid whatever the chat is at. A
// tour that waits for its end has it end soon, and keeps the bank from answering.
func (g *guide) account() {
	w, body := g.w, ""
	g.s.mayCall = true
	if g.t.event == "lapse" {
		body = `{"expiresInMinutes":5}`
		if g.t.place == "opening" {
			w.sets("the bank's line is hang", 7*time.Minute, func() { w.bank.line = "hang" }, func() { w.bank.line = "" })
		}
	}
	w.insist("account of "+g.s.ref, request{method: http.MethodPost, path: sessionsPath + "/" + g.s.id + "/pay/bank-transfer", key: g.s.m.secret, once: g.s.m.once(), body: body}, func(out reply) {
		g.s.account = cmp.Or(out.text("accountNumber"), g.s.account)
	})
}

// money has somebody send money to the account.
func (g *guide) money(amount int64) {
	g.paid += amount
	g.then(30*time.Second, "transfer", func() { g.w.transfers(g.s, 0, amount, rail.Transfer{}) })
}

// goes leads the payer to the place.
func (g *guide) goes() {
	back := func() {
		if g.paid > 0 {
			g.say("6")
		}
	}
	switch g.t.place {
	case "choosing":
		back()
	case "bank":
		g.say("2")
	case "opening":
		switch g.t.event {
		case "lapse": // it asks for what the bank does not answer about, a moment before that ends
			g.then(5*time.Minute-700*time.Millisecond, "slow", func() {})
			g.then(0, "say", func() { g.w.say(g.p, "1") })
		case "refuse", "refuse bank":
			g.line("down", 0)
			g.then(time.Second, "say", func() { g.w.say(g.p, "3") })
		default:
			g.line("slow", 0)
			g.then(time.Second, "say", func() { g.w.say(g.p, "3") })
		}
	case "transfer", "ussd", "card":
		g.chooses(g.p, g.t.place)
	case "left transfer", "left ussd", "left card":
		g.left(strings.TrimPrefix(g.t.place, "left "))
	case "quiet":
		g.then(25*time.Hour, "wait", func() {})
	case "verifying":
		if g.t.event == "lapse" {
			g.say("1")
			g.line("slow", 5*time.Minute-43*time.Second)
		} else {
			g.say("3")
			mode := "slow"
			if g.t.event == "cancel" { // who cancels asks too, and waits for less
				mode = "hang"
			}
			g.line(mode, time.Minute)
		}
		g.then(time.Second, "say", func() { g.w.say(g.p, "4") })
	case "part", "paid":
	case "lapsed":
		g.say("1")
		g.then(31*time.Minute, "wait", func() {})
	case "review":
		g.takesBack()
	case "closed":
		g.then(30*time.Second, "cancel", func() { g.w.cancels(g.s) })
	default:
		g.toDesk()
	}
}

// chooses has somebody choose a method, by the digits of the menus.
func (g *guide) chooses(p *person, method string) {
	for _, digits := range map[string][]string{"transfer": {"1"}, "ussd": {"2", "11"}, "card": {"3"}}[method] {
		g.then(40*time.Second, "say", func() { g.w.say(p, digits) })
	}
}

// left has the payer shown instructions that somebody else, who has the link too,
// switches away from.
func (g *guide) left(method string) {
	other := g.w.stranger(g.p.name + "b")
	g.chooses(g.p, method)
	g.then(40*time.Second, "say", func() { g.w.say(other, g.code()) })
	g.chooses(other, method)
	g.then(40*time.Second, "say", func() { g.w.say(other, "6") })
}

// line has the bank's line be so for a few seconds.
func (g *guide) line(mode string, in time.Duration) {
	w := g.w
	lasts := 9 * time.Second
	if g.t.event == "lapse" {
		lasts = 2 * time.Second // what is asked when it lapses is answered first
	}
	g.then(in, "line", func() {
		w.sets("the bank's line is "+mode, lasts, func() { w.bank.line = mode }, func() { w.bank.line = "" })
	})
}

func (g *guide) takesBack() {
	g.then(30*time.Second, "take back", func() { g.w.takesBack(g.s) })
}

// happens has the event happen, at once.
func (g *guide) happens() {
	w := g.w
	now := func(do func()) { g.then(0, g.t.event, do) }
	switch g.t.event {
	case "pay":
		now(func() { w.transfers(g.s, 0, max(tourAmount-g.paid, tourPart), rail.Transfer{}) })
	case "part":
		now(func() { w.transfers(g.s, 0, tourPart/2, rail.Transfer{}) })
	case "reverse":
		now(func() { w.takesBack(g.s) })
	case "cancel":
		now(func() { w.cancels(g.s) })
	case "claim":
		if strings.HasPrefix(g.t.place, "desk") {
			now(func() { g.desk("claim") })
			return
		}
		now(func() { w.say(g.p, "4") })
	case "bank", "refuse bank":
		now(func() { w.say(g.p, "2") })
	case "choose":
		now(func() { w.say(g.p, "1") })
	case "decline":
		now(g.declines)
	case "own":
		now(g.types)
	case "call":
		now(func() { w.say(g.p, "9") })
	case "again":
		now(func() { w.say(g.p, "5") })
	case "release":
		now(func() { g.desk("release") })
	}
}

// declines has the payer's bank refuse what the payer was shown.
func (g *guide) declines() {
	w := g.w
	for _, a := range w.book.envs[0].actives(g.t.place) {
		if a.session != g.s.id {
			continue
		}
		w.plays("declined for "+g.s.ref, func() error {
			if g.t.place == "card" {
				return w.bank.player.CompleteCard(w.ctx, a.reference, "declined")
			}
			_, code, _ := w.reads(g.p)
			return w.bank.player.CompleteUSSD(w.ctx, eightDigits.FindString(code), "failed")
		})
	}
}

// types has somebody type on the phone of our number.
func (g *guide) types() { g.w.send(g.p, bot.Message{Text: "let me look", Own: true}) }

// toDesk has the chat be where a tour of the desk begins.
func (g *guide) toDesk() {
	switch g.t.place {
	case "desk waiting":
		g.say("9")
	case "desk claimed":
		g.say("9")
		g.then(30*time.Second, "claim", func() { g.desk("claim") })
	case "desk device":
		g.then(30*time.Second, "type", g.types)
	}
}

// desk has a supporter do something about the payer's chat.
func (g *guide) desk(what string) {
	w, id := g.w, ""
	err := w.book.envs[0].conn.Each(`SELECT id FROM chats WHERE person = ?`, []any{g.p.lid}, func(scan lite.Scanner) error { return scan(&id) })
	if err != nil || id == "" {
		return
	}
	i := w.inst
	w.goes(i, func() {
		do := func() error { return i.test.Claim(i.ctx, flow.ChatID(id), "ngozi", 0) }
		if what == "release" {
			do = func() error { return i.test.Release(i.ctx, flow.ChatID(id), "ngozi") }
		}
		if err := do(); err != nil && !i.dead.Load() {
			w.saw("the desk may not: %s", g.p.name)
		}
		i.test.Wake()
	})
}
