package sim

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"till/bot"
	"till/flow/checkout"
	"till/rail"
)

var (
	accountAlone = regexp.MustCompile(`^\d{10}$`)
	dialAlone    = regexp.MustCompile(`^\*[\d*]+#$`)
	eightDigits  = regexp.MustCompile(`\d{8}`)
)

// idle is what payers write beside what brings them on.
var idle = []string{
	"hello", "4", "i have paid", "where is my money", "5", "6", "0", "yes", "no", "8", "2", "9", "menu", "thanks", "stop", "start", "receipt", "abc def", "7",
	"CANCEL", "is this a scam?", "3", "1", "who is this", typedCard, "i have sent it", "4", "4", "6",
}

// chats has a payer open a session in the chat and talk.
func (w *world) chats(s *session) {
	_, code, found := strings.Cut(s.link, "text=Pay%20")
	if !found {
		w.breaks("sim", "%s has no link into the chat: %q", s.ref, s.link)
		return
	}
	p := pick(w, w.phones.people[:people]...)
	w.after(w.between(5*time.Second, 20*time.Minute), "opens", func() {
		s.payer = p
		w.say(p, "Pay "+code)
		w.turn(p, s, 3+w.rng.IntN(9))
	})
}

// turn is one thing that a payer does, and then the next.
func (w *world) turn(p *person, s *session, left int) {
	if left == 0 {
		return
	}
	wait := w.between(3*time.Second, 4*time.Minute)
	if w.roll(8) {
		wait = w.between(20*time.Minute, 26*time.Hour)
	}
	w.after(wait, "turn of "+p.name, func() {
		w.does(p, s)
		w.turn(p, s, left-1)
	})
}

// does is what a payer does now: mostly what leads on from where the talk stands.
func (w *world) does(p *person, s *session) {
	account, code, card := w.reads(p)
	if account != "" {
		s.account = account
	}
	dice := w.rng.IntN(100)
	switch state := w.book.envs[0].standing[s.id]; {
	case dice < 9:
		w.say(p, pick(w, idle...))
	case dice < 12:
		w.send(p, bot.Message{Kind: pick(w, bot.KindPicture, bot.KindVoice, bot.KindReaction, bot.KindCall, bot.KindDocument)})
	case dice < 13:
		w.send(p, bot.Message{Text: "let me look", Own: true})
	case dice < 16:
		w.say(p, "9")
		w.after(w.between(time.Second, 20*time.Minute), "desk", w.helps)
	case dice < 46 && s.account != "":
		w.happens(p, s)
	case dice < 56 && (state == "choosing" || state == "part_paid" || state == "expired"):
		w.hurries(p, s)
	case state == "choosing" && s.account == "":
		w.say(p, pick(w, "1", "1", "1", "1", "2", "3"))
	case state == "choosing", state == "part_paid", state == "expired":
		w.say(p, pick(w, "1", "2", "2", "3", "3", "4", "6"))
	case state == "ussd_bank":
		w.say(p, pick(w, "1", "2", "3", "GTB", "zenith", "6", "0"))
	case code != "" && dice < 75:
		digits := eightDigits.FindString(code)
		w.plays(p.name+" dials", func() error { return w.bank.player.CompleteUSSD(w.ctx, digits, pick(w, "success", "failed")) })
	case card != "" && dice < 75:
		w.cards(p)
	default:
		w.say(p, pick(w, "4", "6", "6", "5", "i have paid", "where is my money", "0", "yes"))
	}
}

// hurries has something happen while the bank is still being asked for a method.
func (w *world) hurries(p *person, s *session) {
	w.sets("the bank's line is slow", 10*time.Second, func() { w.bank.line = "slow" }, func() { w.bank.line = "" })
	w.say(p, pick(w, "1", "3", "3"))
	w.after(w.between(500*time.Millisecond, 3*time.Second), "meanwhile", func() { w.happens(p, s) })
}

// happens is what the world does about a session, whatever its talk is at.
func (w *world) happens(p *person, s *session) {
	send := func(amount int64, pending int) {
		if s.account == "" {
			return
		}
		t := rail.Transfer{AccountNumber: s.account, Amount: kobo(max(amount, 1)), PendingMs: pending}
		w.transfer(fmt.Sprintf("%s transfers %d", p.name, t.Amount), s, t)
		if w.roll(30) {
			w.after(w.between(time.Second, 3*time.Minute), "claims", func() { w.say(p, pick(w, "4", "i have paid", "done")) })
		}
	}
	switch w.rng.IntN(16) {
	case 0, 1, 2:
		send(s.amount, 0)
	case 3, 4, 5, 6, 7:
		send(s.amount/3, 0)
	case 8:
		send(s.amount+5_000, 0)
	case 9:
		send(s.amount, 1000*(20+w.rng.IntN(400)))
	case 10, 11:
		w.takesBack(s)
	case 12:
		w.cancels(s)
	case 13:
		w.helps()
	case 14:
		w.pays(s, pick(w, "bank-transfer", "card"))
	default:
		w.say(p, pick(w, idle...))
	}
}

// cards has a payer end the page that a message led to, now and then after they had
// chosen another way in the chat.
func (w *world) cards(p *person) {
	pages := w.book.envs[0].actives("card")
	if len(pages) == 0 {
		return
	}
	ends := func() {
		w.plays(p.name+" pays by card", func() error {
			return w.bank.player.CompleteCard(w.ctx, pages[0].reference, pick(w, "approved", "approved", "declined"))
		})
	}
	if w.rng.IntN(6) > 0 {
		ends()
		return
	}
	w.say(p, "6")
	w.after(5*time.Second, "another way", func() { w.say(p, "1") })
	w.after(w.between(10*time.Second, 5*time.Minute), "the page was still open", ends)
}

// reads is what a payer could pay to, by the last messages on the screen.
func (w *world) reads(p *person) (account, code, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range p.screen[max(0, len(p.screen)-4):] {
		switch line := strings.TrimSpace(b.text); {
		case accountAlone.MatchString(line):
			account, code, text = line, "", ""
		case dialAlone.MatchString(line):
			account, code, text = "", line, ""
		case strings.Contains(line, "/card/"):
			account, code, text = "", "", line
		}
	}
	return account, code, text
}

// helps has somebody of support look after the chat that waits longest.
func (w *world) helps() {
	i := w.inst
	step := w.rng.IntN(4)
	w.goes(i, func() {
		list, err := i.test.Desk(i.ctx)
		if err != nil || len(list) == 0 {
			return
		}
		id, who := list[0].ID, "ngozi"
		name := list[0].Name
		for _, do := range []func() error{
			func() error { return i.test.Claim(i.ctx, id, who, 0) },
			func() error { return i.test.Reply(i.ctx, id, who, "Good day, I have a look.", checkout.Call{}) },
			func() error { return i.test.Release(i.ctx, id, who) },
		}[:min(step, 3)] {
			if err := do(); err != nil && !i.dead.Load() {
				w.saw("the desk may not: %s", name)
			}
		}
		w.saw("the desk looked after %s, %d steps", name, step)
		i.test.Wake()
	})
	if step < 3 {
		w.after(w.between(time.Minute, 3*time.Hour), "desk", w.helps)
	}
}
