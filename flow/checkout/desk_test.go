package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// chatOf is the chat of a person.
func (w *world) chatOf(person string) flow.ChatID {
	w.t.Helper()
	row, found, err := w.db.ChatOf(w.t.Context(), ourNumber, person)
	w.must(err)
	if !found {
		w.t.Fatalf("%s has no chat", person)
	}
	return row.ID
}

// duringBubble runs something while a message is on its way to the payer.
func (w *world) duringBubble(text string, do func()) {
	var once sync.Once
	w.sending(func(o checkout.Outgoing) error {
		if o.Text == text {
			once.Do(do)
		}
		return nil
	})
}

func TestNothingOfTheBotsFollowsOnceAPersonHasTheChat(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for name, takes := range map[string]func(person string) error{
			"an agent claims it": func(person string) error {
				return w.service.Claim(context.WithoutCancel(w.t.Context()), w.chatOf(person), "ngozi", 0)
			},
			"somebody types on our phone": func(person string) error { return w.says(person, flow.Intent{Kind: flow.MeansTakeover}) },
		} {
			session := w.session(flow.InChat)
			w.hear(name, code(session))
			w.duringBubble("transfer_how", func() { w.must(takes(name)) })
			w.hear(name, method(flow.BankTransfer))
			if got := w.texts(name); !slices.Equal(got, []string{"summary", "transfer_how"}) {
				w.t.Errorf("%s while the first of three messages is sent, and the payer reads %q", name, got)
			}
			if got := w.became(session.ID); got != "2 sent, 3 failed" { // the first one was taken back and sent all the same
				w.t.Errorf("%s: the log says %s", name, got)
			}
			w.must(w.tell(credit("paid "+name, w.attempts(session.ID)[0].Reference, 500_000, w.clock())))
			w.rest()
			if got := w.texts(name); got[len(got)-1] != "receipt" {
				w.t.Errorf("%s, and of the money the payer reads %q", name, got)
			}
		}
	})
}

// Whoever looks at the queue reads what a person is waited for: what is asked there, and
// what was only not understood.
func TestTheQueueSaysWhyAPersonIsWaitedFor(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		for person, means := range map[string][]flow.IntentKind{
			"asks for a person": {flow.MeansHuman},
			"not understood twice after saying that it is paid": {flow.MeansPaid, flow.MeansNothing, flow.MeansNothing},
		} {
			session := w.session(flow.InChat)
			w.hear(person, code(session))
			w.hear(person, method(flow.BankTransfer))
			for _, kind := range means {
				w.pass(6 * time.Second) // faster would be a flood
				w.hear(person, flow.Intent{Kind: kind, Text: "9"})
			}
		}
		queue, err := w.service.Desk(w.t.Context())
		if err != nil || len(queue) != 2 {
			w.t.Fatalf("%+v wait, %v", queue, err)
		}
		for _, row := range queue {
			if row.Desk.State != flow.DeskWaiting || !strings.HasPrefix(row.Flag, row.Person) {
				w.t.Errorf("who %q waits for %q", row.Person, row.Flag)
			}
		}
	})
}

// A phone that is linked twice shows each line what the other one sent: that is no
// person who types on it.
func TestWhatWeSaidOurselvesTakesNoChatOver(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		echo := flow.Intent{Kind: flow.MeansTakeover, Text: "summary"}
		session := w.session(flow.InChat)
		w.sending(func(o checkout.Outgoing) error { return w.hears(o.Person, o.ID, echo) })
		w.hear("ada", code(session))
		w.hear("ada", method(flow.BankTransfer))
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "transfer_how", "9799309074", "wait_menu"}) {
			w.t.Errorf("the payer reads %q", got)
		}
		w.must(w.hears("bode", w.sent[0].ID, echo)) // what stands in another chat is nothing that we said there
		w.must(w.hears("bode", "IN-bode", code(session)))
		w.rest()
		if got := w.texts("bode"); len(got) != 0 {
			w.t.Errorf("over a person who has the chat, bode reads %q", got)
		}
	})
}

