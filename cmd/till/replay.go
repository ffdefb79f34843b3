package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
)

// replayCmd tells what happened in a conversation, and decides it again.
type replayCmd struct {
	environment

	What   string `arg:"" optional:"" help:"A session (wsp_sess_…), a chat (chat_…) or a file that --export wrote."`
	Verify bool   `help:"Decide every turn again and compare states, effects and texts. Exits with 1 where anything differs."`
	At     *int64 `placeholder:"LINE" help:"Show how things stood after this line of the log: state, live instructions, the payer's screen."`
	Text   bool   `help:"Print the conversation alone, for a bank or a merchant."`
	Export string `placeholder:"FILE" help:"Write the conversation into a file that can be replayed anywhere; - for standard output."`
	Import string `placeholder:"FILE" help:"Replay a file that --export wrote."`
	Whole  bool   `help:"With --export, keep who the payer is and what they wrote."`
}

// Help is the command's examples.
func (replayCmd) Help() string {
	return `Examples:
  till replay wsp_sess_01jd…                      # everything that happened, line by line
  till replay wsp_sess_01jd… --verify             # decide it again and compare
  till replay wsp_sess_01jd… --at 14              # how it stood after line 14
  till replay wsp_sess_01jd… --export talk.jsonl  # a file without who the payer is
  till replay --import talk.jsonl --verify        # the same, from the file alone`
}

// errDiffers ends a verification that found something.
var errDiffers = errors.New("the replay differs from what was recorded")

// Run reads, and writes nothing but what --export names.
func (c *replayCmd) Run(w *world) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if err := c.sound(); err != nil {
		return usageError{err}
	}
	if c.Import != "" {
		return c.fromFile(w)
	}
	return c.fromStore(w)
}

// sound refuses what cannot be asked for together.
func (c *replayCmd) sound() error {
	if strings.HasSuffix(c.What, ".jsonl") && c.Import == "" {
		c.What, c.Import = "", c.What
	}
	if (c.What == "") == (c.Import == "") {
		return errors.New("name one session, chat or file")
	}
	asked := 0
	for _, is := range []bool{c.Verify, c.At != nil, c.Text, c.Export != ""} {
		if is {
			asked++
		}
	}
	if asked > 1 {
		return errors.New("--verify, --at, --text and --export are asked for one at a time")
	}
	if c.Whole && c.Export == "" {
		return errors.New("--whole is for --export")
	}
	return nil
}

// fromFile replays a file.
func (c *replayCmd) fromFile(w *world) (err error) {
	file, err := os.Open(c.Import)
	if err != nil {
		return fmt.Errorf("open the recording: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	rec, _, err := replay.Import(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.Import, err)
	}
	return c.replay(w, []replay.Recording{rec}, func() ([]checkout.Moment, error) { return checkout.Tell(rec), nil })
}

// fromStore replays what is kept.
func (c *replayCmd) fromStore(w *world) error {
	return c.beside(w, "there is nothing to replay", func(db *store.DB) error {
		session, chat := c.session(), flow.ChatID("")
		if session == "" {
			chat = flow.ChatID(c.What)
		}
		list, err := checkout.Recordings(w.ctx, db.Reader, session, chat)
		if err != nil {
			return err
		}
		return c.replay(w, list, func() ([]checkout.Moment, error) {
			if chat != "" {
				return checkout.Tell(list[0]), nil
			}
			return checkout.Timeline(w.ctx, db.Reader, session)
		})
	})
}

// replay does what was asked for with the chats of a conversation.
func (c *replayCmd) replay(w *world, list []replay.Recording, tell func() ([]checkout.Moment, error)) error {
	if len(list) == 0 && (c.Verify || c.At != nil || c.Text || c.Export != "") {
		return errors.New("nobody has opened this session in a chat: there is no conversation to replay")
	}
	switch {
	case c.Verify:
		return c.verify(w, list)
	case c.JSON && c.Export == "":
		return c.asJSON(w, list, tell)
	case c.At != nil:
		return c.each(list, func(r replay.Recording) error { return printMoment(w.out, r, *c.At) })
	case c.Text:
		return c.each(list, func(r replay.Recording) error { return printConversation(w.out, r, c.session()) })
	case c.Export != "":
		return c.export(w, list)
	}
	story, err := tell()
	if err != nil {
		return err
	}
	return printStory(w.out, story)
}

// session is the session that was named, "" where a chat or a file was.
func (c *replayCmd) session() flow.SessionID {
	if strings.HasPrefix(c.What, flow.PrefixChat) {
		return ""
	}
	return flow.SessionID(c.What)
}

func (c *replayCmd) each(list []replay.Recording, do func(replay.Recording) error) error {
	for _, r := range list {
		if err := do(r); err != nil {
			return err
		}
	}
	return nil
}

// verify decides every turn again.
func (c *replayCmd) verify(w *world, list []replay.Recording) error {
	words, err := bot.LoadWords()
	if err != nil {
		return err
	}
	differs, all := false, []reportJSON{}
	for _, r := range list {
		report, err := replay.Verify(r, words.Render)
		if err != nil {
			return fmt.Errorf("replay chat %s: %w", r.Chat, err)
		}
		differs = differs || report.Worst() != replay.Same
		if c.JSON {
			all = append(all, recordReport(report))
			continue
		}
		if err := printReport(w.out, report, words.Version()); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := printJSON(w, all); err != nil {
			return err
		}
	}
	if differs {
		return errDiffers
	}
	return nil
}

// export writes one chat into a file.
func (c *replayCmd) export(w *world, list []replay.Recording) (err error) {
	if len(list) > 1 {
		var chats []string
		for _, r := range list {
			chats = append(chats, string(r.Chat))
		}
		slices.Sort(chats)
		return usageError{fmt.Errorf("this session was opened in %d chats, export one: %s", len(chats), strings.Join(chats, ", "))}
	}
	rec := list[0]
	if !c.Whole {
		if rec, err = replay.Redact(rec); err != nil {
			return err
		}
	}
	if c.Export == "-" {
		return replay.Export(w.out, rec, !c.Whole)
	}
	file, err := os.OpenFile(c.Export, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := replay.Export(file, rec, !c.Whole); err != nil {
		return err
	}
	return printDone(w, c.JSON, map[string]any{"chat": rec.Chat, "lines": len(rec.Lines), "file": c.Export},
		"%d lines of chat %s are in %s. Replay them with:  till replay --import %s --verify\n", len(rec.Lines), rec.Chat, c.Export, c.Export)
}
