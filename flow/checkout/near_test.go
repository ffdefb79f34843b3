package checkout_test

import (
	"context"
	"fmt"
	"testing"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/redistest"
)

// What is decided is there at once, whatever Redis does, and in Redis before
// long; the newest stays.
func TestNearPlacesRememberAtOnceAndTellRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client
	ctx, far := t.Context(), newPlaces(client)
	near := checkout.NewNearPlaces(far)
	run, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- near.Run(run) }()
	for _, seq := range []int64{5, 9, 8} {
		near.Put(ctx, place(seq))
		if c, ok := near.Get(ctx, "chat_1"); !ok || c.Seq != max(seq, c.Seq) {
			t.Errorf("after %d: %+v", seq, c)
		}
	}
	const many = 200
	for i := range many {
		near.Put(ctx, flow.Chat{ID: flow.ChatID(fmt.Sprint("chat_", 100+i)), Seq: 1})
	}
	await.Until(t, "Redis knows all", func() bool {
		for i := range many {
			if _, ok := far.Get(ctx, flow.ChatID(fmt.Sprint("chat_", 100+i))); !ok {
				return false
			}
		}
		c, ok := far.Get(ctx, "chat_1")
		return ok && c.Seq == 9
	})
	if c, ok := checkout.NewNearPlaces(far).Get(ctx, "chat_1"); !ok || c.Seq != 9 {
		t.Errorf("who has it not near finds %+v", c)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	near.Put(ctx, flow.Chat{ID: "chat_late", Seq: 1})
	if _, ok := far.Get(ctx, "chat_late"); ok {
		t.Error("somebody still tells Redis, and nobody waits for them")
	}
	server.Kill()
	near.Put(ctx, place(10))
	if c, ok := near.Get(ctx, "chat_1"); !ok || c.Seq != 10 {
		t.Errorf("without Redis: %+v", c)
	}
}

// A Redis that has forgotten the script learns it again.
func TestPlacesTeachRedisItsScriptAgain(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client
	ctx, places := t.Context(), newPlaces(client)
	for seq := range int64(3) {
		must(t, client.ScriptFlush(ctx).Err())
		places.PutAll(ctx, []flow.Chat{place(seq + 1), {ID: "chat_2", Seq: seq + 1}})
		for _, id := range []flow.ChatID{"chat_1", "chat_2"} {
			if c, ok := places.Get(ctx, id); !ok || c.Seq != seq+1 {
				t.Errorf("%s: %+v, want %d", id, c, seq+1)
			}
		}
	}
}
