package checkout_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"till/flow"
	"till/flow/checkout"
	"till/flow/redistest"
)

const chatKey = "t:chat:chat_1"

func place(seq int64) flow.Chat {
	return flow.Chat{ID: "chat_1", Number: ourNumber, Person: "ada", Seq: seq, Talks: []flow.Talk{{Session: "s", State: flow.Choosing}}}
}

func newPlaces(client redis.UniversalClient) *checkout.RedisPlaces {
	return checkout.NewRedisPlaces(client, "t:", []byte("a key of these tests"), slog.New(slog.DiscardHandler))
}

func TestAPlaceIsKeptUnlessANewerOneIs(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client
	ctx, places := t.Context(), newPlaces(client)
	if _, ok := places.Get(ctx, "chat_1"); ok {
		t.Error("an empty memory remembers")
	}
	for _, seq := range []int64{5, 3, 9, 8, 9} {
		places.Put(ctx, place(seq))
	}
	got, ok := places.Get(ctx, "chat_1")
	if !ok || got.Seq != 9 || len(got.Talks) != 1 {
		t.Errorf("it remembers %+v, %v", got, ok)
	}
	if left := client.PTTL(ctx, chatKey).Val(); left <= 23*time.Hour || left > 24*time.Hour {
		t.Errorf("it is remembered for %v", left)
	}
	huge := place(10)
	huge.Name = strings.Repeat("x", 20<<10)
	places.Put(ctx, huge)
	if got, _ := places.Get(ctx, "chat_1"); got.Seq != 9 {
		t.Error("a place of any size is kept")
	}
}

func TestWhatSomebodyElseLeftInRedisIsForgottenAndReplaced(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client
	ctx, places := t.Context(), newPlaces(client)
	for name, spoil := range map[string]func() error{
		"unsigned": func() error { return client.HSet(ctx, chatKey, "seq", "1", "chat", `{"id":"chat_1","seq":1}`).Err() },
		"far ahead": func() error {
			return client.HSet(ctx, chatKey, "seq", "9007199254740992", "by", "me", "chat", "{}").Err()
		},
		"another type":     func() error { return client.Set(ctx, chatKey, "text", 0).Err() },
		"a list":           func() error { return client.RPush(ctx, chatKey, "a", "b").Err() },
		"no number":        func() error { return client.HSet(ctx, chatKey, "seq", "many", "chat", "{}").Err() },
		"no JSON":          func() error { return client.HSet(ctx, chatKey, "seq", "1", "chat", "{").Err() },
		"too much":         func() error { return client.HSet(ctx, chatKey, "seq", "1", "chat", strings.Repeat(" ", 20<<10)).Err() },
		"only half":        func() error { return client.HSet(ctx, chatKey, "other", "x").Err() },
		"nothing any more": func() error { return client.FlushAll(ctx).Err() },
	} {
		must(t, client.Del(ctx, chatKey).Err())
		must(t, spoil())
		if got, ok := places.Get(ctx, "chat_1"); ok && got.ID != "" {
			t.Errorf("%s: it remembers %+v", name, got)
		}
		places.Put(ctx, place(7))
		if got, ok := places.Get(ctx, "chat_1"); !ok || got.Seq != 7 {
			t.Errorf("%s: afterwards it remembers %+v, %v", name, got, ok)
		}
	}
}

func TestAFullRedisForgetsAndFailsNobody(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client
	ctx, places := t.Context(), newPlaces(client)
	places.Put(ctx, place(1))
	must(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	places.Put(ctx, place(2)) // refused: maxmemory-policy is noeviction
	if got, _ := places.Get(ctx, "chat_1"); got.Seq == 2 {
		t.Error("a full Redis took it; the test proves nothing")
	}
	must(t, client.ConfigSet(ctx, "maxmemory", "0").Err())
	places.Put(ctx, place(3))
	if got, ok := places.Get(ctx, "chat_1"); !ok || got.Seq != 3 {
		t.Errorf("with room again it remembers %+v, %v", got, ok)
	}
}

// questions counts what a client asks its Redis.
type questions struct{ asked atomic.Int64 }

func (q *questions) DialHook(next redis.DialHook) redis.DialHook { return next }

func (q *questions) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		q.asked.Add(1)
		return next(ctx, cmd)
	}
}

func (q *questions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		q.asked.Add(1)
		return next(ctx, cmds)
	}
}

func TestARedisThatHangsOrIsGoneCostsATalkAMomentAndNeverATurn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	asks := redis.NewClient(server.Client.Options()) // of its own: the other pauses and ends the server
	t.Cleanup(func() { _ = asks.Close() })
	count := &questions{}
	asks.AddHook(count)
	w := newWorld(t, sqlite(t))
	w.places = newPlaces(asks)
	w.start(true)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	if count.asked.Load() == 0 {
		t.Fatal("nobody asks Redis; the test proves nothing")
	}
	const turns = 20
	talk := func() {
		for range turns {
			w.pass(6 * time.Second) // faster would be a flood
			w.hear("ada", flow.Intent{Kind: flow.MeansMenu})
		}
	}
	must(t, server.Client.Do(t.Context(), "CLIENT", "PAUSE", "60000").Err())
	before, began := count.asked.Load(), time.Now()
	talk()
	// Each turn asks twice, and the client by itself waits three seconds for each
	// answer. One question waits a moment; then nobody asks for a second. Where a second
	// has ended, a turn and what is owed beside it may ask at once.
	if asked, most := count.asked.Load()-before, 2*(int64(time.Since(began)/time.Second)+1); asked > most {
		t.Errorf("%d turns beside a hanging Redis put %d questions to it, not %d at most", turns, asked, most)
	}
	server.Kill()
	talk()
	w.hear("ada", method(flow.BankTransfer))
	if got := w.texts("ada"); len(got) != 2*turns+4 || got[len(got)-1] != "wait_menu" {
		t.Errorf("the payer read %q", got)
	}
}

