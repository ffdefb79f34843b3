package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"time"

	"till/bot/whatsapp/wanet"
)

// payer is a person with a phone, on the network that nobody kills. They wait as
// long as Till is killed again and again, and then for as long as what a dead
// process holds may take to be free.
type payer struct {
	w     *world
	over  context.Context // ends with the kills
	phone string
	after int64
	new   []wanet.Message // not looked at yet
	heard []string        // all that the bot wrote
}

func newPayer(over context.Context, w *world) (*payer, error) {
	info, err := w.network.AddPhone(context.Background(), "", "Bola")
	if err != nil {
		return nil, err
	}
	return &payer{w: w, over: over, phone: info.Phone}, nil
}

// says writes to the bot; the network keeps it for a bot that is away.
func (p *payer) says(text string) error {
	m, err := p.w.network.Send(context.Background(), p.phone, botNumber, text)
	if err != nil {
		return err
	}
	return p.w.journal.keep(entry{Kind: "said", ID: m.ID})
}

// hears waits for a message of the bot that matches, after those heard before.
func (p *payer) hears(pattern string) (string, error) {
	re := regexp.MustCompile(pattern)
	var end time.Time
	for end.IsZero() || time.Now().Before(end) {
		if end.IsZero() && p.over.Err() != nil {
			end = time.Now().Add(drained)
		}
		for len(p.new) > 0 {
			one := p.new[0]
			p.new = p.new[1:]
			if one.FromMe {
				continue
			}
			p.heard = append(p.heard, one.Text)
			if re.MatchString(one.Text) {
				return one.Text, nil
			}
		}
		list, next, err := p.w.network.Messages(context.Background(), p.phone, p.after, time.Second)
		if err != nil {
			return "", err
		}
		p.new, p.after = list, next
	}
	return "", fmt.Errorf("%s never heard %q; it heard %q", p.phone, pattern, p.heard)
}

// times is how many messages of the bot match, of all that came by now.
func (p *payer) times(pattern string) (n int, err error) {
	re := regexp.MustCompile(pattern)
	list, _, err := p.w.network.Messages(context.Background(), p.phone, 0, 0)
	for _, one := range list {
		if !one.FromMe && re.MatchString(one.Text) {
			n++
		}
	}
	return n, err
}

// pay is one person's work until it is told to stop: one checkout in the chat
// after the other.
func (s *shop) pay(ctx context.Context, name int, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		one := sale{reference: fmt.Sprintf("chat-%d-%d", name, n), amount: int64(100+random.IntN(50_000)) * 100, chat: true}
		if err := s.chat(ctx, &one); err != nil {
			s.w.wrong("chat", "%s: %v", one.reference, err)
		}
		if one.session != "" {
			s.note(one)
		}
	}
}

// chat is one checkout in a chat of its own, to the receipt.
func (s *shop) chat(ctx context.Context, one *sale) error {
	r, err := s.w.surely(one.reference, "/v1/whatsapp/checkout/sessions",
		object{"amount": one.amount, "customerEmail": "bola@example.com", "reference": one.reference, "mode": "chat"})
	if err != nil || r.status >= 300 {
		return fmt.Errorf("open a session: %d %s %w", r.status, r.body, orGone(err))
	}
	one.session = r.text("id")
	link, err := url.Parse(r.text("checkoutUrl"))
	if err != nil {
		return err
	}
	p, err := newPayer(ctx, s.w)
	if err != nil {
		return err
	}
	if err := p.says(link.Query().Get("text")); err != nil {
		return err
	}
	if _, err := p.hears(`1 Bank transfer`); err != nil {
		return err
	}
	if err := p.says("1"); err != nil {
		return err
	}
	account, err := p.hears(`^\d{10}$`)
	if err != nil {
		return err
	}
	if err := s.w.transfer(one, account, one.amount); err != nil {
		return err
	}
	if _, err := p.hears(`(?i)receipt(?s:.*)` + one.reference + `\b`); err != nil {
		return err
	}
	for _, only := range []string{`1 Bank transfer`, `^\d{10}$`, `(?i)^receipt`} {
		if n, err := p.times(only); err != nil || n != 1 {
			s.w.wrong("doubled", "%s heard %q %d times (%v)", one.reference, only, n, err)
		}
	}
	return nil
}
