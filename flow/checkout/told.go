package checkout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
	"till/rail"
)

// This file and its neighbours told_*.go are the one home of the sentences in
// which a story is told to somebody who knows none of the program's words. What is
// kept stands beside them as it is: a sentence leaves out, and never adds.

// teller tells the lines of one session's story. It knows what the lines only
// name by an id.
type teller struct {
	attempts []flow.Attempt
	refunds  []flow.Refund
	texts    map[string]string // of our messages, by their id
}

// newTeller reads what the lines of a session only name.
func newTeller(attempts []flow.Attempt, refunds []flow.Refund, lines []store.Line) teller {
	t := teller{attempts: attempts, refunds: refunds, texts: map[string]string{}}
	for _, l := range lines {
		var d replay.Outcome
		if l.Kind != replay.Decided || json.Unmarshal(l.Data, &d) != nil {
			continue
		}
		for _, text := range d.Texts {
			t.texts[text.ID] = text.Text
		}
	}
	return t
}

// clock tells a time; the day too, where it is another one than that of seen.
func clock(at, seen time.Time) string {
	form := "15:04"
	if at.In(flow.Lagos).Format(time.DateOnly) != seen.In(flow.Lagos).Format(time.DateOnly) {
		form = "2 January 2006, 15:04"
	}
	return at.In(flow.Lagos).Format(form) + " (Lagos)"
}

