package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"till/flow"
)

// drawer is a drawer full of pretend phones.
type drawer struct {
	mu     sync.Mutex
	phones []Phone
	chats  map[flow.Phone][]Message
	waits  chan struct{} // hears of each call that waits for a message; nil where nobody listens
}

func (d *drawer) Create(_ context.Context, phone flow.Phone, name string) (Phone, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if phone == "" {
		phone = flow.Phone(fmt.Sprintf("23480312345%02d", len(d.phones)))
	}
	p := Phone{Number: phone, PushName: name}
	d.phones = append(d.phones, p)
	return p, nil
}

func (d *drawer) List(context.Context) ([]Phone, error) { return d.phones, nil }

func (d *drawer) find(phone flow.Phone) error {
	for _, p := range d.phones {
		if p.Number == phone {
			return nil
		}
	}
	return flow.Refuse(flow.CodeNotFound, "There is no such phone.")
}

func (d *drawer) Send(_ context.Context, phone flow.Phone, words, quoted string) (Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.find(phone); err != nil {
		return Message{}, err
	}
	if d.chats == nil {
		d.chats = map[flow.Phone][]Message{}
	}
	m := Message{ID: fmt.Sprintf("M%d", len(d.chats[phone])), Text: words, FromMe: true, At: time.Unix(1_800_000_000, 0), Status: "sent", Quoted: quoted}
	d.chats[phone] = append(d.chats[phone], m)
	return m, nil
}

func (d *drawer) Messages(ctx context.Context, phone flow.Phone, after string, wait time.Duration) ([]Message, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.find(phone); err != nil {
		return nil, "", err
	}
	n := 0
	_, _ = fmt.Sscanf(after, "%d", &n)
	n = max(n, 0)
	have := d.chats[phone]
	if n >= len(have) && wait > 0 {
		if d.waits != nil {
			d.waits <- struct{}{}
		}
		select {
		case <-ctx.Done():
			return nil, after, ctx.Err()
		case <-time.After(wait):
		}
	}
	return have[min(n, len(have)):], fmt.Sprint(len(have)), nil
}

// Screen shows all there is; its version is how much that is. It waits for
// nothing.
func (d *drawer) Screen(_ context.Context, phone flow.Phone, _ int64, _ time.Duration) (Screen, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have := d.chats[phone]
	return Screen{Version: int64(len(have)) + 1, Messages: append([]Message{}, have...), Typing: len(have) == 1}, d.find(phone)
}

func (d *drawer) MarkRead(_ context.Context, phone flow.Phone) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(phone)
}

func (d *drawer) Delete(_ context.Context, phone flow.Phone) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(phone)
}
