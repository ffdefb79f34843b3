package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
)

// The bounds of a session's page.
const (
	storyShown  = 300 // moments: the newest
	eventsShown = 50
	actsShown   = 20 // about each thing
	rawShown    = 16 << 10
	liveAgain   = time.Second
)

// sessionView is what the page of a session is given.
type sessionView struct {
	Story  storyView
	CSRF   string
	Shown  bool // the payer's whole phone number
	Wrong  string
	Note   string // as it was typed
	Reason string

	Transfer, SentAt string             // of a refund that was paid by hand, as they were typed
	Asked            map[string]*asking // what waits for a second person, by payment or refund
	Above            flow.Kobo          // beyond which a second person has to agree
	Barred           bool               // its project gets nothing new here
	Export           []store.ChatRow    // chats that can be exported
	Command          string
	Base             string // of calls over REST
}

// storyView is the part of the page that is live.
type storyView struct {
	Session  flow.Session
	Record   flow.SessionRecord
	Back     string // what is said of money that went back
	Project  string
	Attempts []flow.Attempt
	Payments []paymentRow
	Refunds  []flow.Refund
	Settled  []flow.SettlementShare
	Chats    []store.ChatRow
	Timers   []checkout.Timer
	Held     []string // what is said of webhooks whose endpoint is not sent them now
	Events   []eventRow
	Moments  []momentRow
	Cut      bool // there are older ones
}

// paymentRow is money that came.
type paymentRow struct {
	flow.Payment

	Waits  bool      // for somebody's decision
	Given  flow.Kobo // to the merchant, where it is accepted
	Back   flow.Kobo // of what is accepted with it, to who paid it
	Answer string    // what the payer can be told, in their language
}

// Retryable are the refunds that can be sent once more: not those whose money went
// another way since.
func (s storyView) Retryable() []flow.Refund {
	return slices.DeleteFunc(slices.Clone(s.Refunds), func(r flow.Refund) bool {
		i := slices.IndexFunc(s.Payments, func(p paymentRow) bool { return p.ID == r.Payment })
		if i < 0 {
			return true
		}
		_, err := r.Retry(s.Session, s.Payments[i].Payment, flow.Ruled{})
		return err != nil
	})
}

// eventRow is an event and what became of it.
type eventRow struct {
	flow.Event

	Sent []store.Sent
}

// momentRow is one line of the timeline.
type momentRow struct {
	checkout.Moment

	Text string // what is kept of it, "" for no more than its words
	Mark string // names it on the page: what a reader has opened of it stays open
}

// sessionPage is GET /sessions/{id}.
func (c *Console) sessionPage(v *visit) error { return c.showSession(v, sessionView{}) }

func (c *Console) showSession(v *visit, out sessionView) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	if out.Story, err = c.story(v.ctx, v.service, v.who, s.ID); err != nil {
		return err
	}
	if out.Asked, err = c.asked(v, s); err != nil {
		return err
	}
	out.Story.Project, out.Above = v.projectName(s.Project), v.service.SecondAbove()
	v.looks("look.session", s.Project, string(s.ID))
	out.Barred = v.barred(s.Project)
	out.CSRF, out.Export = v.csrf(), out.Story.Chats
	out.Command, out.Base = "bin/till replay "+string(s.ID), c.cfg.PublicURL
	return v.show("session", "Session "+nameOf(s), out)
}

// liveSession is GET /sessions/{id}/live.
func (c *Console) liveSession(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	v.looks("look.session", s.Project, string(s.ID)) // also of a page that stays open for hours
	service, who, name := v.service, v.who, v.projectName(s.Project)
	var last []byte
	var read time.Time
	return v.live(func(ctx context.Context) ([]byte, error) {
		if now := c.cfg.Real(); now.Sub(read) >= liveAgain {
			read = now
			story, err := c.story(ctx, service, who, s.ID)
			if err != nil {
				return nil, err
			}
			story.Project = name
			if last, err = v.part("session", "story", story); err != nil {
				return nil, err
			}
		}
		return last, nil
	})
}

// story reads all that belongs to a session, what was paid and what came of it at one
// moment.
func (c *Console) story(ctx context.Context, service *checkout.Service, who flow.Visit, id flow.SessionID) (storyView, error) {
	s, err := service.Reader().Session(ctx, id)
	if err != nil {
		return storyView{}, err
	}
	var out storyView
	var moments []checkout.Moment
	var endpoints []flow.Endpoint
	seen, err := service.Seen(ctx, s.Project, id, func(r store.Reader) (err error) {
		if out.Refunds, err = r.Refunds(ctx, store.RefundFilter{Project: s.Project, Session: id, Limit: eventsShown}); err != nil {
			return err
		}
		if out.Settled, err = r.Settled(ctx, id); err != nil {
			return err
		}
		if out.Chats, err = r.Watchers(ctx, id); err != nil {
			return err
		}
		events, err := r.EventsOf(ctx, id, eventsShown)
		if err != nil {
			return err
		}
		for _, e := range events {
			row := eventRow{Event: e}
			if row.Sent, err = r.Deliveries(ctx, e.ID, "", eventsShown, 1); err != nil {
				return err
			}
			out.Events = append(out.Events, row)
		}
		if endpoints, err = r.Endpoints(ctx, s.Project); err != nil {
			return err
		}
		moments, err = checkout.Timeline(ctx, r, id)
		return err
	})
	if err != nil {
		return storyView{}, err
	}
	view := seen.View
	out.Session, out.Record, out.Attempts, out.Timers = view.Session, service.Record(view), view.Attempts, seen.Timers
	out.Back, out.Payments = wentBack(view.Session, view.Payments), paymentRows(seen)
	for i, chat := range out.Chats {
		w, err := service.DeskChat(ctx, s.Project, chat.ID)
		if err != nil {
			return out, err
		}
		out.Chats[i].Desk, out.Chats[i].Flag = w.Desk, w.Flag // none of what another merchant is asked
	}
	for _, e := range out.Events {
		for _, d := range e.Sent {
			if d.State == flow.DeliveryPending && !d.Next.IsZero() {
				out.Timers = append(out.Timers, checkout.Timer{At: d.Next, What: fmt.Sprintf("%s is sent to %s", e.Kind, flow.HostOf(d.URL)), Tries: d.Count})
			}
		}
	}
	slices.SortStableFunc(out.Timers, func(a, b checkout.Timer) int { return a.At.Compare(b.At) })
	out.Held = held(endpoints, out.Events)
	return c.withMoments(ctx, service, who, out, moments)
}