func TestOnlyWhatThisProcessSignedForTheVeryChatIsBelieved(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client
	ctx, places := t.Context(), newPlaces(client)
	other := checkout.NewRedisPlaces(client, "t:", []byte("another process"), slog.New(slog.DiscardHandler))
	places.Put(ctx, place(5))
	if got, ok := other.Get(ctx, "chat_1"); ok {
		t.Errorf("another process believes %+v", got)
	}
	kept := client.HGet(ctx, chatKey, "chat").Val()
	for name, spoiled := range map[string]string{
		"another person": strings.Replace(kept, "ada", "eve", 1),
		"another state":  strings.Replace(kept, string(flow.Choosing), string(flow.Paid), 1),
		"cut short":      kept[:len(kept)-1],
		"no more":        kept[:20],
	} {
		if spoiled == kept {
			t.Fatalf("%s: nothing was spoiled", name)
		}
		must(t, client.HSet(ctx, chatKey, "chat", spoiled).Err())
		if got, ok := places.Get(ctx, "chat_1"); ok {
			t.Errorf("%s: it believes %+v", name, got)
		}
	}
	must(t, client.HSet(ctx, "t:chat:chat_2", "seq", "5", "chat", kept).Err())
	if got, ok := places.Get(ctx, "chat_2"); ok && got.ID == "chat_2" {
		t.Errorf("another chat's place is taken for %+v", got)
	}
	other.Put(ctx, place(1)) // whose is newer does not show in what another process left
	if got, ok := other.Get(ctx, "chat_1"); !ok || got.Seq != 1 {
		t.Errorf("another process remembers %+v, %v", got, ok)
	}
	places.Put(ctx, place(6))
	if got, ok := places.Get(ctx, "chat_1"); !ok || got.Seq != 6 {
		t.Errorf("it remembers %+v, %v", got, ok)
	}
}

// lyingPlaces gives whatever a test wants.
type lyingPlaces struct{ give func() (flow.Chat, bool) }

func (l *lyingPlaces) Get(context.Context, flow.ChatID) (flow.Chat, bool) { return l.give() }
func (l *lyingPlaces) Put(context.Context, flow.Chat)                     {}

func TestAMemoryThatIsStaleOrAnothersIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite(t))
	lying := &lyingPlaces{give: func() (flow.Chat, bool) { return flow.Chat{}, false }}
	w.places = lying
	w.start(true)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	row, _, err := w.db.ChatOf(t.Context(), ourNumber, "ada")
	w.must(err)
	paid := []flow.Talk{{Session: session.ID, State: flow.Paid}}
	for name, lie := range map[string]flow.Chat{
		"stale":             {ID: row.ID, Number: ourNumber, Person: "ada", Seq: 1, Focus: session.ID, Talks: paid},
		"from the future":   {ID: row.ID, Number: ourNumber, Person: "ada", Seq: 1000, Focus: session.ID, Talks: paid},
		"another chat's":    {ID: "chat_other", Number: ourNumber, Person: "ada", Focus: session.ID, Talks: paid},
		"another person's":  {ID: row.ID, Number: ourNumber, Person: "eve", Focus: session.ID, Talks: paid},
		"of another number": {ID: row.ID, Number: "234", Person: "ada", Focus: session.ID, Talks: paid},
	} {
		lying.give = func() (flow.Chat, bool) {
			chat := lie
			if now, _, err := w.db.ChatOf(context.WithoutCancel(t.Context()), ourNumber, "ada"); err == nil && chat.Seq == 0 {
				chat.Seq = now.Decided
			}
			return chat, true
		}
		w.hear("ada", flow.Intent{Kind: flow.MeansMenu})
		if got := w.texts("ada"); got[len(got)-1] != "summary" {
			t.Errorf("%s: the payer read %q", name, got)
		}
	}
}

func TestAMemoryThatForgetsAllTheTimeChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		memory, ok := w.places.(*checkout.MemoryPlaces)
		if !ok {
			w.t.Fatal("this world has another memory")
		}
		session := w.session(flow.InChat)
		for _, in := range []flow.Intent{code(session), method(flow.BankTransfer), {Kind: flow.MeansMenu}} {
			memory.Forget()
			w.hear("ada", in)
		}
		account := w.attempts(session.ID)[0].Instructions.AccountNumber
		want := "summary transfer_how " + account + " wait_menu transfer_how " + account + " wait_menu"
		if got := strings.Join(w.texts("ada"), " "); got != want {
			w.t.Errorf("the payer read %q", got)
		}
	})
}