// words are a name of the program's without its underscores.
func words(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", " ") }

// sentence begins with a capital letter; it is not empty.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// wordless is how that is told which there are no words for.
const wordless = "which this version of Till has no words for. What is kept of it stands below."

// unknown tells what there are no words for.
func unknown(what, name string) string {
	return fmt.Sprintf("The log holds %s “%s”, %s", what, words(name), wordless)
}

// line tells one line of the log.
func (t teller) line(l store.Line) string {
	switch l.Kind {
	case replay.Heard, replay.News:
		return turnTold(l)
	case replay.Decided:
		return decisionTold(l)
	case replay.Sent, replay.Delivered, replay.Read, replay.Failed:
		return t.message(l)
	case "bank.asked":
		return askedTold(l)
	case cancelled:
		return "The merchant’s own program cancelled the session, with the key “" + byOf(l) + "”."
	case expired:
		return expiredTold(l)
	case "bank." + fromNotice, "bank." + fromAnswer, "bank." + fromStatement:
		return bankTold(l)
	case "rail.call":
		return calledTold(l)
	case "rail.answer":
		return t.answer(l)
	case "event":
		var e struct{ Event flow.EventKind }
		if json.Unmarshal(l.Data, &e) == nil && e.Event != "" {
			return fmt.Sprintf("A webhook, %s, was made for the merchant: %s.", e.Event, eventTold(e.Event))
		}
	}
	return unknown("a line of the kind", l.Kind)
}

// expiredTold tells what ended a session's time.
func expiredTold(l store.Line) string {
	until, err := time.Parse(time.RFC3339, endOf(l))
	switch {
	case err != nil:
		return unknown("a line of the kind", l.Kind)
	case byOf(l) == flow.ByClock:
		return "The session’s time was over at " + clock(until, l.At) + ", and it expired by itself."
	}
	return "Somebody in the console ended the session’s time."
}

// turnTold tells what came into a chat.
func turnTold(l store.Line) string {
	var in flow.Turn
	if json.Unmarshal(l.Data, &in) != nil {
		return unknown("a line of the kind", l.Kind)
	}
	switch {
	case in.Heard != nil && in.Revokes != "":
		return "The payer took " + lineTold(in.Of) + " back."
	case in.Heard != nil && in.Heard.Text == "" && in.Came == "":
		return "The payer " + heardTold(*in.Heard) + "."
	case in.Heard != nil && in.Heard.Text == "":
		return fmt.Sprintf("%s. Till read it so: the payer %s.", wroteTold(in), heardTold(*in.Heard))
	case in.Heard != nil && replay.Blotted(in.Heard.Text):
		return fmt.Sprintf("%s %s, which are not kept any more. Till read them so: the payer %s.", wroteTold(in), strings.Trim(in.Heard.Text, "[]"), heardTold(*in.Heard))
	case in.Heard != nil:
		return fmt.Sprintf("%s “%s”. Till read it so: the payer %s.", wroteTold(in), in.Heard.Text, heardTold(*in.Heard))
	case in.News != nil:
		return strings.TrimRight(newsTold(*in.News), ". ") + "." // banks end their words as they like
	}
	return unknown("a line of the kind", l.Kind)
}

// wroteTold tells who wrote, and whether they changed another message by that or
// sent something with it.
func wroteTold(in flow.Turn) string {
	told := "The payer"
	if in.Heard.Kind == flow.MeansTakeover {
		told = "Somebody on the phone of our own number"
	}
	what := "a " + in.Came
	if strings.HasPrefix(in.Came, "something") {
		what = in.Came
	}
	switch {
	case in.Edits != "" && in.Heard.Text == "":
		return told + " changed " + lineTold(in.Of) + " into " + what
	case in.Edits != "":
		return told + " changed " + lineTold(in.Of) + " into"
	case in.Came == "":
		return told + " wrote"
	case in.Heard.Text == "":
		return told + " sent " + what
	}
	return told + " sent " + what + " with the words"
}

// lineTold tells which message another one changes.
func lineTold(of int64) string {
	if of == 0 {
		return "a message"
	}
	return fmt.Sprintf("the message of line %d", of)
}

// decisionTold tells what a turn came to.
func decisionTold(l store.Line) string {
	var d replay.Outcome
	if json.Unmarshal(l.Data, &d) != nil {
		return "What was decided cannot be read. What is kept of it stands below."
	}
	told := whyTold(d.Why)
	if talk, ok := d.Chat.Talk(l.Session); ok {
		told += " Now " + stateTold(talk.State) + "."
	}
	return told
}

// whyVerbs are what a reason begins with whose subject is the payer.
var whyVerbs = []string{"asks", "called", "chose", "confirmed", "is", "opens", "says", "wants"}

// whyTold tells the rule that decided.
func whyTold(why string) string {
	if why == "" {
		return "Nothing was decided."
	}
	for _, m := range []flow.Method{flow.BankTransfer, flow.USSD, flow.Card} {
		why = strings.ReplaceAll(why, string(m), methodTold(m))
	}
	first, rest, _ := strings.Cut(why, " ")
	if slices.Contains(whyVerbs, strings.TrimRight(first, ":,")) && !strings.HasPrefix(rest, "answers") {
		why = "the payer " + why
	}
	return sentence(why) + "."
}

// bubble tells what Till wrote, or an agent.
func bubble(m Moment) string {
	who := "Till"
	if m.Why == replay.SayAgent {
		who = sentence(m.Who)
	}
	if replay.Blotted(m.What) {
		return fmt.Sprintf("%s wrote %s, which are not kept any more.", who, strings.Trim(m.What, "[]"))
	}
	return fmt.Sprintf("%s wrote: “%s”", who, m.What)
}

// message tells what became of a message of ours.
func (t teller) message(l store.Line) string {
	what := "A message of Till’s"
	if text := t.texts[l.Message]; text != "" && !replay.Blotted(text) {
		what = fmt.Sprintf("The message “%s”", replay.Quoted(text))
	}
	switch l.Kind {
	case replay.Sent:
		return what + " left for WhatsApp: one tick."
	case replay.Delivered:
		return what + " reached the payer’s phone: two ticks."
	case replay.Read:
		return what + " was read by the payer."
	}
	var because unsentBecause
	if json.Unmarshal(l.Data, &because) == nil && because.Reason != "" {
		return fmt.Sprintf("%s could not be sent, and is not tried again: %s.", what, because.Reason)
	}
	return what + " could not be sent, and is not tried again."
}

// askedTold tells that the bank was asked what came.
func askedTold(l store.Line) string {
	var kept struct{ Outcome string }
	_ = json.Unmarshal(l.Data, &kept) // without an outcome nothing is claimed
	switch kept.Outcome {
	case "ok":
		return "The bank was asked what came, and answered. Money that it knew of stands in lines of its own; where there is none, it knew of nothing new."
	case "pending":
		return "The bank was asked what came: money is on its way, and has not arrived."
	case "":
		return "The bank was asked what came."
	}
	return fmt.Sprintf("The bank was asked what came, and %s. It is asked again by itself.", notAnswered(kept.Outcome))
}

// bankWords are a bank's own words in the text of its refusal, without what we were
// doing; "" where it gave none.
func bankWords(refusal string) string {
	_, words, _ := strings.Cut(refusal, rail.ErrRejected.Error())
	return strings.Trim(words, ": .")
}

// failed tells why an order to the bank brought nothing, and what that says of it.
func failed(outcome string) string {
	switch why := notAnswered(outcome); why {
	case silent:
		return why + ", so that nobody knows yet what it did"
	case unreached:
		return why + ", so that nothing was done there"
	default:
		return why
	}
}

const (
	silent    = "did not answer in time"
	unreached = "could not be reached"
)

// notAnswered tells why a question to the bank brought nothing. Of what it was told
// before, and of money, that says nothing.
func notAnswered(outcome string) string {
	switch {
	case strings.Contains(outcome, rail.ErrRejected.Error()):
		if why := bankWords(outcome); why != "" {
			return "refused: " + why
		}
		return "refused"
	case strings.Contains(outcome, rail.ErrUnknown.Error()):
		return silent
	case strings.Contains(outcome, rail.ErrUnavailable.Error()):
		return unreached
	}
	return "gave no answer that can be used: " + outcome
}
