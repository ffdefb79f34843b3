package flow_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

// story is two sessions, two chats and everything that can happen to them, with
// nothing but the rules: what a shell would keep is kept here in maps. Answers
// come late, twice or never; crashes show as answers that come again.
type story struct {
	t        *rapid.T
	now      time.Time
	sessions map[flow.SessionID]flow.Session
	attempts map[flow.SessionID][]flow.Attempt
	payments map[flow.SessionID][]flow.Payment
	chats    map[flow.ChatID]flow.Chat
	watch    map[flow.SessionID][]flow.ChatID
	starts   []flow.AttemptID // calls to the rail without an answer
	checks   []asked          // questions to the bank without an answer
	seen     map[string]flow.Kobo
	booked   flow.Kobo
	success  map[flow.SessionID]int
	receipts map[receipt]int
	coming   map[flow.SessionID]bool           // the bank knows of money on its way
	posted   map[flow.PaymentID][]flow.Posting // all that was posted for it
	backed   map[flow.PaymentID]flow.Kobo      // taken back
	n        int
}

// receipt is that of a payment in a chat.
type receipt struct {
	payment flow.PaymentID
	chat    flow.ChatID
}

type asked struct {
	session flow.SessionID
	chat    flow.ChatID
}

func newStory(t *rapid.T) *story {
	s := &story{
		t: t, now: noon, sessions: map[flow.SessionID]flow.Session{}, attempts: map[flow.SessionID][]flow.Attempt{}, payments: map[flow.SessionID][]flow.Payment{},
		chats: map[flow.ChatID]flow.Chat{"chat_1": {ID: "chat_1"}, "chat_2": {ID: "chat_2"}}, watch: map[flow.SessionID][]flow.ChatID{},
		seen: map[string]flow.Kobo{}, success: map[flow.SessionID]int{}, receipts: map[receipt]int{},
	}
	s.posted = map[flow.PaymentID][]flow.Posting{}
	s.coming, s.backed = map[flow.SessionID]bool{}, map[flow.PaymentID]flow.Kobo{}
	for i, code := range []string{"7K3M9QTX", "11112222"} {
		session := open()
		session.ID, session.EntryCode = flow.SessionID(fmt.Sprint("wsp_sess_", i+1)), code
		session.Policy = anyPolicy(t)
		session.ExpiresAt = noon.Add(rapid.SampledFrom([]time.Duration{20 * time.Minute, 24 * time.Hour, 72 * time.Hour}).Draw(t, "lasts"))
		s.sessions[session.ID] = session
	}
	return s
}

func (s *story) checkout(id flow.SessionID) flow.Checkout {
	session, attempts := s.sessions[id], slices.Clone(s.attempts[id])
	return flow.Look(session, attempts, slices.Clone(s.payments[id]), flow.Offers(session, attempts, flow.Methods(), s.now))
}

// turn takes one turn of a chat and does what it asks for.
func (s *story) turn(id flow.ChatID, turn flow.Turn) {
	turn.Chat, turn.Now, turn.Banks = s.chats[id], s.now, banks
	turn.Checkouts = map[flow.SessionID]flow.Checkout{}
	for _, session := range turn.Touches() {
		turn.Checkouts[session] = s.checkout(session)
	}
	before := turn.Chat
	d := flow.Decide(turn)
	d.Chat.Seq = before.Seq + 1
	s.chats[id] = d.Chat
	s.judge(before, turn, d)
	for _, e := range d.Effects {
		s.effect(id, e)
	}
}

