package checkout_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// mailed is a session that was made for an e-mail address, and perhaps a number.
func (w *world) mailed(mode flow.Mode, email string, phone flow.Phone) flow.Session {
	w.t.Helper()
	n := newSession(mode)
	n.CustomerEmail, n.CustomerPhone = email, phone
	session := w.opened(n)
	w.pass(time.Second)
	return session
}

// zainabSays is written to one of our numbers by somebody whose number may be hidden.
func (w *world) zainabSays(number string, phone flow.Phone, in flow.Intent) {
	w.t.Helper()
	w.heard++
	w.must(w.service.Hear(w.t.Context(), checkout.Inbound{
		Number: number, Person: "zainab", Phone: phone, Name: "Zainab Bello", Message: "Z" + string(rune('A'+w.heard)), Intent: in,
	}))
	w.rest()
}

// over cancels sessions.
func (w *world) over(list ...flow.Session) {
	w.t.Helper()
	for _, s := range list {
		_, err := w.service.Cancel(w.t.Context(), s.ID, call("", "", nil))
		w.must(err)
	}
	w.rest()
}

// byAddress looks for a payer by an e-mail address alone.
func (w *world) byAddress(email string) checkout.Payer {
	w.t.Helper()
	p, err := checkout.FindPayer(w.t.Context(), w.db.Reader, "", email)
	w.must(err)
	return p
}

// forgets forgets a payer.
func (w *world) forgets(p checkout.Payer) (checkout.Forgot, error) {
	w.t.Helper()
	f := checkout.NewForgetter(w.db, w.clock, rand.Reader)
	as, err := f.NewName()
	w.must(err)
	return f.Forget(w.t.Context(), p, as)
}

// forgotten forgets somebody of whom nothing stands in the way, and says by which
// name they go from then on.
func (w *world) forgotten(p checkout.Payer) (as string, forgot checkout.Forgot) {
	w.t.Helper()
	f := checkout.NewForgetter(w.db, w.clock, rand.Reader)
	as, err := f.NewName()
	w.must(err)
	forgot, err = f.Forget(w.t.Context(), p, as)
	w.must(err)
	return as, forgot
}

// stands fails where a text is kept anywhere, or nowhere.
func (w *world) stands(text string, is bool) {
	w.t.Helper()
	found, err := w.db.Mentions(w.t.Context(), text)
	w.must(err)
	if len(found) > 0 != is {
		w.t.Errorf("%s stands in %v", text, found)
	}
}

// unseen are the e-mail addresses that were not seen since a time.
func (w *world) unseen(before time.Time) (list []string) {
	w.t.Helper()
	seen, err := w.db.UnseenSince(w.t.Context(), before, 100)
	w.must(err)
	for _, one := range seen {
		list = append(list, one.Email+string(one.Phone))
	}
	return list
}

func idsOf(list []flow.Session) (ids []flow.SessionID) {
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

// By an e-mail address alone nothing is found that a telephone number stands for, in
// a session or in a chat that speaks of it, and nothing is forgotten while there is.
func TestWhoIsKnownByAnAddressAloneIsNotWhoHasANumber(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		alone, spoken := w.mailed(flow.Headless, adaEmail, ""), w.mailed(flow.InChat, adaEmail, "")
		if p := w.byAddress(strings.ToUpper(adaEmail)); !slices.Equal(idsOf(p.Sessions), []flow.SessionID{alone.ID, spoken.ID}) || len(p.Numbered) != 0 {
			t.Fatalf("before anybody speaks of it: %v and %v", idsOf(p.Sessions), idsOf(p.Numbered))
		}
		w.adaSays(code(spoken))
		named := w.mailed(flow.Headless, adaEmail, "2348030000009")
		w.over(alone, spoken, named)
		p := w.byAddress(adaEmail)
		if !slices.Equal(idsOf(p.Sessions), []flow.SessionID{alone.ID}) || !slices.Equal(idsOf(p.Numbered), []flow.SessionID{spoken.ID, named.ID}) || len(p.Chats) != 0 {
			t.Errorf("hers %v, of numbers %v, and %d chats", idsOf(p.Sessions), idsOf(p.Numbered), len(p.Chats))
		}
		if who := p.Who(); who != "a•••@private.example" {
			t.Errorf("the audit log calls her %s", who)
		}
		if _, err := w.forgets(p); !errors.Is(err, checkout.ErrNumbered) {
			t.Errorf("to forget her says %v", err)
		}
		if s := w.read(alone.ID); s.CustomerEmail != adaEmail {
			t.Errorf("and her session is of %q", s.CustomerEmail)
		}
	})
}

