package checkout_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// whole is a call that renders everything that was made, secrets included, and
// keeps every refusal.
func whole(key, request string) checkout.Call {
	return checkout.Call{
		Scope: "account/1", Key: key, Hash: "hash of " + request, Secret: []byte("secret of " + key + request),
		Render: func(m checkout.Made) (int, []byte, error) {
			body, err := json.Marshal(m)
			return http.StatusCreated, body, err
		},
		Refuse: func(err error) (checkout.Answer, bool) {
			return checkout.Answer{Status: http.StatusConflict, Body: []byte(err.Error())}, flow.CodeOf(err) != flow.CodeIdempotencyReused
		},
	}
}

// desk are the accounts on a database, with a clock that the test moves.
func desk(t *testing.T, db *store.DB) (a *checkout.Accounts, pass func(time.Duration)) {
	t.Helper()
	var moved atomic.Int64
	began := time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC)
	now := func() time.Time { return began.Add(time.Duration(moved.Load())) }
	return checkout.NewAccounts(db, now, rand.Reader), func(d time.Duration) { moved.Add(int64(d)) }
}

// Who reads the database finds no secret in what is kept of idempotent calls,
// nor the key that opens it.
func TestWhatIsKeptOfACallShowsNoSecret(t *testing.T) {
	t.Parallel()
	at := storetest.SQLite(t, store.Accounts)
	db, err := store.Open(t.Context(), at)
	must(t, err)
	a, _ := desk(t, db)
	const email, password = "owner@example.com", "correct horse battery"
	var up, in, made checkout.Made
	for _, one := range []struct {
		into *checkout.Made
		do   func() (checkout.Answer, error)
	}{
		{&up, func() (checkout.Answer, error) {
			return a.SignUp(t.Context(), email, password, "Ada Stores", "127.0.0.1", whole("key of the sign-up", password))
		}},
		{&in, func() (checkout.Answer, error) {
			return a.LogIn(t.Context(), email, password, "127.0.0.1", whole("key of the login", password))
		}},
		{&made, func() (checkout.Answer, error) {
			return a.MakeKey(t.Context(), up.SignedUp.Project, flow.Test, flow.SecretKey, whole("key of the key", "body"))
		}},
	} {
		answer, err := one.do()
		if err != nil || json.Unmarshal(answer.Body, one.into) != nil || answer.Replayed {
			t.Fatal(answer, err)
		}
		if again, err := one.do(); err != nil || !again.Replayed || !bytes.Equal(again.Body, answer.Body) {
			t.Errorf("again: %v %s", err, again.Body)
		}
	}
	must(t, db.Close())
	kept, err := os.ReadFile(filepath.Join(at.Dir, at.Name+".db"))
	must(t, err)
	for _, secret := range []string{
		up.SignedUp.SecretKey, up.SignedUp.PublicKey, in.LoggedIn.Token, made.Key.Text, password, "key of the", "secret of", "hash of " + password,
	} {
		if secret == "" || bytes.Contains(kept, []byte(secret)) {
			t.Errorf("the database holds %q", secret)
		}
	}
	for _, hash := range []string{flow.HashKey(in.LoggedIn.Token), flow.HashKey(made.Key.Text), "hash of body"} {
		if !bytes.Contains(kept, []byte(hash)) {
			t.Errorf("the database does not hold %q: this looks in the wrong place", hash)
		}
	}
}

// A sign-up that many send at once under one key makes one account.
func TestASignUpIsDoneOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		one, _ := desk(t, db)
		other, _ := desk(t, db) // in another process
		var mu sync.Mutex
		bodies := map[string]int{}
		var all sync.WaitGroup
		for i := range 6 {
			a := []*checkout.Accounts{one, other}[i%2]
			all.Go(func() {
				answer, err := a.SignUp(t.Context(), "owner@example.com", "correct horse battery", "Ada Stores", "127.0.0.1", whole("key", "same"))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					bodies[string(answer.Body)]++
				case flow.CodeOf(err) != flow.CodeIdempotencyRunning:
					t.Errorf("a sign-up said %v", err)
				}
			})
		}
		all.Wait()
		if len(bodies) != 1 {
			t.Errorf("they were answered %v", bodies)
		}
		if _, err := one.SignUp(t.Context(), "Owner@Example.com", "correct horse battery", "Ada Shoes", "127.0.0.1", whole("key", "other")); flow.CodeOf(err) != flow.CodeIdempotencyReused {
			t.Errorf("another request under the key said %v", err)
		}
	})
}

