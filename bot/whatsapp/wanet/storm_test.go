package wanet_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"

	"till/bot/whatsapp/wanet"
)

// Several phones talk at once with an echoing client in bad weather. Every message
// is answered, and every phone sees each answer once.
//
// Damage and broken lines are not mixed: the stock client acknowledges a message
// that it can not read, and asks for it again, in two stanzas; a line that breaks
// between them loses the message for good.
func TestStorm(t *testing.T) {
	for name, weather := range map[string]wanet.Faults{
		"damage":       {Duplicate: true, CorruptPercent: 15, DelayPercent: 15, DelayMs: 5, AckDelayMs: 1},
		"broken lines": {Duplicate: true, DropPercent: 8, DelayPercent: 15, DelayMs: 5},
	} {
		t.Run(name, func(t *testing.T) {
			n := open(t, t.TempDir()+"/network")
			c := bot(t, n)
			must(t, n.SetFaults(weather))
			done := make(chan struct{})
			var echoes sync.WaitGroup
			answering := stockMaySend || weather.DropPercent == 0
			var mu sync.Mutex
			heard := map[string]int{}
			echoes.Go(func() {
				answerAll(t, c, done, answering, func(text string) { mu.Lock(); defer mu.Unlock(); heard[text]++ })
			})
			var phones sync.WaitGroup
			for i := range 6 {
				p := phone(t, n, payer(i))
				phones.Go(func() { chatter(t, p, 12, answering) })
			}
			phones.Wait()
			must(t, n.SetFaults(wanet.Faults{}))
			settle(t, n)
			eventually(t, "all is heard", func() bool { mu.Lock(); defer mu.Unlock(); return len(heard) == 6*12 })
			close(done)
			echoes.Wait()
			t.Logf("%+v", n.Stats())
		})
	}
}

// answerAll echoes until done, under an id that follows from the message, as a bot
// must that may hear one twice.
func answerAll(t *testing.T, c *client, done chan struct{}, reply bool, heard func(text string)) {
	t.Helper()
	for {
		var m *events.Message
		select {
		case m = <-c.messages:
		case <-done:
			return
		}
		heard(textOf(m))
		for tries := 0; reply && tries < 1000; tries++ {
			text := "re " + textOf(m)
			_, err := c.SendMessage(t.Context(), m.Info.Chat, &waE2E.Message{Conversation: &text}, whatsmeow.SendRequestExtra{ID: "3EB0" + m.Info.ID[2:]})
			if err == nil || t.Context().Err() != nil {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}

func chatter(t *testing.T, p *wanet.Phone, count int, answered bool) {
	t.Helper()
	want := map[string]int{}
	for i := range count {
		m, err := p.Send(t.Context(), botNumber, fmt.Sprint(p.Account().Phone(), " m", i))
		if err != nil {
			t.Error(err)
			return
		}
		want["re "+m.Text] = 1
	}
	if !answered {
		return
	}
	got := map[string]int{}
	limit := time.Now().Add(20 * time.Second)
	for after := int64(0); len(got) < count && time.Now().Before(limit); {
		items, next, err := p.Messages(t.Context(), after, time.Second)
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range items {
			if !m.FromMe {
				got[m.Text]++
			}
		}
		after = next
	}
	for text := range want {
		if got[text] != 1 {
			t.Errorf("%s: %q came %d times", p.Account().Phone(), text, got[text])
		}
	}
}
