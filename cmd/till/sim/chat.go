package sim

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"till/bot"
	"till/rail"
)

var (
	accountAlone = regexp.MustCompile(`^\d{10}$`)
	dialAlone    = regexp.MustCompile(`^\*[\d*]+#$`)
)

// idle is what payers write beside what brings them on.
var idle = []string{
	"hello", "4", "i have paid", "where is my money", "5", "6", "0", "yes", "no", "8", "2", "9", "menu", "thanks", "stop", "start", "receipt", "abc def", "7",
	"CANCEL", "is this a scam?", "3", "1", "who is this", "5060 6666 6666 6666 666", "i have sent it", "4", "4", "6",
}

// chats has a payer open a session in the chat and talk.
func (w *world) chats(s *session) {
	_, code, found := strings.Cut(s.link, "text=Pay%20")
	if !found {
		w.breaks("sim", "%s has no link into the chat: %q", s.ref, s.link)
		return
	}
	p := pick(w, w.phones.people...)
	w.after(w.between(5*time.Second, 20*time.Minute), "opens", func() {
		s.mayCall = true
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

// does is what a payer does now.
func (w *world) does(p *person, s *session) {
	account, code, text := w.reads(p)
	dice := w.rng.IntN(100)
	switch {
	case dice < 8:
		w.say(p, pick(w, idle...))
	case dice < 10:
		w.send(p, bot.Message{Kind: pick(w, bot.KindPicture, bot.KindVoice, bot.KindReaction, bot.KindCall, bot.KindDocument)})
	case dice < 12:
		w.send(p, bot.Message{Text: "let me look", Own: true})
	case dice < 14:
		w.say(p, "9")
		w.after(w.between(time.Second, 20*time.Minute), "desk", w.helps)
	case account != "" && dice < 62:
		t := rail.Transfer{AccountNumber: account, Amount: kobo(s.amount), ValueTime: w.now()}
		switch w.rng.IntN(10) {
		case 0:
			t.Amount = kobo(max(s.amount/2, 1))
		case 1:
			t.Amount = kobo(s.amount + 5_000)
		case 2:
			t.PendingMs = 1000 * (20 + w.rng.IntN(400))
			t.ValueTime = w.now().Add(time.Duration(t.PendingMs) * time.Millisecond)
		}
		w.plays(fmt.Sprintf("%s transfers %d", p.name, t.Amount), func() error {
			got, err := w.bank.player.Transfer(w.ctx, t)
			if err == nil {
				s.money = append(s.money, got.RailTransactionID)
			}
			return err
		})
		if w.roll(40) {
			w.after(w.between(time.Second, 3*time.Minute), "claims", func() { w.say(p, pick(w, "4", "i have paid", "done")) })
		}
	case code != "" && dice < 62:
		digits := regexp.MustCompile(`\d{8}`).FindString(code)
		w.plays(p.name+" dials", func() error {
			return w.bank.player.CompleteUSSD(w.ctx, digits, pick(w, "success", "success", "failed"))
		})
	case strings.Contains(text, "/card/") && dice < 62:
		w.cards(p, text)
	case dice < 70:
		w.say(p, pick(w, idle...))
	default:
		w.say(p, pick(w, "1", "1", "1", "2", "3", "3", "6", "4"))
	}
}

// cards has a payer end the page that a message led to.
func (w *world) cards(p *person, text string) {
	for _, a := range w.book.envs[0].actives("card") {
		w.plays(p.name+" pays by card", func() error {
			return w.bank.player.CompleteCard(w.ctx, a.reference, pick(w, "approved", "approved", "declined"))
		})
		return
	}
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
	i.work.Go(func() {
		list, err := i.test.Desk(i.ctx)
		if err != nil || len(list) == 0 {
			return
		}
		id, who := list[0].ID, "ngozi"
		name := list[0].Name
		for _, do := range []func() error{
			func() error { return i.test.Claim(i.ctx, id, who, 0) },
			func() error { return i.test.Reply(i.ctx, id, who, "Good day, I have a look.") },
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