// claimed is a session whose chat ngozi has claimed.
func (w *world) claimed() (flow.Session, flow.ChatID) {
	w.t.Helper()
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	id := w.chatOf("ada")
	w.must(w.service.Claim(w.t.Context(), id, "ngozi", 0))
	return session, id
}

// What is kept nowhere is refused at every door that leads to a payer or a note.
func TestNobodyWritesWhatIsKeptNowhere(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, id := w.claimed()
		for _, text := range []string{"your card 4111 1111 1111 1111", "use sk_live_" + "abcdefghij0123456789", "your BVN 22212345678"} {
			for door, err := range map[string]error{
				"reply": w.service.Reply(w.t.Context(), id, "ngozi", text, checkout.Call{}), "note": w.service.Note(w.t.Context(), session.ID, "ngozi", text, call("", "", nil)),
			} {
				if flow.CodeOf(err) != flow.CodeCardData {
					w.t.Errorf("%s of %q: %v", door, text, err)
				}
			}
		}
		w.rest()
		if got := w.texts("ada"); slices.Contains(got, "agent") {
			w.t.Errorf("the payer reads %q", got)
		}
	})
}

// A form that comes again after a crash, or twice at the same moment, writes once:
// what it does and that it is done are kept together.
func TestAReplyAndANoteOfOneKeyAreWrittenOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := context.WithoutCancel(w.t.Context())
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		id := w.chatOf("ada")
		w.must(w.service.Claim(ctx, id, "ngozi", 0))
		writes := func(key string) error {
			return errors.Join(w.service.Reply(ctx, id, "ngozi", "Good day.", call("reply-"+key, "h", nil)),
				w.service.Note(ctx, session.ID, "ngozi", "She called.", call("note-"+key, "h", nil)))
		}
		w.must(writes("crashed"))
		w.crash()
		w.end()
		w.start(false)
		w.must(writes("crashed"))
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { w.must(writes("together")) })
		}
		both.Wait()
		w.later(2 * time.Minute) // what the dead one held is free again
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "agent", "agent"}) {
			w.t.Errorf("the payer reads %q", got)
		}
		if notes, err := w.service.Notes(ctx, project, session.ID); err != nil || len(notes) != 2 {
			w.t.Errorf("notes %+v, %v", notes, err)
		}
		if err := w.service.Reply(ctx, id, "ngozi", "Good night.", call("reply-crashed", "another", nil)); flow.CodeOf(err) != flow.CodeIdempotencyReused {
			w.t.Errorf("another reply with the key of one says %v", err)
		}
	})
}

func TestAnAgentWhoClaimsAChatAgainKeepsWhatTheyWrote(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		_, id := w.claimed()
		w.duringBubble("summary", func() { w.t.Error("the bot speaks") })
		held := make(chan struct{})
		w.sending(func(checkout.Outgoing) error { <-held; return nil })
		for range 2 {
			w.must(w.service.Reply(w.t.Context(), id, "ngozi", "Good day.", checkout.Call{}))
		}
		w.must(w.service.Claim(w.t.Context(), id, "ngozi", 0))
		close(held)
		w.rest()
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "agent", "agent"}) {
			w.t.Errorf("the payer reads %q", got)
		}
	})
}

func TestASecretThatAMessageIsChangedIntoIsWarnedOf(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.hear("ada", code(w.session(flow.InChat)))
	w.must(w.service.Hear(t.Context(), checkout.Inbound{
		Number: ourNumber, Person: "ada", Message: "EDIT", Edits: "IN1", Intent: flow.Intent{Kind: flow.MeansSecret, Text: "a secret, not kept"},
	}))
	w.rest()
	if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "secret_typed"}) {
		t.Errorf("the payer reads %q", got)
	}
}

