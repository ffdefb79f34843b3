package checkout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

func TestInstructionsAreSentAgainAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		if n, err := w.service.SayAgain(w.t.Context(), project, session.ID, "ngozi"); n != 0 || err != nil {
			w.t.Errorf("nobody has opened it, and %d chats were told: %v", n, err)
		}
		w.hear("ada", code(session))
		w.hear("ada", method(flow.BankTransfer))
		w.rest()
		before := w.texts("ada")
		if n, err := w.service.SayAgain(w.t.Context(), project, session.ID, "ngozi"); n != 1 || err != nil {
			w.t.Errorf("%d chats were told: %v", n, err)
		}
		w.rest()
		again := w.texts("ada")[len(before):]
		if want := before[len(before)-3:]; !slices.Equal(again, want) {
			w.t.Errorf("the payer reads %q again, not %q", again, want)
		}
		w.pass(59 * time.Second)
		if _, err := w.service.SayAgain(w.t.Context(), project, session.ID, "ngozi"); flow.CodeOf(err) != flow.CodeRateLimited {
			w.t.Errorf("a minute is not over: %v", err)
		}
		w.pass(time.Second)
		w.must(w.service.Claim(w.t.Context(), w.chatOf("ada"), "ngozi", 0))
		before = w.texts("ada")
		if _, err := w.service.SayAgain(w.t.Context(), project, session.ID, "ngozi"); err != nil {
			w.t.Error(err)
		}
		w.rest()
		if again, want := w.texts("ada")[len(before):], before[len(before)-3:]; !slices.Equal(again, want) {
			w.t.Errorf("a person who has the chat has %q sent again, not %q", again, want)
		}
		if _, err := w.service.SayAgain(w.t.Context(), "wsp_prj_9", session.ID, "ngozi"); flow.CodeOf(err) != flow.CodeNotFound {
			w.t.Errorf("another project's: %v", err)
		}
		w.setClock(w.clock().Add(-time.Hour))
		if _, err := w.service.SayAgain(w.t.Context(), project, session.ID, "ngozi"); err != nil {
			w.t.Errorf("after the clock was set back by an hour: %v", err)
		}
	})
}

// What is sent again is what a digit answers then, whatever was in focus before.
func TestWhatIsSentAgainIsInFocus(t *testing.T) {
	t.Parallel()
	w := one(t)
	first, second := w.session(flow.InChat), w.session(flow.InChat)
	w.hear("ada", code(first))
	w.hear("ada", code(second))
	w.must2(w.service.SayAgain(t.Context(), project, first.ID, "ngozi"))
	w.hear("ada", method(flow.BankTransfer))
	w.rest()
	if a, b := len(w.attempts(first.ID)), len(w.attempts(second.ID)); a != 1 || b != 0 {
		t.Errorf("1 opened %d and %d accounts", a, b)
	}
}

// Who opened no chat is told by a person, who has no menu that could be replied to.
func TestAnAnswerToWhoIsInNoChatOffersNoMenu(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.Headless)
		w.must(w.instruct(w.t.Context(), session.ID))
		w.must(w.tell(credit("T1", w.attempts(session.ID)[0].Reference, 200_000, w.clock())))
		seen, err := w.service.Seen(w.t.Context(), project, session.ID, nil)
		if err != nil || seen.Answers[w.payments(session.ID)[0].ID] != "part_left" {
			w.t.Errorf("answers %v, %v", seen.Answers, err)
		}
	})
}

// What is told of a session is of one moment: what comes while it is read is in none of it.
func TestWhatIsToldOfASessionIsOfOneMoment(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.Headless)
		w.must(w.instruct(w.t.Context(), session.ID))
		to := w.attempts(session.ID)[0].Reference
		w.must(w.tell(credit("T1", to, 200_000, w.clock())))
		moments := func(r store.Reader) int {
			story, err := checkout.Timeline(w.t.Context(), r, session.ID)
			w.must(err)
			return len(story)
		}
		before := moments(w.service.Reader())
		var payments []flow.Payment
		seen, err := w.service.Seen(w.t.Context(), project, session.ID, func(r store.Reader) (err error) {
			w.must(w.tell(credit("T2", to, 100_000, w.clock())))
			if now := moments(r); now != before {
				w.t.Errorf("its story has %d moments, and had %d", now, before)
			}
			payments, err = r.Payments(w.t.Context(), session.ID)
			return err
		})
		w.must(err)
		if n := len(w.payments(session.ID)); n != 2 || len(seen.Payments) != 1 || len(payments) != 1 || len(seen.Answers) != 1 || len(seen.Timers) == 0 {
			w.t.Errorf("of %d payments %d are seen at first, and then %d; %d answers, %d timers", n, len(seen.Payments), len(payments), len(seen.Answers), len(seen.Timers))
		}
	})
}

