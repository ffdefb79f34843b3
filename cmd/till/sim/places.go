package sim

import (
	"context"
	"maps"
	"sync"

	"till/flow"
	"till/flow/checkout"
)

// places are where talks stand, as one process remembers it. They are forgotten, or
// put back to what they were, as by a Redis that was restored from a copy.
type places struct {
	checkout.MemoryPlaces

	mu  sync.Mutex
	all map[flow.ChatID]flow.Chat
}

// Put remembers a chat.
func (p *places) Put(ctx context.Context, c flow.Chat) {
	p.MemoryPlaces.Put(ctx, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[c.ID].Seq < c.Seq {
		p.all[c.ID] = c
	}
}

// copied is what is remembered by now.
func (p *places) copied() map[flow.ChatID]flow.Chat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.all)
}

// restored has the places be what they were.
func (p *places) restored(ctx context.Context, was map[flow.ChatID]flow.Chat) {
	p.Forget()
	for _, c := range was {
		p.MemoryPlaces.Put(ctx, c)
	}
}