// held says which webhooks wait for an endpoint that is held back or disabled, and why:
// when they go out no timer knows, and who reads of none is not to think that nothing does.
func held(endpoints []flow.Endpoint, events []eventRow) (list []string) {
	for _, e := range endpoints {
		var kinds []string
		for _, event := range slices.Backward(events) { // oldest first
			if slices.ContainsFunc(event.Sent, func(d store.Sent) bool { return d.Endpoint == e.ID && d.State == flow.DeliveryHeld }) {
				kinds = append(kinds, string(event.Kind))
			}
		}
		if row := (endpointRow{Endpoint: e}); len(kinds) > 0 {
			list = append(list, fmt.Sprintf("once %s takes webhooks again: %s. It is %s: %s", flow.HostOf(e.URL), strings.Join(kinds, ", "), row.State(), row.Why()))
		}
	}
	return list
}

// withMoments adds the timeline: what the program knows, the notes, and what
// people of the visitor's account did here.
func (c *Console) withMoments(ctx context.Context, service *checkout.Service, who flow.Visit, out storyView, moments []checkout.Moment) (storyView, error) {
	id := out.Session.ID
	moments, end := moments[:len(moments)-1], moments[len(moments)-1] // how it stands
	notes, err := service.Notes(ctx, out.Session.Project, id)
	if err != nil {
		return out, err
	}
	for _, n := range notes {
		moments = append(moments, checkout.Moment{At: n.At, Who: "note", What: n.Text, Why: n.Author})
	}
	subjects := []string{string(id)}
	for _, p := range out.Payments[:min(len(out.Payments), actsShown)] {
		subjects = append(subjects, string(p.ID))
	}
	for _, r := range out.Refunds[:min(len(out.Refunds), actsShown)] {
		subjects = append(subjects, string(r.ID))
	}
	for _, e := range out.Events[:min(len(out.Events), actsShown)] {
		subjects = append(subjects, string(e.ID))
	}
	for _, subject := range subjects {
		list, _, err := c.cfg.Accounts.Audits(ctx, store.AuditFilter{Account: who.Account, Subject: subject, Limit: actsShown})
		if err != nil {
			return out, err
		}
		for _, a := range slices.Backward(list) { // oldest first, also of one moment
			moments = append(moments, checkout.Moment{At: a.At, Who: "console", What: a.Action, Why: a.Actor + ": " + a.Reason, Told: checkout.ToldAct(a)})
		}
	}
	slices.SortStableFunc(moments, func(a, b checkout.Moment) int { return a.At.Compare(b.At) })
	if n := len(moments); n > 0 && moments[n-1].At.After(end.At) { // also after what people did since
		end.At = moments[n-1].At
	}
	moments = append(moments, end)
	if out.Cut = len(moments) > storyShown; out.Cut {
		moments = moments[len(moments)-storyShown:]
	}
	at := map[int64]int{} // how many there are at the same time
	for _, m := range moments {
		if strings.HasPrefix(m.What, "rail.") { // a call to the bank, or its answer
			m.Who = "rail"
		}
		micros := m.At.UnixMicro()
		at[micros]++
		out.Moments = append(out.Moments, momentRow{m, pretty(m.Raw), fmt.Sprintf("at-%d-%d", micros, at[micros])})
	}
	return out, nil
}

// paymentRows are a session's payments.
func paymentRows(seen checkout.Seen) (rows []paymentRow) {
	for _, p := range seen.Payments {
		row := paymentRow{Payment: p, Waits: p.Decidable(seen.Session), Answer: seen.Answers[p.ID]}
		row.Given, row.Back = flow.Accepting(flow.Money{Session: seen.Session, Payments: seen.Payments}, p)
		rows = append(rows, row)
	}
	return rows
}

// pretty is JSON for people, cut where it is very long.
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		out.Reset()
		_, _ = out.Write(raw) // a buffer takes everything
	}
	if out.Len() > rawShown {
		return masked(string(bytes.ToValidUTF8(out.Bytes()[:rawShown], nil))) + "\n… cut: it is longer"
	}
	return masked(out.String())
}

// exportSession is GET /sessions/{id}/export: the conversation as a file, without
// who the payer is.
func (c *Console) exportSession(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	rec, err := v.service.Exported(v.ctx, s.Project, s.ID, flow.ChatID(v.query("chat")))
	if err != nil {
		return err
	}
	if err := v.auditIn(s.Project, "session.export", string(rec.Chat), "", false); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := replay.Export(&out, rec, true); err != nil {
		return err
	}
	v.http.Set("Content-Type", "application/x-ndjson; charset=utf-8")
	v.http.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", string(rec.Chat)+".jsonl"))
	return v.http.Send(out.Bytes())
}

// nameOf is what a session is called where its page is one of many tabs: the merchant's
// reference, or its id.
func nameOf(s flow.Session) string { return cmp.Or(s.Reference, string(s.ID)) }