func TestAMessageIsAboutThePaymentThatItShows(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		first, second := w.session(flow.InChat), w.session(flow.InChat)
		w.hear("ada", code(first))
		w.hear("ada", method(flow.BankTransfer))
		w.hear("ada", code(second))
		w.hear("ada", flow.Intent{Kind: flow.MeansBack}) // shows the first one
		w.mu.Lock()
		shown := w.sent[len(w.sent)-1].ID
		w.mu.Unlock()
		w.hear("ada", code(second))
		w.must(w.service.Hear(w.t.Context(), checkout.Inbound{
			Number: ourNumber, Person: "ada", Message: "QUOTES", Quoted: shown, Intent: flow.Intent{Kind: flow.MeansOther},
		}))
		w.rest()
		if a := w.attempts(first.ID); len(a) != 1 || a[0].Status != flow.AttemptSuperseded {
			w.t.Errorf("another way was not asked for the payment whose message was quoted: %+v", a)
		}
	})
}

// A chat whose clock is looked at too soon, as by a process whose own runs ahead, does
// nothing yet, and what it would have done at its time it does then.
func TestAChatThatIsLookedAtTooSoonIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.hear("ada", code(w.session(flow.InChat)))
		w.change("UPDATE tasks SET due = 1 WHERE kind = 'chat.timer'")
		w.later(time.Second)
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary"}) {
			w.t.Fatalf("too soon the payer reads %q", got)
		}
		w.later(20 * time.Minute)
		if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "nudge"}) {
			w.t.Errorf("at its time the payer reads %q", got)
		}
	})
}

// A person who is waited for about one merchant's payment is that merchant's, whichever
// payment is spoken of meanwhile; and whoever takes the chat speaks of that one.
func TestWhoIsWaitedForIsOfTheMerchantThatItIsAbout(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*world, flow.Attempt, flow.Attempt){
		"money of one is taken back while another is spoken of": func(w *world, mine, _ flow.Attempt) {
			w.must(w.tell(reversal("R1", "T1", mine, 200_000, w.clock())))
		},
		"a part of another comes while a person is waited for": func(w *world, mine, theirs flow.Attempt) {
			w.must(w.tell(said(flow.Credit, "T2", mine, 100_000, w.clock()))) // speaks of it again
			w.rest()
			w.hear("ada", flow.Intent{Kind: flow.MeansHuman})
			w.must(w.tell(said(flow.Credit, "T3", theirs, 100_000, w.clock())))
		},
	} {
		w := one(t)
		session, mine := w.paying()
		w.must(w.tell(said(flow.Credit, "T1", mine, 200_000, w.clock())))
		w.rest()
		other := w.openedBy("wsp_prj_2")
		w.hear("ada", code(other))
		w.hear("ada", method(flow.BankTransfer))
		call(w, mine, w.attempts(other.ID)[0])
		w.rest()
		answers := func(when string) (id flow.ChatID) {
			t.Helper()
			theirs, _, err := w.service.DeskOf(t.Context(), "wsp_prj_2")
			w.must(err)
			list, _, err := w.service.DeskOf(t.Context(), project)
			w.must(err)
			if len(theirs) != 0 || len(list) != 1 || list[0].Session.ID != session.ID {
				t.Fatalf("%s, %s: one merchant answers in %+v, the other in %+v", name, when, list, theirs)
			}
			return list[0].ID
		}
		chat := answers("waiting")
		w.must(w.service.Claim(t.Context(), chat, "ngozi", 0))
		answers("taken over")
		for project, of := range map[flow.ProjectID]flow.SessionID{project: other.ID, "wsp_prj_2": session.ID} {
			steps, err := w.service.Read(t.Context(), project, chat)
			w.must(err)
			if strings.Contains(fmt.Sprintf("%+v", steps), string(of)) {
				t.Errorf("%s: %s reads of another's payment: %+v", name, project, steps)
			}
		}
	}
}