// judge holds one decision against what a payer may rely on.
func (s *story) judge(before flow.Chat, turn flow.Turn, d flow.Decision) {
	person := d.Chat.Desk.State == flow.DeskClaimed || d.Chat.Desk.State == flow.DeskDevice
	talk, known := before.Talk(turn.About)
	is := func(kind flow.NewsKind) bool { return turn.News != nil && turn.News.Kind == kind }
	says := func(key string) bool {
		return slices.ContainsFunc(d.Says, func(s flow.Say) bool { return s.Key == key })
	}
	for _, say := range d.Says {
		money := flow.MoneyNews(say.Key)
		// What another person did, or asked for about the payment in focus, is said.
		act := is(flow.NewsCancelled) && say.Key == "cancelled" || is(flow.NewsAgain) && turn.About == d.Chat.Focus
		if person && !money && !act && !slices.Contains([]string{"agent", "secret_typed", "stopped", "resumed"}, say.Key) {
			s.t.Fatalf("the bot says %s over a person", say.Key)
		}
		news := turn.News != nil && turn.About != "" && turn.News.Kind != flow.NewsClaimed && turn.News.Kind != flow.NewsReply && turn.News.Kind != flow.NewsReleased
		if news && known && talk.State == flow.Closed && !money && say.Key != "human" && !says("part_waits") {
			s.t.Fatalf("%s is said by itself after the talk was closed", say.Key)
		}
		if before.Stopped && (is(flow.NewsTimer) && slices.Contains([]string{"nudge", "reminder"}, say.Key) || is(flow.NewsLapsed) && talk.Held == nil && say.Key == "lapsed") {
			s.t.Fatalf("%s is said after STOP", say.Key)
		}
		if say.Key == "receipt" && turn.News != nil && turn.News.Payment != nil {
			s.receipts[receipt{turn.News.Payment.ID, d.Chat.ID}]++ // two people who paid a part each get one each
		}
	}
	if len(d.Says) > 8 { // timers of two talks and the end of a hand-off can fall together
		s.t.Fatalf("%d messages at once", len(d.Says))
	}
	// A turn speaks of one payment: what else is due is due still, and less of it each time.
	if due, ok := d.Chat.Due(); ok && is(flow.NewsTimer) && !due.After(s.now) && (len(d.Says) == 0 || dueOf(d.Chat, s.now) >= dueOf(before, s.now)) {
		s.t.Fatalf("a timer fired and is due still (%v): %+v", due, d.Chat)
	}
	if d.Why == "" {
		s.t.Fatalf("nobody knows why: %+v", turn)
	}
}

// dueOf counts the timers of a chat that are due.
func dueOf(c flow.Chat, now time.Time) (n int) {
	all := []int64{c.Desk.Due}
	for _, t := range c.Talks {
		all = append(all, t.Timers.Nudge, t.Timers.Remind, t.Timers.Poll, t.Timers.Close)
	}
	for _, at := range all {
		if at != 0 && at <= now.UnixMilli() {
			n++
		}
	}
	return n
}

func (s *story) effect(id flow.ChatID, e flow.Effect) {
	switch e.Kind {
	case flow.DoWatch:
		if !slices.Contains(s.watch[e.Session], id) {
			s.watch[e.Session] = append(s.watch[e.Session], id)
		}
	case flow.DoOpen:
		s.n++
		name := flow.AttemptID(fmt.Sprint("a", s.n))
		a, change, err := flow.Begin(s.sessions[e.Session], s.attempts[e.Session],
			flow.Ask{Method: e.Method, ID: name, Reference: "wsp_ref_" + string(name), Chat: id}, flow.Methods(), s.now)
		switch {
		case err != nil:
			s.turn(id, flow.Turn{News: &flow.News{Kind: flow.NewsRefused}, About: e.Session})
		default:
			s.save(e.Session, change)
			if a.Instructions != nil {
				s.turn(id, flow.Turn{News: &flow.News{Kind: flow.NewsOpened, Attempt: a.ID}, About: e.Session})
				return
			}
			s.starts = append(s.starts, a.ID)
		}
	case flow.DoSupersede:
		if a, ok := s.attempt(e.Attempt); ok {
			change, err := flow.Supersede(a)
			s.must(err)
			s.save(a.Session, change)
		}
	case flow.DoCheck:
		s.checks = append(s.checks, asked{e.Session, id})
	case flow.DoCancel:
		if s.sessions[e.Session].Status == flow.SessionPending {
			change, err := flow.Cancel(s.sessions[e.Session], s.attempts[e.Session], s.payments[e.Session], s.now)
			s.must(err)
			s.save(e.Session, change)
		}
	}
}

func (s *story) must(err error) {
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) attempt(id flow.AttemptID) (flow.Attempt, bool) {
	for _, list := range s.attempts {
		if i := slices.IndexFunc(list, func(a flow.Attempt) bool { return a.ID == id }); i >= 0 {
			return list[i], true
		}
	}
	return flow.Attempt{}, false
}

