package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
)

// person is a payer with a phone.
type person struct {
	name   string
	lid    string
	phone  flow.Phone
	screen []bubble
	shown  map[string]int // message ids on the screen, and where
	wrote  int
}

// bubble is a message as the payer reads it.
type bubble struct{ id, text string }

// phones are the payers, at the bot's own door: the WhatsApp protocol itself is
// not simulated. Guarded by w.mu but for what the scheduler alone touches.
type phones struct {
	w       *world
	people  []*person
	offline bool // our number is not connected
	gone    bool // it is not there for new sessions either
	// offlineSince is when the number was last not connected.
	offlineSince time.Duration
}

var errOffline = errors.New("the number is not connected")

// number is the number that new links carry.
func (p *phones) number() string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.gone {
		return ""
	}
	return number
}

// send takes a message of the bot to its payer's phone. A repeat with the same id
// is shown once, as WhatsApp does.
func (p *phones) send(_ context.Context, i *instance, o checkout.Outgoing) error {
	w := p.w
	if i.dead.Load() {
		return errOffline
	}
	w.mu.Lock()
	offline := p.offline
	w.mu.Unlock()
	if offline {
		return errOffline
	}
	if err := w.caught(i, "send.before"); err != nil {
		return err
	}
	w.takes("send", o.Person, fmt.Sprint(len(o.Text)))
	if i.dead.Load() {
		return errOffline
	}
	w.mu.Lock()
	var to *person
	for _, one := range p.people {
		if one.lid == o.Person {
			to = one
		}
	}
	again, at := false, 0
	if to != nil {
		if at, again = to.shown[o.ID]; !again {
			at = len(to.screen)
			to.shown[o.ID] = at
			to.screen = append(to.screen, bubble{o.ID, o.Text})
		}
	}
	w.mu.Unlock()
	switch {
	case to == nil || o.Number != number:
		w.breaks("I10", "a message to %s from %s, whom nobody knows", o.Person, o.Number)
		return errOffline
	case again && to.screen[at].text != o.Text:
		w.breaks("I12", "message %s to %s was %q and is now %q", o.ID, to.name, to.screen[at].text, o.Text)
	}
	w.saw("say %s bubble %d%s: %s", to.name, at, map[bool]string{true: " again"}[again], gist(o.Text))
	if state := w.draw(3, "tick", to.name, fmt.Sprint(at)); state > 0 && !again {
		w.soon(time.Duration(state)*700*time.Millisecond, fmt.Sprintf("tick %s %d", to.name, at), func() {
			w.inst.work.Go(func() {
				_ = w.inst.bot.Tick(w.inst.ctx, checkout.Tick{Number: number, Message: o.ID, State: []string{"", "delivered", "read"}[state]}) // one that gets lost is not told again
			})
		})
	}
	return w.caught(i, "send.after")
}

// gist is the beginning of a text, without what is drawn.
func gist(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "://")
	text = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 48 {
		text = string(r[:48])
	}
	return text
}

// maxRepeats is how often WhatsApp hands over a message that is not taken.
const maxRepeats = 60

// say has a payer send a message. It is handed over until the bot has taken it,
// and sometimes once more than that.
func (w *world) say(p *person, text string) { w.send(p, bot.Message{Text: text}) }

// send has a payer send anything.
func (w *world) send(p *person, m bot.Message) {
	p.wrote++
	m.Number, m.Person, m.Phone, m.Name, m.ID = number, p.lid, p.phone, p.name, fmt.Sprintf("%s-%d", p.name, p.wrote)
	w.hand(p, m, 0)
	if w.roll(w.swarm.echo) {
		w.after(w.between(0, 90*time.Second), "echo "+m.ID, func() { w.hand(p, m, 0) })
	}
}

// hand hands a message over.
func (w *world) hand(p *person, m bot.Message, tries int) {
	i := w.inst
	later := func() {
		if tries++; tries > maxRepeats {
			w.breaks("I12", "message %s is not taken in", m.ID)
			return
		}
		w.after(5*time.Second, "repeat "+m.ID, func() { w.hand(p, m, tries) })
	}
	if w.phones.offline { // it waits at WhatsApp
		w.after(time.Minute, "wait "+m.ID, func() { w.hand(p, m, tries) })
		return
	}
	w.wishes(p, m)
	w.goes(i, func() {
		err := i.bot.Receive(i.ctx, m)
		if i.dead.Load() {
			err = errOffline
		}
		w.soon(0, "heard "+m.ID, func() {
			w.saw("%s wrote %q%s", p.name, gist(m.Text), failed(err))
			if err != nil {
				later()
				return
			}
			w.heardOf(m)
		})
	})
}

func failed(err error) string {
	if err == nil {
		return ""
	}
	return ": not taken"
}