// Where nobody came in two hours to whom a payer asked for, the merchant whose payment is
// spoken of by now may take the chat, and reads nothing of the other.
func TestAMerchantWhomNobodyComesForKeepsNoOtherFromAPayer(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.hear("ada", flow.Intent{Kind: flow.MeansHuman})
	other := w.openedBy("wsp_prj_2")
	w.hear("ada", code(other))
	chat := w.chatOf("ada")
	seen := func(of flow.ProjectID) checkout.Waiting {
		t.Helper()
		is, err := w.service.DeskChat(t.Context(), of, chat)
		w.must(err)
		return is
	}
	w.later(flow.DeskPatience + time.Second)
	if is := seen("wsp_prj_2"); is.Mine {
		t.Errorf("while somebody may still come: %+v", is)
	}
	due, err := w.service.Seen(t.Context(), project, session.ID, nil)
	w.must(err)
	if slices.ContainsFunc(due.Timers, func(t checkout.Timer) bool { return strings.Contains(t.What, "the bot answers") }) {
		t.Errorf("the bot, which answers already, is to answer: %+v", due.Timers)
	}
	calls := func() bool { // whether operators are told that a payer waits for a person
		t.Helper()
		_, person, err := checkout.PayersWait(t.Context(), w.service.Reader())
		w.must(err)
		return !person.IsZero()
	}
	if !calls() {
		t.Error("nobody is told that a payer waits")
	}
	w.later(flow.DeskIdle)
	if calls() {
		t.Error("they are told without an end, and of nobody who asks next")
	}
	is := seen("wsp_prj_2")
	if !is.Mine || is.Session.ID != other.ID || is.Desk != (flow.Desk{}) || is.Flag != "" {
		t.Errorf("once nobody came: %+v", is)
	}
	if list, _, err := w.service.DeskOf(t.Context(), "wsp_prj_2"); err != nil || len(list) != 0 {
		t.Errorf("who was asked for nobody has %+v in their inbox, %v", list, err)
	}
	if list, _, err := w.service.DeskOf(t.Context(), project); err != nil || len(list) != 1 || list[0].Session.ID != session.ID {
		t.Errorf("who was asked for has %+v in their inbox, %v", list, err)
	}
	next := w.session(flow.InChat)
	w.hear("chidi", code(next))
	w.hear("chidi", flow.Intent{Kind: flow.MeansHuman})
	if list, _, err := w.service.DeskOf(t.Context(), project); err != nil || len(list) != 2 || list[0].Session.ID != next.ID {
		t.Errorf("who asks next is behind who was waited for in vain: %+v, %v", list, err)
	}
	w.must(w.service.ClaimAbout(t.Context(), chat, other.ID, "bola", is.Seq))
	if is := seen("wsp_prj_2"); !is.Mine || is.Desk.By != "bola" || is.Session.ID != other.ID {
		t.Errorf("taken over: %+v", is)
	}
	if is := seen(project); is.Mine {
		t.Errorf("and the other merchant: %+v", is)
	}
}

// Whoever waited for a person because the bank took a part back may pay again once one has
// answered, also one who never gives the chat back.
func TestWhoWasAnsweredMayPayAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers func(*world)
		reads   string
	}{
		"an agent": {func(w *world) {
			w.must(w.service.Claim(t.Context(), w.chatOf("ada"), "ngozi", 0))
			w.must(w.service.Reply(t.Context(), w.chatOf("ada"), "ngozi", "Please pay again.", checkout.Call{}))
		}, "summary"},
		"somebody on our phone": {func(w *world) {
			w.hear("ada", flow.Intent{Kind: flow.MeansTakeover, Text: "Please pay again."})
		}, "summary"},
		"nobody, though an agent has the chat": {func(w *world) {
			w.must(w.service.Claim(t.Context(), w.chatOf("ada"), "ngozi", 0))
		}, "reversed"},
	} {
		w := one(t)
		_, a := w.paying()
		w.must(w.tell(said(flow.Credit, "T1", a, 200_000, w.clock()), reversal("R1", "T1", a, 200_000, w.clock())))
		w.rest()
		c.answers(w)
		w.rest()
		before := len(w.texts("ada"))
		w.later(flow.DeskIdle + time.Second)
		if got := w.texts("ada")[before:]; !slices.Equal(got, []string{"back_again", c.reads}) {
			t.Errorf("%s answered, and the payer reads %q", name, got)
		}
	}
}