// Whose number is hidden on one of our numbers, and known on another, has a number.
func TestWhoseNumberIsKnownOnAnotherOfOurNumbersHasOne(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		hidden, open := w.mailed(flow.InChat, "one@private.example", ""), w.mailed(flow.InChat, "two@private.example", "")
		w.zainabSays(ourNumber, "", code(hidden))
		w.zainabSays("2349010000002", "2348035550001", code(open))
		w.over(hidden)
		if _, err := w.forgets(w.byAddress("one@private.example")); !errors.Is(err, checkout.ErrNumbered) {
			w.t.Errorf("to forget her says %v", err)
		}
		rows, err := w.db.Watchers(w.t.Context(), open.ID)
		w.must(err)
		if len(rows) != 1 || rows[0].Person != "zainab" {
			w.t.Errorf("an open session is watched by %+v", rows)
		}
		if list := w.unseen(w.clock().Add(time.Hour)); slices.Contains(list, "one@private.example") || !slices.Contains(list, "2348035550001") {
			w.t.Errorf("not seen: %v", list)
		}
	})
}

// A chat that speaks of another session too stays as it is, and what is written there
// counts: its payer was seen.
func TestAChatThatSpeaksOfMoreThanAnAddressStays(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		one := w.mailed(flow.InChat, "one@private.example", "")
		w.zainabSays(ourNumber, "", code(one))
		w.over(one)
		w.pass(time.Minute)
		before := w.clock()
		if list := w.unseen(before); !slices.Equal(list, []string{"one@private.example"}) {
			w.t.Errorf("not seen: %v", list)
		}
		w.pass(48 * time.Hour)
		two := w.mailed(flow.InChat, "two@private.example", "")
		w.zainabSays(ourNumber, "", code(two))
		if list := w.unseen(before); len(list) != 0 {
			w.t.Errorf("not seen, of whom one wrote: %v", list)
		}
		p := w.byAddress("one@private.example")
		if len(p.Chats) != 0 || len(p.Left) != 1 {
			w.t.Errorf("%d chats are hers, %d stay", len(p.Chats), len(p.Left))
		}
		if forgot, err := w.forgets(p); err != nil || forgot.Sessions != 1 {
			w.t.Errorf("forgot %+v, %v", forgot, err)
		}
		w.stands("one@private.example", false)
		w.stands("two@private.example", true)
		w.stands("Zainab Bello", true)
		w.over(two)
		if forgot, err := w.forgets(w.byAddress("two@private.example")); err != nil || forgot.Sessions != 1 || forgot.Chats != 1 {
			w.t.Errorf("forgot %+v, %v", forgot, err)
		}
		w.stands("Zainab Bello", false)
	})
}

// An address is forgotten in whatever case it is written, and who was forgotten is
// nobody who was not seen for long.
func TestAnAddressIsForgottenInAnyCase(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.endpoint("https://shop.test/hook?to=Mixed@Private.example")
		own := w.mailed(flow.Headless, "Mixed@Private.example", "")
		n := newSession(flow.Headless)
		n.CustomerEmail, n.Metadata = "else@private.example", map[string]string{"agent": "MIXED@Private.example", "low": "mixed@private.example", "not": "unMixed@private.example"}
		session := w.opened(n)
		ada := w.adaSession()
		w.over(own, session, ada)
		if list := w.unseen(w.clock().Add(time.Hour)); !slices.Equal(list, []string{"mixed@private.example", string(adaPhone), "else@private.example"}) {
			w.t.Errorf("not seen: %v", list)
		}
		for _, p := range []checkout.Payer{w.byAddress("Mixed@private.example"), w.find()} {
			if forgot, err := w.forgets(p); err != nil || forgot.Sessions != 1 {
				w.t.Errorf("forgot %+v, %v", forgot, err)
			}
		}
		for _, text := range []string{"to=Mixed@", "to=mixed@", "MIXED@", `"mixed@`} {
			w.stands(text, false)
		}
		w.stands("unMixed@private.example", true)
		if list := w.unseen(w.clock().Add(time.Hour)); !slices.Equal(list, []string{"else@private.example"}) {
			w.t.Errorf("not seen: %v", list)
		}
	})
}
