package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
)

// stamp is how operators read a time: in the payer's zone, which it names.
func stamp(t time.Time) string { return t.In(flow.Lagos).Format("2006-01-02 15:04:05.000 MST") }

// show writes a text that others chose parts of: a recording comes from anywhere, and
// nothing in it moves the cursor of a terminal or turns its words round.
func show(out io.Writer, text string) error {
	_, err := io.WriteString(out, strings.Map(func(r rune) rune {
		if r == '\r' || flow.Unseen(r) {
			return -1
		}
		return r
	}, text))
	return err
}

// printStory writes one line a moment; a text of several lines is set in.
func printStory(out io.Writer, story []checkout.Moment) error {
	var b strings.Builder
	for _, m := range story {
		what := strings.ReplaceAll(m.What, "\n", "\n"+strings.Repeat(" ", 39))
		line := fmt.Sprintf("%s  %-8s  %s", stamp(m.At), m.Who, what)
		if m.Why != "" {
			line += "   (" + m.Why + ")"
		}
		if m.Line != "" {
			line += "   #" + m.Line
		}
		fmt.Fprintln(&b, line)
	}
	return show(out, b.String())
}

// printReport says what came of deciding a chat again, and under which versions
// it was recorded.
func printReport(out io.Writer, r replay.Report, copyNow string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d turns, %d messages: %s\n", r.Chat, r.Turns, r.Texts, r.Worst())
	fmt.Fprintf(&b, "  recorded under rules %s, words %s; decided again under rules %d, words %s\n",
		strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Rules)), ", "), "[]"), strings.Join(r.Copies, ", "), flow.RulesVersion, copyNow)
	if r.Gone > 0 {
		fmt.Fprintf(&b, "  the words of %d messages are not in it; how they were understood and what was decided is compared\n", r.Gone)
	}
	for i, d := range r.Differences {
		which := "then"
		if i == 0 {
			which = "first difference"
		}
		fmt.Fprintf(&b, "  %s: line %d, %s, %s: %s\n", which, d.Seq, stamp(d.At), d.Cause, d.Verdict)
		fmt.Fprintf(&b, "    was  %s\n    is   %s\n", indent(d.Was), indent(d.Is))
	}
	return show(out, b.String())
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n         ") }

// printMoment shows how a conversation stood after a line.
func printMoment(out io.Writer, r replay.Recording, line int64) error {
	m, err := replay.At(r, line)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s after line %d, %s\n", r.Chat, m.Seq, stamp(m.At))
	fmt.Fprintf(&b, "  last rule   %s\n", m.Why)
	if m.Chat.Desk.State != flow.DeskBot {
		fmt.Fprintf(&b, "  desk        %s %s\n", m.Chat.Desk.State, m.Chat.Desk.By)
	}
	for _, t := range m.Chat.Talks {
		focus := ""
		if t.Session == m.Chat.Focus {
			focus = "  (in focus)"
		}
		fmt.Fprintf(&b, "  session     %s: %s%s\n", t.Session, t.State, focus)
	}
	if !m.Due.IsZero() {
		fmt.Fprintf(&b, "  next timer  %s\n", stamp(m.Due))
	}
	for _, a := range m.Live {
		fmt.Fprintf(&b, "  live        %s %s of %s, until %s\n", a.Method, a.ID, a.Amount.Naira(), stamp(a.ExpiresAt))
	}
	if len(m.Live) == 0 {
		fmt.Fprintln(&b, "  live        no instructions could be paid")
	}
	fmt.Fprintln(&b, "  on the payer's screen")
	for _, s := range m.Screen {
		who, text := speaker(s)
		tick := "  [" + s.State + "]"
		if s.FromPayer {
			tick = ""
		}
		fmt.Fprintf(&b, "    %-5s  %s%s\n", strings.ToLower(who), strings.ReplaceAll(text, "\n", "\n           "), tick)
	}
	for _, s := range m.Pending {
		fmt.Fprintf(&b, "    not sent yet: %s\n", strings.ReplaceAll(s.Text, "\n", "\n           "))
	}
	return show(out, b.String())
}

// speaker is who wrote a message, and the message; of an agent's, with their name.
func speaker(s replay.Shown) (who, text string) {
	switch {
	case s.FromPayer:
		return "Payer", s.Text
	case s.By == "":
		return "Till", s.Text
	case s.By == replay.Agent:
		return "Agent", s.Text
	}
	return "Agent", s.By + ": " + s.Text
}

// printConversation prints what the payer wrote and read, and nothing of how it
// was decided: a bank or a merchant reads it. Of a session that is named, nothing
// of the payer's other payments is in it.
func printConversation(out io.Writer, r replay.Recording, session flow.SessionID) error {
	lines, err := replay.Conversation(r, session)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Conversation %s, times in West Africa Time (UTC+1)\n\n", r.Chat)
	for _, l := range lines {
		who, text := speaker(l)
		state := ""
		if !l.FromPayer && l.State != replay.Delivered && l.State != replay.Read {
			state = "   [" + l.State + "]"
		}
		fmt.Fprintf(&b, "%s  %-5s  %s%s\n", l.At.In(flow.Lagos).Format("2 Jan 2006 15:04:05"), who, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 29)), state)
	}
	return show(out, b.String())
}