// save keeps a change as the shell does, then tells the chats.
func (s *story) save(id flow.SessionID, c flow.Change) {
	if c.Session != nil {
		s.sessions[id] = *c.Session
	}
	if c.Payment != nil {
		s.payments[id] = append(s.payments[id], *c.Payment)
		s.post(c.Payment.ID, c.Postings)
	}
	if c.TakenBack != nil {
		s.post(c.TakenBack.Payment, c.TakenBack.Postings)
	}
	for _, e := range c.Entries {
		s.post(e.Payment, e.Postings)
	}
	for _, p := range c.Payments {
		s.payments[id][slices.IndexFunc(s.payments[id], func(x flow.Payment) bool { return x.ID == p.ID })] = p
	}
	for _, r := range c.Returns {
		s.sendsBack(id, r)
	}
	for _, a := range c.Attempts {
		if i := slices.IndexFunc(s.attempts[id], func(x flow.Attempt) bool { return x.ID == a.ID }); i >= 0 {
			s.attempts[id][i] = a
			continue
		}
		s.attempts[id] = append(s.attempts[id], a)
	}
	for _, f := range c.Facts {
		if f.Kind == flow.ChargeSuccess {
			s.success[id]++
		}
	}
	for _, n := range c.News {
		for _, chat := range slices.Clone(s.watch[id]) {
			s.turn(chat, flow.Turn{News: &n, About: id})
		}
	}
}

func (s *story) post(id flow.PaymentID, lines []flow.Posting) {
	s.posted[id] = append(s.posted[id], lines...)
	for _, p := range lines {
		s.booked += p.Amount
	}
}

// hears is a payer saying anything at all.
func (s *story) hears(t *rapid.T) {
	in := rapid.SampledFrom(intents()).Draw(t, "means")
	turn := flow.Turn{Heard: &in, Fades: rapid.Bool().Draw(t, "fades")}
	if in.Kind == flow.MeansCode {
		turn.ByCode = rapid.SampledFrom([]flow.SessionID{"wsp_sess_1", "wsp_sess_2", ""}).Draw(t, "code of")
	}
	turn.Quoted = rapid.SampledFrom([]flow.SessionID{"", "", "", "wsp_sess_1", "wsp_sess_2"}).Draw(t, "quotes")
	s.turn(rapid.SampledFrom([]flow.ChatID{"chat_1", "chat_2"}).Draw(t, "chat"), turn)
}

// answers is the rail answering a call: with instructions, with a refusal, and
// perhaps once more later.
func (s *story) answers(t *rapid.T) {
	if len(s.starts) == 0 {
		return // nothing was asked
	}
	i := rapid.IntRange(0, len(s.starts)-1).Draw(t, "which call")
	a, _ := s.attempt(s.starts[i])
	if rapid.IntRange(0, 3).Draw(t, "again later") > 0 {
		s.starts = slices.Delete(s.starts, i, i+1)
	}
	if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
		change, err := flow.Refused(a, "no")
		s.must(err)
		s.save(a.Session, change)
		return
	}
	made := trying(string(a.ID), a.Method)
	made.Instructions.ExpiresAt = a.ExpiresAt
	s.save(a.Session, flow.Started(s.sessions[a.Session], a, *made.Instructions))
}

// agent is somebody of support doing something in a chat.
func (s *story) agent(t *rapid.T) {
	id := rapid.SampledFrom([]flow.ChatID{"chat_1", "chat_2"}).Draw(t, "chat")
	n := flow.News{
		Kind: rapid.SampledFrom([]flow.NewsKind{flow.NewsClaimed, flow.NewsReply, flow.NewsReleased}).Draw(t, "does"),
		By:   rapid.SampledFrom([]string{"ngozi", "bala"}).Draw(t, "who"), Reason: "Good day.",
	}
	if s.chats[id].Desk.May(n.Kind, n.By) != nil {
		return // may not
	}
	s.turn(id, flow.Turn{News: &n, About: s.chats[id].Focus})
}

// passes lets time pass, and everything happen that is due by itself.
func (s *story) passes(wait time.Duration) {
	s.now = s.now.Add(wait)
	for _, id := range []flow.SessionID{"wsp_sess_1", "wsp_sess_2"} {
		for _, a := range slices.Clone(s.attempts[id]) {
			change, err := flow.Lapse(a, s.attempts[id], s.now)
			s.must(err)
			if s.now.Before(s.sessions[id].ExpiresAt) {
				s.save(id, change)
			}
		}
		change, err := flow.Expire(s.sessions[id], s.attempts[id], s.payments[id], s.now)
		s.must(err)
		s.save(id, change)
	}
	s.overdue()
	for _, id := range []flow.ChatID{"chat_1", "chat_2"} {
		for due, ok := s.chats[id].Due(); ok && !due.After(s.now); due, ok = s.chats[id].Due() { // each turn is judged to leave fewer
			s.turn(id, flow.Turn{News: &flow.News{Kind: flow.NewsTimer}})
		}
	}
}

