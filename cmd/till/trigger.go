package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"till/flow"
)

// triggerCmd makes an event happen.
type triggerCmd struct {
	calling

	Event    string            `arg:"" optional:"" help:"Its kind, as charge.success; without it all kinds are listed."`
	Override map[string]string `placeholder:"K=V" help:"A field of what is made first, as amount=250000 or 'metadata={\"order\":\"7\"}'; may be given again." mapsep:"none"`
}

func (triggerCmd) Help() string {
	return "Example:\n\n    till trigger charge.success\n    till trigger charge.underpaid --override amount=250000 --override reference=order-7\n\n" +
		"What the event tells of is really made, through the API and the sandbox bank, so that everything else that belongs to it happens too. " +
		"Events about time move the test clock, those about failures set the bank's conditions, and leave it well. Test keys only."
}

// Run makes it happen, and prints what was made.
func (c *triggerCmd) Run(w *world) error {
	if c.Event == "" {
		return c.kinds(w)
	}
	do, known := scenes()[flow.EventKind(c.Event)]
	if !known {
		near := nearestOf(c.Event, flow.EventKinds())
		if near != "" {
			near = fmt.Sprintf(", did you mean %q?", near)
		}
		return usageError{fmt.Errorf("there is no event %q%s (till trigger lists them)", c.Event, near)}
	}
	over, err := overrides(c.Override)
	if err != nil {
		return err
	}
	to, err := c.pretend()
	if err != nil {
		return err
	}
	s := &scene{w: w, c: to, over: over}
	event, err := s.play(flow.EventKind(c.Event), do)
	if err != nil {
		return err
	}
	if len(s.over) > 0 {
		_, err = fmt.Fprintln(w.err, "till: nothing of this event takes an override")
	}
	if c.JSON {
		return errors.Join(err, printJSON(w, map[string]any{"event": event, "made": s.made}))
	}
	for _, m := range s.made {
		_, _ = fmt.Fprintf(w.out, "%-11s %s\n", m.Kind, m.ID)
	}
	_, also := fmt.Fprintf(w.out, "%-11s %s  %s\n", "event", event.ID, event.Event)
	return errors.Join(err, also)
}

// kinds lists what can happen.
func (c *triggerCmd) kinds(w *world) error {
	if c.JSON {
		return printJSON(w, flow.EventKinds())
	}
	for _, kind := range flow.EventKinds() {
		if _, err := fmt.Fprintln(w.out, kind); err != nil {
			return err
		}
	}
	return nil
}

// overrides reads values as JSON where they are, and as texts where not.
func overrides(given map[string]string) (map[string]any, error) {
	over := map[string]any{}
	for name, text := range given {
		if name == "" {
			return nil, usageError{errors.New("--override is name=value")}
		}
		over[name] = text
		if json.Valid([]byte(text)) {
			over[name] = json.RawMessage(text)
		}
	}
	return over, nil
}

// madeThing is what a scene made, by its id.
type madeThing struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// scene plays what makes one event happen.
type scene struct {
	w       *world
	c       *client
	over    map[string]any // what the first body gets; nil once it has it
	made    []madeThing
	session string
	left    []func() error // what is put back at the end
}

// play makes an event happen and waits for it.
func (s *scene) play(kind flow.EventKind, do func(*scene) error) (event anEvent, err error) {
	before, err := s.newest(kind)
	if err != nil {
		return event, err
	}
	defer func() {
		for _, put := range slices.Backward(s.left) {
			err = errors.Join(err, put())
		}
	}()
	if strings.HasPrefix(string(kind), "session.") { // which are for those alone who ask for them
		e, err := s.c.hear(s.w.ctx, flow.EarOfTrigger, []string{string(kind)}, func(context.Context, heardWebhook) answer { return answer{Status: http.StatusNoContent} })
		if err != nil {
			return event, err
		}
		s.left = append(s.left, func() error { return e.close(s.w.ctx) })
	}
	if err := patiently(s.w, "still making it happen", func() error { return do(s) }); err != nil {
		return event, err
	}
	err = s.c.until(s.w, "the event", func() (bool, error) {
		event, err = s.newest(kind)
		return event.ID != "" && event.ID != before.ID, err
	})
	return event, err
}

// newest is the newest event of a kind, of the scene's session if it has one and
// the event is about one.
func (s *scene) newest(kind flow.EventKind) (e anEvent, err error) {
	query := url.Values{"type": {string(kind)}}
	if s.session != "" {
		query.Set("sessionId", s.session)
	}
	items, _, err := s.c.list(s.w.ctx, eventsPath, query, 1)
	if err != nil || len(items) == 0 {
		return e, err
	}
	err = json.Unmarshal(items[0], &e)
	return e, err
}

// post posts a body, the first with what is overridden in it.
func (s *scene) post(path string, body map[string]any, into any) error {
	maps.Copy(body, s.over)
	s.over = nil
	return s.c.post(s.w.ctx, path, body, into)
}

// note remembers what was made.
func (s *scene) note(kind, id string) { s.made = append(s.made, madeThing{kind, id}) }
