package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"till/flow"
)

// sessionsCmd is what a merchant's developer does with sessions.
type sessionsCmd struct {
	Create sessionsCreateCmd `cmd:"" help:"Open a session."`
	List   sessionsListCmd   `cmd:"" default:"withargs" help:"List sessions, newest first."`
	Get    sessionsGetCmd    `cmd:"" help:"Show one session."`
	Watch  sessionsWatchCmd  `cmd:"" help:"Tell what happens in a session while it happens, until it is over."`
	Replay replayCmd         `cmd:"" help:"The same as till replay: tell what happened in a session, line by line, and decide it again."`
	Export sessionsExportCmd `cmd:"" help:"Write all that is known of a session into one JSON file: its events with their deliveries, its payments and refunds and, once it has a charge, that and its story."`
	Cancel sessionsCancelCmd `cmd:"" help:"Cancel a session; money that still comes for it comes late."`
	Expire sessionsExpireCmd `cmd:"" help:"Move the test clock past the end of a session."`
}

const (
	sessionsPath = "/v1/whatsapp/checkout/sessions"
	chargesPath  = "/v1/charges"
	paymentsPath = "/v1/payments"
	refundsPath  = "/v1/refunds"
)

// aSession is what commands read of a session.
type aSession struct {
	ID              string
	Mode            string
	Status          string
	AmountMinor     string
	AmountPaidMinor string
	Exceptions      []string
	Reference       *string
	CustomerEmail   string
	CheckoutURL     string
	ExpiresAt       time.Time
	CreatedAt       string
	PaymentMethods  []aMethod
}

// aMethod is how a session can be paid, or why not.
type aMethod struct{ Method, Status, Reason string }

// state is a method's status, with the reason of one that is unavailable.
func (m aMethod) state() string {
	if m.Reason == "" {
		return m.Status
	}
	return m.Status + " (" + m.Reason + ")"
}

// over says whether nothing more is awaited in the session.
func (s aSession) over() bool {
	return s.Status == string(flow.SessionPaid) || s.Status == string(flow.SessionExpired) || s.Status == string(flow.SessionCancelled)
}

// state is where it stands, with what is remarkable about it.
func (s aSession) state() string {
	return strings.Join(append([]string{s.Status}, s.Exceptions...), " ")
}

// typedKobo is an amount on the command line.
type typedKobo int64

// UnmarshalText reads it. Who writes naira hears what is wanted instead.
func (k *typedKobo) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no amount in whole kobo: 500000 is ₦5,000", text)
	}
	*k = typedKobo(n)
	return nil
}

// sessionsCreateCmd opens a session.
type sessionsCreateCmd struct {
	remote

	Amount      typedKobo         `arg:"" help:"Kobo: 500000 is ₦5,000."`
	Email       string            `default:"ada@example.com" help:"The payer's e-mail address."`
	Chat        bool              `help:"In a WhatsApp chat: the answer has a link for the payer."`
	Reference   string            `help:"Your own reference; one for ever."`
	Description string            `help:"What it is for; the payer reads it."`
	Methods     []string          `placeholder:"METHOD" help:"Ways to pay, with commas between: bank_transfer, ussd, card."`
	Expires     time.Duration     `help:"How long it is open: 5m to 168h." placeholder:"24h"`
	Metadata    map[string]string `help:"Your own notes, as order=1182;shop=Yaba." placeholder:"K=V"`
}

func (sessionsCreateCmd) Help() string {
	return "Example:\n\n    till sessions create 500000 --chat --reference order-1182"
}

// Run opens it.
func (c *sessionsCreateCmd) Run(w *world) error {
	if c.Expires%time.Minute != 0 {
		return usageError{fmt.Errorf("--expires is in whole minutes, not %s", c.Expires)}
	}
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	body := map[string]any{"amount": c.Amount, "customerEmail": c.Email}
	if c.Chat {
		body["mode"] = string(flow.InChat)
	}
	for name, value := range map[string]string{"reference": c.Reference, "description": c.Description} {
		if value != "" {
			body[name] = value
		}
	}
	if len(c.Methods) > 0 {
		body["allowedMethods"] = c.Methods
	}
	if c.Expires != 0 {
		body["expiresInMinutes"] = int64(c.Expires / time.Minute)
	}
	if len(c.Metadata) > 0 {
		body["metadata"] = c.Metadata
	}
	var made json.RawMessage
	if err := to.post(w.ctx, sessionsPath, body, &made); err != nil {
		return err
	}
	return c.show(w, made)
}

// show prints a session.
func (r *remote) show(w *world, raw json.RawMessage) error {
	if r.JSON {
		return printJSON(w, raw)
	}
	var s aSession
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("read a session: %w", err)
	}
	out := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(out, "session\t%s\nstatus\t%s\namount\t%s\npaid\t%s\nmode\t%s\nreference\t%s\ne-mail\t%s\ncreated\t%s\nexpires\t%s\n", s.ID, s.state(), naira(s.AmountMinor),
		naira(s.AmountPaidMinor), s.Mode, orDash(s.Reference), plain(s.CustomerEmail), s.CreatedAt, flow.Stamp(s.ExpiresAt))
	for _, m := range s.PaymentMethods {
		_, _ = fmt.Fprintf(out, "%s\t%s\n", m.Method, m.state())
	}
	if s.CheckoutURL != "" {
		_, _ = fmt.Fprintf(out, "link\t%s\n", s.CheckoutURL)
	}
	return out.Flush()
}

