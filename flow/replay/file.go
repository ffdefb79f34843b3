package replay

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"till/flow"
)

// A file of a recording is lines of JSON: a header, the log, and an end that
// holds the hash of the last line. The hash of a line covers it and the hash of
// the line before it, and a line is read only as the very bytes that Export writes,
// so that nothing can be changed, taken out, added or put in another order without
// the end being another one.

// format names the shape of a file, with its version.
const format = "till/conversation/1"

// The bounds of a file that is read.
const (
	maxFileLine  = 4 << 20
	maxFileLines = 100_000
)

// ErrFile says that a file is no recording, or not the one that was written.
var ErrFile = errors.New("not a recording as it was exported")

type header struct {
	Format   string      `json:"format"`
	Chat     flow.ChatID `json:"chat"`
	Redacted bool        `json:"redacted"`
	Part     bool        `json:"part,omitempty"`
}

type chained struct {
	Line

	Hash string `json:"hash"`
}

type end struct {
	Lines int    `json:"lines"`
	Head  string `json:"head"`
}

// Export writes a recording as a file. The same recording is always the same
// bytes.
func Export(w io.Writer, r Recording, redacted bool) error {
	out := bufio.NewWriter(w)
	write := func(v any) error {
		text, err := json.Marshal(v) // what strict takes
		if err != nil {
			return fmt.Errorf("export chat %s: %w", r.Chat, err)
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return fmt.Errorf("export chat %s: %w", r.Chat, err)
		}
		return nil
	}
	h := header{Format: format, Chat: r.Chat, Redacted: redacted, Part: r.Part}
	if err := write(h); err != nil {
		return err
	}
	hash, err := link("", h)
	if err != nil {
		return err
	}
	for _, l := range r.Lines {
		if hash, err = link(hash, l); err != nil {
			return err
		}
		if err := write(chained{l, hash}); err != nil {
			return err
		}
	}
	if err := write(end{len(r.Lines), hash}); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export chat %s: %w", r.Chat, err)
	}
	return nil
}

// link is the hash of a line that stands after another.
func link(before string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("hash a line: %w", err)
	}
	sum := sha256.Sum256(append([]byte(before+"\n"), text...))
	return hex.EncodeToString(sum[:]), nil
}

// Import reads a file that Export wrote, and whether it is redacted. It tells
// where the chain of hashes breaks. Errors: ErrFile.
func Import(in io.Reader) (Recording, bool, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxFileLine)
	var h header
	if !scan.Scan() || strict(scan.Bytes(), &h) != nil || h.Format != format {
		return Recording{}, false, fmt.Errorf("%w: its first line does not say %q", ErrFile, format)
	}
	r := Recording{Chat: h.Chat, Part: h.Part}
	hash, err := link("", h)
	if err != nil {
		return r, false, err
	}
	for n := 2; scan.Scan(); n++ {
		if n > maxFileLines {
			return r, false, fmt.Errorf("%w: it has more than %d lines", ErrFile, maxFileLines)
		}
		var last end
		if strict(scan.Bytes(), &last) == nil {
			if last.Head != hash || last.Lines != len(r.Lines) || scan.Scan() {
				return r, false, fmt.Errorf("%w: it does not end as it was written", ErrFile)
			}
			return r, h.Redacted, nil
		}
		var c chained
		if err := strict(scan.Bytes(), &c); err != nil {
			return r, false, fmt.Errorf("%w: line %d: %w", ErrFile, n, err)
		}
		if hash, err = link(hash, c.Line); err != nil {
			return r, false, err
		}
		if c.Hash != hash {
			return r, false, fmt.Errorf("%w: line %d is not the one that was written", ErrFile, n)
		}
		r.Lines = append(r.Lines, c.Line)
	}
	if err := scan.Err(); err != nil {
		return r, false, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return r, false, fmt.Errorf("%w: its end is missing", ErrFile)
}

// strict decodes a line that is written as Export writes it: nothing behind it, no
// name twice or that nobody knows, no other spelling of the same.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if again, err := json.Marshal(v); err != nil || !bytes.Equal(again, text) {
		return errors.New("it is spelled otherwise than it was written")
	}
	return nil
}

