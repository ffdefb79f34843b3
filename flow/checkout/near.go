package checkout

import (
	"context"
	"sync"
	"time"

	"till/flow"
)

// The bounds of what waits to be remembered far away.
const (
	maxFar      = 512 // chats; what finds no room is not remembered there, which costs a query
	farAtOnce   = 64
	farPatience = time.Second
)

// FarPlaces remembers elsewhere, and many chats at once for little more than one.
type FarPlaces interface {
	Places
	// PutAll remembers chats unless something newer is remembered.
	PutAll(ctx context.Context, chats []flow.Chat)
}

// NearPlaces remembers in this process what was decided here last, and tells a
// farther memory of it without anybody waiting: where a talk stands is looked up
// and remembered with each message, and the way there and back costs more than
// to decide. What is found near can be older than what another process decided,
// which whoever asks can tell by Seq.
type NearPlaces struct {
	near MemoryPlaces
	far  FarPlaces
	wake chan struct{} // something waits to be told

	mu      sync.Mutex // guards all below
	waiting map[flow.ChatID]flow.Chat
}

var _ Places = (*NearPlaces)(nil)

// NewNearPlaces remembers near what is remembered far away. Run tells it there.
func NewNearPlaces(far FarPlaces) *NearPlaces {
	return &NearPlaces{far: far, wake: make(chan struct{}, 1), waiting: map[flow.ChatID]flow.Chat{}}
}

// Run tells the farther memory what is remembered here, until ctx ends. What is not
// told then costs whoever asks for it a query.
func (p *NearPlaces) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
			p.tell(ctx)
		}
	}
}

// Get returns what is remembered of a chat.
func (p *NearPlaces) Get(ctx context.Context, id flow.ChatID) (flow.Chat, bool) {
	if c, ok := p.near.Get(ctx, id); ok {
		return c, true
	}
	return p.far.Get(ctx, id)
}

// Put remembers a chat unless something newer is remembered. It waits for
// nobody.
func (p *NearPlaces) Put(ctx context.Context, c flow.Chat) {
	p.near.Put(ctx, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	have, waits := p.waiting[c.ID]
	if waits && have.Seq >= c.Seq || !waits && len(p.waiting) >= maxFar {
		return
	}
	p.waiting[c.ID] = c
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// tell tells the farther memory what waits, and ends when nothing does.
func (p *NearPlaces) tell(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		list := make([]flow.Chat, 0, min(len(p.waiting), farAtOnce))
		for id, c := range p.waiting {
			if len(list) == farAtOnce {
				break
			}
			list = append(list, c)
			delete(p.waiting, id)
		}
		p.mu.Unlock()
		if len(list) == 0 {
			return
		}
		asking, cancel := context.WithTimeout(ctx, farPatience)
		p.far.PutAll(asking, list)
		cancel()
	}
}