// What is older than a day is dropped, from both kinds of database, without
// anybody asking for it.
func TestCallsAreForgottenAfterADay(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for i := range 1203 { // more than go in one transaction
			c := call("key-"+string(rune('a'+i%26))+strings.Repeat("k", i/26), "h", nil)
			_, err := w.service.Open(t.Context(), newSession(flow.Headless), c)
			w.must(err)
		}
		w.pass(24 * time.Hour)
		young, err := w.service.Open(t.Context(), newSession(flow.Headless), call("young", "h", nil))
		w.must(err)
		since := w.clock()
		w.pass(11 * time.Minute) // it is looked for every ten
		w.until("the old calls are gone", func() bool {
			at, there, err := w.db.OldestCall(t.Context())
			w.must(err)
			return there && at.Equal(since)
		})
		if again, err := w.service.Open(t.Context(), newSession(flow.Headless), call("young", "h", nil)); err != nil || !again.Replayed || again.Location != young.Location {
			t.Errorf("a young call was answered %+v, %v", again, err)
		}
	})
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		a, pass := desk(t, db)
		up, err := a.Demo(t.Context(), "owner@example.com", "Ada Stores", func(checkout.SignedUp) error { return nil })
		must(t, err)
		project := func() checkout.Answer {
			answer, err := a.AddProject(t.Context(), up.Account.ID, "Shoes", whole("key", "same"))
			if err != nil {
				t.Error(err)
			}
			return answer
		}
		first := project()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		pass(24 * time.Hour)
		if again := project(); !again.Replayed || again.Location != first.Location {
			t.Errorf("within a day it was answered %+v", again)
		}
		pass(11 * time.Minute) // it is looked for every ten
		await.Until(t, "the call is forgotten", func() bool {
			_, there, err := db.OldestCall(t.Context())
			must(t, err)
			return !there
		})
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if again := project(); again.Replayed || again.Location == first.Location {
			t.Errorf("after a day it was answered %+v", again)
		}
	})
}

// A refusal that is final is an answer; nothing of what was refused is kept.
func TestARefusalIsKeptUnderItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		n := newSession(flow.Headless)
		n.Reference = "order-1"
		_, err := w.service.Open(t.Context(), n, checkout.Call{Project: project, Render: whole("", "").Render})
		w.must(err)
		refused := whole("key", "same")
		refused.Project, refused.Scope = project, ""
		first, err := w.service.Open(t.Context(), n, refused)
		if err != nil || first.Status != http.StatusConflict || first.Replayed || !strings.Contains(string(first.Body), "duplicate_reference") {
			t.Fatalf("it was answered %+v, %v", first, err)
		}
		if again, err := w.service.Open(t.Context(), n, refused); err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) || again.Status != first.Status {
			t.Errorf("again it was answered %+v, %v", again, err)
		}
		other := refused
		other.Hash = "other"
		if _, err := w.service.Open(t.Context(), n, other); flow.CodeOf(err) != flow.CodeIdempotencyReused {
			t.Errorf("another request under the key said %v", err)
		}
		if w.sessions() != 1 {
			t.Errorf("there are %d sessions", w.sessions())
		}
	})
}

// A call that may have had an effect keeps its key; one that was refused leaves it free.
func TestACallThatMayHaveHadAnEffectKeepsItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for code, free := range map[flow.Code]bool{
			flow.CodeInternal: false, flow.CodeStorage: false, flow.CodeRailTimeout: false, flow.CodeRailUnavailable: false, flow.CodeRailRejected: false,
			flow.CodeRateLimited: true, flow.CodeNotFound: true,
		} {
			c := whole("key "+string(code), "one")
			c.Project = project
			_, err := w.service.Once(w.t.Context(), c, func() (checkout.Answer, error) { return checkout.Answer{}, flow.Refuse(code, "no") })
			if flow.CodeOf(err) != code {
				w.t.Errorf("it said %v, want %s", err, code)
			}
			c.Hash = "another"
			if _, err = w.service.Open(w.t.Context(), newSession(flow.Headless), c); (err == nil) != free || !free && flow.CodeOf(err) != flow.CodeIdempotencyReused {
				w.t.Errorf("after %s another request under the key said %v", code, err)
			}
		}
	})
}

// A call whose effect is in doubt keeps its key, whatever the next try is told.
func TestACallInDoubtKeepsItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		c := whole("key", "same")
		c.Project = project
		try := func(code flow.Code) error {
			_, err := w.service.Once(t.Context(), c, func() (checkout.Answer, error) {
				if code == "" {
					return checkout.Answer{Status: http.StatusOK, Body: []byte("done")}, nil
				}
				return checkout.Answer{}, flow.Refuse(code, "no")
			})
			return err
		}
		for _, code := range []flow.Code{flow.CodeRailTimeout, flow.CodeRateLimited} {
			if err := try(code); flow.CodeOf(err) != code {
				t.Errorf("it said %v, want %s", err, code)
			}
		}
		right := c.Hash
		c.Hash = "other"
		if err := try(""); flow.CodeOf(err) != flow.CodeIdempotencyReused {
			t.Errorf("another request under the key said %v", err)
		}
		c.Hash = right
		w.must(try(""))
		if err := try(flow.CodeInternal); err != nil {
			t.Errorf("it was done again: %v", err)
		}
	})
}

// Two processes that do a call at once answer it alike, and as it is answered from then on.
func TestACallThatTwoProcessesDoAtOnceHasOneAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		other, stop := w.beside(nil)
		defer stop()
		c := whole("key", "same")
		c.Project = project
		says := func(words string) (checkout.Answer, error) {
			return checkout.Answer{Status: http.StatusOK, Body: []byte(words)}, nil
		}
		var there checkout.Answer
		here, err := w.service.Once(t.Context(), c, func() (checkout.Answer, error) {
			var err error
			there, err = other.Once(t.Context(), c, func() (checkout.Answer, error) { return says("there") })
			w.must(err)
			return says("here")
		})
		w.must(err)
		again, err := w.service.Once(t.Context(), c, func() (checkout.Answer, error) { return says("again") })
		if err != nil || string(there.Body) != "there" || string(here.Body) != "there" || !here.Replayed || string(again.Body) != "there" {
			t.Errorf("there it was answered with %s, here with %s, and then with %s, %v", there.Body, here.Body, again.Body, err)
		}
	})
}