// naira is an amount of the API as people read it.
func naira(minor string) string {
	var k flow.Kobo
	if _, err := fmt.Sscan(minor, &k); err != nil {
		return minor
	}
	return k.Naira()
}

// orDash is a text that may not be there.
func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return cmp.Or(plain(*s), "-")
}

// listed is how much of a list is asked for.
type listed struct {
	Limit int `default:"20" help:"How many at most: 1 to 10000."`
}

// maxListed bounds what one command lists.
const maxListed = 10_000

// ask reads a list: of what has the values that are given, of the last while where
// one is, and of what keep wants, which is nil for all.
func (l listed) ask(
	w *world, r *remote, path string, fields map[string]string, while time.Duration, keep func(json.RawMessage) (bool, error),
) (items []json.RawMessage, more bool, err error) {
	if l.Limit < 1 || l.Limit > maxListed {
		return nil, false, usageError{fmt.Errorf("--limit is 1 to %d", maxListed)}
	}
	to, err := r.dial(w)
	if err != nil {
		return nil, false, err
	}
	query := url.Values{}
	for name, value := range fields {
		if value != "" {
			query.Set(name, value)
		}
	}
	if while != 0 {
		query.Set("createdAfter", to.since(w, while))
	}
	if keep == nil {
		return to.list(w.ctx, path, query, l.Limit)
	}
	err = patiently(w, "still looking", func() (err error) {
		items, more, err = to.pick(w.ctx, path, query, l.Limit, keep)
		return err
	})
	return items, more, err
}

// sessionsListCmd lists sessions.
type sessionsListCmd struct {
	remote
	listed

	Status    string        `help:"Only those: PENDING, PROCESSING, PAID, EXPIRED or CANCELLED."`
	Reference string        `help:"Only that with this reference of yours."`
	Email     string        `help:"Only those of this payer."`
	Since     time.Duration `help:"Only those made in the last while, as 2h." placeholder:"2h"`
}

func (sessionsListCmd) Help() string {
	return "Example:\n\n    till sessions list --status PAID --since 2h"
}

// Run prints one line for each.
func (c *sessionsListCmd) Run(w *world) error {
	items, more, err := c.ask(w, &c.remote, sessionsPath, map[string]string{"status": c.Status, "reference": c.Reference, "customerEmail": c.Email}, c.Since, nil)
	if err != nil {
		return err
	}
	return c.print(w, items, more, c.JSON, "SESSION\tSTATUS\tAMOUNT\tPAID\tREFERENCE\tE-MAIL\tCREATED", func(item json.RawMessage) (string, error) {
		var s aSession
		err := json.Unmarshal(item, &s)
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", s.ID, s.state(), naira(s.AmountMinor), naira(s.AmountPaidMinor), orDash(s.Reference), plain(s.CustomerEmail), s.CreatedAt), err
	})
}

// since is the moment a while ago, by the clock of the key's environment.
func (c *client) since(w *world, ago time.Duration) string {
	now := time.Now()
	if strings.HasPrefix(c.key, testKey) {
		if at, err := c.clock(w.ctx, 0); err == nil {
			now = at
		}
	}
	return flow.Stamp(now.Add(-ago))
}

// print prints a list: as JSON, or one line for each thing under a heading.
func (l listed) print(w *world, items []json.RawMessage, more, asJSON bool, heading string, line func(json.RawMessage) (string, error)) error {
	if asJSON {
		return printJSON(w, struct {
			Items   []json.RawMessage `json:"items"`
			HasMore bool              `json:"hasMore"`
		}{items, more})
	}
	out := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, heading)
	for _, item := range items {
		text, err := line(item)
		if err != nil {
			return fmt.Errorf("read what the Till listed: %w", err)
		}
		_, _ = fmt.Fprintln(out, text)
	}
	if err := out.Flush(); err != nil || !more {
		return err
	}
	_, err := fmt.Fprintf(w.err, "till: there are more than %d (see --limit)\n", l.Limit)
	return err
}

// sessionsGetCmd shows a session.
type sessionsGetCmd struct {
	remote

	Session string `arg:"" help:"Id of the session: wsp_sess_…"`
}

func (sessionsGetCmd) Help() string { return "Example:\n\n    till sessions get wsp_sess_01jd…" }

// Run shows it.
func (c *sessionsGetCmd) Run(w *world) error {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := to.get(w.ctx, at(sessionsPath, c.Session), &raw); err != nil {
		return err
	}
	return c.show(w, raw)
}

// at is the path of a thing, whatever its name holds.
func at(path string, id string, more ...string) string {
	return strings.Join(append([]string{path, url.PathEscape(id)}, more...), "/")
}

// sessionsCancelCmd cancels a session.
type sessionsCancelCmd struct {
	remote

	Session string `arg:"" help:"Id of the session: wsp_sess_…"`
	Yes     bool   `help:"Really: it cannot be undone."`
}

func (sessionsCancelCmd) Help() string {
	return "Example:\n\n    till sessions cancel wsp_sess_01jd… --yes"
}

// Run cancels it.
func (c *sessionsCancelCmd) Run(w *world) error {
	if !c.Yes {
		return errNeedsYes("to cancel a session")
	}
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := to.post(w.ctx, at(sessionsPath, c.Session, "cancel"), nil, &raw); err != nil {
		return err
	}
	return c.show(w, raw)
}