func TestNotesTimersAndAnswersOfASession(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		w.hear("ada", method(flow.BankTransfer))
		w.must(w.tell(credit("T1", w.attempts(session.ID)[0].Reference, 200_000, w.clock())))
		w.rest()
		for text, want := range map[string]flow.Code{" \n ": flow.CodeMissingField, "\u200b\u2060 ": flow.CodeMissingField, strings.Repeat("x", 2001): flow.CodeInvalidField, " She calls back ": ""} {
			if err := w.service.Note(w.t.Context(), session.ID, "ngozi@example.com", text, call("", "", nil)); flow.CodeOf(err) != want && (want != "" || err != nil) {
				w.t.Errorf("a note of %d characters: %v", len(text), err)
			}
		}
		notes, err := w.service.Notes(w.t.Context(), project, session.ID)
		if err != nil || len(notes) != 1 || notes[0].Text != "She calls back" || notes[0].Author != "ngozi@example.com" {
			w.t.Errorf("notes %+v, %v", notes, err)
		}
		seen, err := w.service.Seen(w.t.Context(), project, session.ID, nil)
		w.must(err)
		var due []string
		for i, timer := range seen.Timers {
			due = append(due, timer.What)
			if i > 0 && timer.At.Before(seen.Timers[i-1].At) {
				w.t.Errorf("%q stands behind what is later", timer.What)
			}
		}
		for _, what := range []string{"the session expires", "the instructions run out"} {
			if !slices.Contains(due, what) {
				w.t.Errorf("what is due: %q, without %q", due, what)
			}
		}
		if answers := seen.Answers; len(answers) != 1 || answers[w.payments(session.ID)[0].ID] != "part_paid" {
			w.t.Errorf("answers %v", answers)
		}
		rec, err := w.service.Exported(w.t.Context(), project, session.ID, "")
		if err != nil || len(rec.Lines) == 0 {
			w.t.Errorf("the export: %d lines, %v", len(rec.Lines), err)
		}
		w.hear("ben", code(session))
		if _, err := w.service.Exported(w.t.Context(), project, session.ID, ""); flow.CodeOf(err) != flow.CodeInvalidField {
			w.t.Errorf("the export of two chats: %v", err)
		}
		if rec, err := w.service.Exported(w.t.Context(), project, session.ID, w.chatOf("ben")); err != nil || rec.Chat != w.chatOf("ben") {
			w.t.Errorf("the export of one of two chats: %v, %v", rec.Chat, err)
		}
		if err := w.service.AskBank(w.t.Context(), project, session.ID); err != nil {
			w.t.Error(err)
		}
		if err := w.service.AskBank(w.t.Context(), project, session.ID); flow.CodeOf(err) != flow.CodeRateLimited {
			w.t.Errorf("the bank is asked again at once: %v", err)
		}
		for name, err := range map[string]error{
			"notes": second(w.service.Notes(w.t.Context(), "wsp_prj_9", session.ID)), "timers and answers": second(w.service.Seen(w.t.Context(), "wsp_prj_9", session.ID, nil)),
			"export":   second(w.service.Exported(w.t.Context(), "wsp_prj_9", session.ID, "")),
			"the bank": w.service.AskBank(w.t.Context(), "wsp_prj_9", session.ID), "a note": w.service.Note(w.t.Context(), session.ID, "x", "x", checkout.Call{Project: "wsp_prj_9"}),
		} {
			if flow.CodeOf(err) != flow.CodeNotFound {
				w.t.Errorf("%s of another project's session: %v", name, err)
			}
		}
	})
}

// second is the error beside a value that is not looked at.
func second[T any](_ T, err error) error { return err }

// Whoever asks what happens next reads what the chat will do, and not that of what it
// will not.
func TestWhatAChatDoesByItselfIsSaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.session(flow.InChat)
		ahead := func(when string, want ...string) {
			w.t.Helper()
			seen, err := w.service.Seen(w.t.Context(), project, session.ID, nil)
			w.must(err)
			var chats []string
			for _, timer := range seen.Timers {
				if strings.Contains(timer.What, "payer") || strings.Contains(timer.What, "chat") {
					chats = append(chats, timer.What)
				}
			}
			if !slices.Equal(chats, want) {
				w.t.Errorf("%s: %q, not %q", when, chats, want)
			}
		}
		w.hear("ada", code(session))
		ahead("nothing is chosen", "the payer is asked whether they still want to pay", "the chat lets this payment rest, where the payer does not write")
		w.hear("ada", method(flow.BankTransfer))
		ahead("the transfer is waited for", "the payer is reminded that the instructions run out")
		w.hear("ada", flow.Intent{Kind: flow.MeansHuman})
		ahead("a person is waited for", "the payer hears that no person has come yet")
		w.must(w.service.Claim(w.t.Context(), w.chatOf("ada"), "ngozi@example.com", 0))
		ahead("a person has the chat", "the bot answers in the chat again, where no person writes")
		w.must(w.service.Release(w.t.Context(), w.chatOf("ada"), "ngozi@example.com"))
		w.rest()
		w.must(w.tell(credit("T1", w.attempts(session.ID)[0].Reference, session.Amount, w.clock())))
		w.rest()
		ahead("it is paid")
	})
}