// sound holds everything that is kept against what must always be so.
func (s *story) sound(t *rapid.T) {
	var came flow.Kobo
	for _, amount := range s.seen {
		came += amount
	}
	var kept, gone flow.Kobo
	for _, amount := range s.backed {
		gone += amount
	}
	var clearing flow.Kobo
	for _, lines := range s.posted {
		for _, line := range lines {
			if line.Account == flow.RailClearing {
				clearing += line.Amount
			}
		}
	}
	if clearing != came-gone {
		t.Fatalf("%d kobo came and %d were taken back; the ledger has %d", came, gone, clearing)
	}
	for id, session := range s.sessions {
		live := map[flow.Method]int{}
		for _, a := range s.attempts[id] {
			if a.Status == flow.AttemptActive {
				live[a.Method]++
			}
		}
		for m, n := range live {
			if n > 1 {
				t.Fatalf("%s has %d live attempts by %s", id, n, m)
			}
		}
		s.switched(t, id)
		if session.Status == flow.SessionProcessing && !s.now.Before(session.ExpiresAt.Add(flow.WatchAfter)) {
			t.Fatalf("%s waits for ever", id)
		}
		var applied flow.Kobo
		for _, p := range s.payments[id] {
			kept += p.Amount
			if p.Match == flow.Partial && p.Resolution == flow.Unresolved {
				applied += p.Unapplied
			}
			if p.Unapplied > 0 && p.Resolution != flow.Unresolved || p.Unapplied < 0 {
				t.Fatalf("%s was decided about and %d kobo of it wait", p.ID, p.Unapplied)
			}
			for chat := range s.chats {
				if n := s.receipts[receipt{p.ID, chat}]; n > 1 {
					t.Fatalf("%d receipts for one payment", n)
				}
			}
		}
		paid := session.Status == flow.SessionPaid
		if s.success[id] > 1 || paid != (s.success[id] == 1) || paid && (session.AmountPaid == 0 || session.AmountPaid > session.Amount) || !paid && session.AmountPaid != applied {
			t.Fatalf("%s is %s with %d of %d, holds %d, told %d times", id, session.Status, session.AmountPaid, session.Amount, applied, s.success[id])
		}
	}
	if came != kept || s.booked != 0 {
		t.Fatalf("%d kobo came, %d are kept, the ledger adds up to %d", came, kept, s.booked)
	}
	for id, chat := range s.chats {
		for _, talk := range chat.Talks {
			waits := talk.State == flow.Verifying && !slices.ContainsFunc(s.checks, func(q asked) bool { return q.session == talk.Session })
			if waits {
				t.Fatalf("%s waits for a bank that nobody asked about %s", id, talk.Session)
			}
			if talk.State == flow.Opening && !s.opening(talk) {
				t.Fatalf("%s waits for instructions of %s that nobody asked for: %+v", id, talk.Session, talk)
			}
		}
	}
}

// opening says whether somebody still makes the instructions a talk waits for.
func (s *story) opening(talk flow.Talk) bool {
	return slices.ContainsFunc(s.starts, func(id flow.AttemptID) bool {
		a, _ := s.attempt(id)
		return a.Session == talk.Session && a.Method == talk.Method
	})
}

// stretches are how many times thirty steps or so a story has: with fewer, few
// payers come as far as switching and paying twice. For the same reason an action
// that cannot be is no action and not a skipped one: a story with many of those
// is cut short.
const stretches = 6

// However what payers write, what banks answer, money, timers, agents and
// crashes fall together: nothing is lost, doubled, or left waiting.
func TestAnyStoryEndsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t)
		s.turn("chat_1", flow.Turn{Heard: &flow.Intent{Kind: flow.MeansCode}, ByCode: "wsp_sess_1"})
		actions := map[string]func(*rapid.T){
			"":        s.sound,
			"hears":   s.hears,
			"chats":   func(t *rapid.T) { s.hears(t); s.hears(t) },
			"answers": s.answers,
			"pays":    s.pays,
			"bank":    s.bank,
			"agent":   s.agent,
			"mutes": func(t *rapid.T) {
				kind := rapid.SampledFrom([]flow.NewsKind{flow.NewsMuted, flow.NewsUnmuted}).Draw(t, "kind")
				s.turn(rapid.SampledFrom([]flow.ChatID{"chat_1", "chat_2"}).Draw(t, "chat"), flow.Turn{News: &flow.News{Kind: kind}})
			},
			"moves":    s.moves,
			"returns":  s.returns,
			"reverses": s.reverses,
			"resolves": s.resolves,
			"passes": func(t *rapid.T) {
				s.passes(rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, 3 * time.Minute, 15 * time.Minute, 2 * time.Hour, 25 * time.Hour}).Draw(t, "wait"))
			},
		}
		for range stretches {
			t.Repeat(actions)
		}
		s.t = t
	})
}
