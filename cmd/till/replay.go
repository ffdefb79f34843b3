package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// replayCmd tells a session's story.
type replayCmd struct {
	config.Settings

	Session string `arg:"" help:"Id of the session: wsp_sess_…"`
}

// Help is the command's example.
func (replayCmd) Help() string { return "Example:  till replay wsp_sess_01jd…" }

// wat is West Africa Time, which Lagos keeps all year (UTC+1, no summer time).
var wat = time.FixedZone("WAT", 60*60) //nolint:gochecknoglobals // a constant that Go cannot write as one

// Run prints the session's timeline. It only reads.
func (c *replayCmd) Run(w *world) (err error) {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if c.DatabaseURL == "" {
		if _, err := os.Stat(under(c.DataDir, "test.db")); err != nil {
			return fmt.Errorf("there is nothing to replay in %s: %w (is --data-dir right?)", c.DataDir, err)
		}
	}
	db, err := store.Open(w.ctx, store.Config{Schema: store.Checkout, Dir: c.DataDir, URL: string(c.DatabaseURL), Name: "test"})
	if err != nil {
		return cannotOpen(c.Settings, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	story, err := checkout.Timeline(w.ctx, db.Reader, flow.SessionID(c.Session))
	if err != nil {
		return err
	}
	return printStory(w.out, story)
}

// printStory writes one line a moment; a text of several lines is set in.
func printStory(out io.Writer, story []checkout.Moment) error {
	for _, m := range story {
		what := strings.ReplaceAll(m.What, "\n", "\n"+strings.Repeat(" ", 39))
		line := fmt.Sprintf("%s  %-8s  %s", m.At.In(wat).Format("2006-01-02 15:04:05.000 MST"), m.Who, what)
		if m.Why != "" {
			line += "   (" + m.Why + ")"
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
