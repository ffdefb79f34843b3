package checkout

import (
	"context"
	"sync"

	"till/flow"
)

// maxRemembered bounds how many chats a MemoryPlaces remembers.
const maxRemembered = 10_000

// MemoryPlaces remembers in this process where live talks stand.
type MemoryPlaces struct {
	mu    sync.Mutex
	chats map[flow.ChatID]flow.Chat
}

var _ Places = (*MemoryPlaces)(nil)

// Get returns what is remembered of a chat.
func (p *MemoryPlaces) Get(_ context.Context, id flow.ChatID) (flow.Chat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.chats[id]
	return c, ok
}

// Put remembers a chat unless something newer is remembered.
func (p *MemoryPlaces) Put(_ context.Context, c flow.Chat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chats == nil || len(p.chats) >= maxRemembered {
		p.chats = map[flow.ChatID]flow.Chat{}
	}
	if have, ok := p.chats[c.ID]; !ok || have.Seq < c.Seq {
		p.chats[c.ID] = c
	}
}

// Forget loses everything, as a cache may at any time.
func (p *MemoryPlaces) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.chats)
}
