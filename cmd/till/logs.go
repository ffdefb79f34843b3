package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"till/config"
	"till/flow/store"
)

// logsCmd shows what the server logged.
type logsCmd struct {
	config.Settings

	Follow  bool   `short:"f" help:"Go on with what is logged from now on, until Ctrl+C."`
	Level   string `default:"debug" enum:"debug,info,warn,error" help:"Only lines of this level or above."`
	Session string `help:"Only lines that name this session." placeholder:"wsp_sess_…"`
	Find    string `help:"Only lines that hold this text anywhere, as the id of a request or of a chat."`
	Lines   int    `short:"n" default:"200" help:"How many of the last lines to begin with."`
	JSON    bool   `name:"json" help:"The lines as they were logged, one JSON object each."`
}

func (logsCmd) Help() string {
	return "Example:\n\n    till logs -f --level warn\n    till logs --session wsp_sess_01jd… --json\n\n" +
		"A server keeps its log in logs/ of its data dir, the newest 50 MB of it, beside writing it to stderr. --log-level says what is logged at all. " +
		"Processes that share a data dir write to stderr alone."
}

const (
	maxShown   = 100_000
	maxLogLine = 1 << 20
	followEach = 200 * time.Millisecond
)

// begun waits for the first line that is logged, where there is a data dir that
// could have one, or for the end of w's context.
func (c *logsCmd) begun(w *world, path string) error {
	if _, err := os.Stat(c.DataDir); err != nil {
		return nil // that nothing was logged is said to that
	}
	ticker := time.NewTicker(followEach)
	defer ticker.Stop()
	for said := false; ; said = true {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !said {
			if _, err := fmt.Fprintf(w.err, "till: nothing was logged in %s yet; waiting for it\n", c.DataDir); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return nil
		}
	}
}

// Run prints lines, oldest first.
func (c *logsCmd) Run(w *world) error {
	if c.Lines < 0 || c.Lines > maxShown {
		return usageError{fmt.Errorf("--lines is a number from 0 to %d", maxShown)}
	}
	path := under(under(c.DataDir, logsDir), logName)
	if c.Follow {
		if err := c.begun(w, path); err != nil || w.ctx.Err() != nil {
			return err
		}
	}
	if _, err := os.Stat(path); err != nil {
		if store.Unopened(err) {
			return unread("the log", err)
		}
		return fmt.Errorf("nothing was logged in %s yet: %w (is --data-dir right? a server that shares its data dir logs to stderr alone)", c.DataDir, err)
	}
	var last [][]byte
	var at *os.File
	for n := maxFiles - 1; n >= 0; n-- {
		f, err := os.Open(older(path, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		err = c.each(f, func(line []byte) error {
			if last = append(last, bytes.Clone(line)); len(last) > 2*c.Lines+1 {
				last = append(last[:0], last[len(last)-c.Lines:]...)
			}
			return nil
		})
		if n == 0 {
			at = f // read on from here
		} else {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
	}
	for _, line := range last[max(0, len(last)-c.Lines):] {
		if err := c.print(w.out, line); err != nil {
			return err
		}
	}
	if len(last) == 0 && c.Lines > 0 && !c.Follow {
		if _, err := fmt.Fprintf(w.err, "till: no line of the log in %s matched\n", c.DataDir); err != nil {
			return err
		}
	}
	if at == nil {
		return nil
	}
	if !c.Follow {
		return at.Close()
	}
	return c.follow(w, path, at)
}

// each calls do with each line that is asked for. It leaves half a line at the
// end for the next time.
func (c *logsCmd) each(f *os.File, do func([]byte) error) error {
	in := bufio.NewReaderSize(f, maxLogLine)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // no line of ours
		}
		if errors.Is(err, io.EOF) {
			_, err := f.Seek(-int64(len(line)), io.SeekCurrent)
			return err
		}
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); c.wants(line) {
			if err := do(line); err != nil {
				return err
			}
		}
	}
}

// wants says whether a line is asked for.
func (c *logsCmd) wants(line []byte) bool {
	if !bytes.Contains(line, []byte(c.Session)) || !bytes.Contains(line, []byte(c.Find)) {
		return false
	}
	var head struct {
		Level slog.Level `json:"level"`
	}
	var least slog.Level
	if json.Unmarshal(line, &head) != nil || least.UnmarshalText([]byte(c.Level)) != nil {
		return c.Level == "debug" // what is no line of ours has no level
	}
	return head.Level >= least
}

// follow prints what is logged from now on, over the turns of the file.
func (c *logsCmd) follow(w *world, path string, at *os.File) (err error) {
	defer func() { err = errors.Join(err, at.Close()) }()
	ticker := time.NewTicker(followEach)
	defer ticker.Stop()
	show := func(line []byte) error { return c.print(w.out, line) }
	for {
		here, err := at.Stat()
		if err != nil {
			return err
		}
		next, gone := os.Stat(path)
		turned := gone == nil && !os.SameFile(here, next) // before the last lines are read, so that none is missed
		if err := c.each(at, show); err != nil {
			return err
		}
		if turned {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			if err := at.Close(); err != nil {
				return err
			}
			at = f
			continue
		}
		select {
		case <-w.ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// print writes a line: for people, unless it is to stay as it is.
func (c *logsCmd) print(out io.Writer, line []byte) error {
	text := string(line)
	if !c.JSON {
		text = readable(line, coloured(out))
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// readable is a line of the log for people: when, how grave, what, and all else
// as name=value. It may repeat what others wrote: none of that commands a terminal.
func readable(line []byte, colour bool) string {
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return plain(string(line))
	}
	head := map[string]string{}
	var rest strings.Builder
	for in.More() {
		name, err := in.Token()
		var value any
		if err != nil || in.Decode(&value) != nil {
			return plain(string(line))
		}
		text := fmt.Sprint(value)
		switch name {
		case "time", "level", "msg":
			head[fmt.Sprint(name)] = text
		default:
			if strings.ContainsAny(text, ` "`) || plain(text) != text {
				text = fmt.Sprintf("%q", text)
			}
			fmt.Fprintf(&rest, "  %s=%s", plain(fmt.Sprint(name)), text)
		}
	}
	at, err := time.Parse(time.RFC3339Nano, head["time"])
	if err != nil {
		return plain(string(line))
	}
	level := fmt.Sprintf("%-5s", plain(head["level"]))
	if mark := map[string]string{"WARN": "\x1b[33m", "ERROR": "\x1b[31m"}[head["level"]]; colour && mark != "" {
		level = mark + level + "\x1b[0m"
	}
	return at.Format("2006-01-02 15:04:05.000") + "  " + level + "  " + plain(head["msg"]) + rest.String()
}