// Redact is a recording without who the payer is and without what they and the
// agents wrote: only how it was understood stays, and of that a replay decides the
// same.
func Redact(r Recording) (Recording, error) {
	out := Recording{Chat: r.Chat, Part: r.Part}
	for _, l := range r.Lines {
		if !slices.Contains([]string{Heard, News, Decided, Sent, Delivered, Read, Failed}, l.Kind) {
			continue // what the bank and the webhooks said is not decided on again
		}
		data, err := Blot(l.Kind, l.Data, true)
		if err != nil {
			return out, fmt.Errorf("redact line %d: %w", l.Seq, err)
		}
		l.Data = data
		out.Lines = append(out.Lines, l)
	}
	return out, nil
}

// Blot is what a line of a chat's log holds without what the payer and the agents
// wrote, and, where who is said too, without who the payer is. How it was
// understood stays, and of that a replay decides the same. A line of another kind
// is left as it is.
func Blot(kind string, data json.RawMessage, who bool) (json.RawMessage, error) {
	switch kind {
	case Heard, News:
		var t flow.Turn
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, fmt.Errorf("read a turn: %w", err)
		}
		return json.Marshal(redactedTurn(t))
	case Decided:
		var o Outcome
		if err := json.Unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("read a decision: %w", err)
		}
		if who {
			o.Chat = redactedChat(o.Chat)
		}
		return json.Marshal(redactedOutcome(o))
	case Sent, Delivered, Read, Failed:
		if who { // why the network did not take it may name whom it was to reach
			return json.RawMessage("{}"), nil
		}
	}
	return data, nil
}

// Wear is what a line of a chat's log holds once the time is over for which words
// are kept: Blot of it, without the texts of our own messages either. Who the payer
// is stays, as long as they are known.
func Wear(kind string, data json.RawMessage) (json.RawMessage, error) {
	data, err := Blot(kind, data, false)
	if err != nil || kind != Decided {
		return data, err
	}
	var o Outcome
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("read a decision: %w", err)
	}
	for i := range o.Texts {
		o.Texts[i].Text = Blank(o.Texts[i].Text)
	}
	return json.Marshal(o)
}

func redactedTurn(t flow.Turn) flow.Turn {
	if t.Heard != nil {
		heard := *t.Heard
		if heard.Text != "" {
			heard.Text = Blank(heard.Text)
		}
		t.Heard = &heard
	}
	if t.News != nil && t.News.Kind == flow.NewsReply {
		news := *t.News
		news.Reason = Blank(news.Reason)
		t.News = &news
	}
	if t.News != nil && t.News.Payment != nil {
		news, p := *t.News, *t.News.Payment
		p.Payer, p.ResolvedBy, p.ResolvedWhy = flow.PaidBy{}, "", ""
		news.Payment = &p
		t.News = &news
	}
	return t
}

// Blank is what stands for what somebody wrote; of what stands for it already it
// is the same.
func Blank(text string) string {
	if Blotted(text) {
		return text
	}
	return fmt.Sprintf("[%d characters]", utf8.RuneCountInString(text))
}

// blot is what Blank makes.
var blot = regexp.MustCompile(`^\[\d+ characters\]$`)

// Blotted says whether a text is what stands for one that is not kept any more.
func Blotted(text string) bool { return blot.MatchString(text) }

// redactedOutcome is an outcome without what an agent wrote to the payer: a replay
// decides the same blots.
func redactedOutcome(o Outcome) Outcome {
	for i := range o.Says {
		if o.Says[i].Key != SayAgent {
			continue
		}
		o.Says[i].Args = map[string]string{"text": Blank(o.Says[i].Args["text"])}
		if i < len(o.Texts) {
			o.Texts[i].Text = o.Says[i].Args["text"]
		}
	}
	return o
}

// SayAgent is the message that carries what an agent wrote.
const SayAgent = "agent"

// redactedChat names a person by nothing but the chat.
func redactedChat(c flow.Chat) flow.Chat {
	c.Person, c.Phone, c.Name = "", "", ""
	return c
}
