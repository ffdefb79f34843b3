package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"till/flow"
)

// tryCmd goes the whole way of one payment.
type tryCmd struct {
	calling

	Wait time.Duration `default:"30s" help:"How long a Till that is just starting is waited for."`
}

func (tryCmd) Help() string {
	return "Example:\n\n    till dev &  till try\n\n" +
		"It opens a session, plays the payer's phone and bank, receives the webhook, has an implementation of Standard Webhooks " +
		"that is not Till's own verify its signature, and tells how long each step took. Test keys only."
}

// The bounds of a trial.
const (
	tryFor   = time.Minute
	tryPoll  = 10 // seconds that a call for the phone's messages waits
	clockOff = 5 * time.Minute
)

// tried is one step of a trial.
type tried struct {
	Step string `json:"step"`
	Ms   int64  `json:"ms"`
	What string `json:"what"`
}

// trial is one payment under way.
type trial struct {
	w     *world
	c     *client
	ctx   context.Context //nolint:containedctx // the trial is its call
	quiet bool

	last  time.Time
	steps []tried

	session, phone, after string
	caught                chan heardWebhook
}

// Run goes the way.
func (c *tryCmd) Run(w *world) error {
	began := time.Now()
	to, err := c.found(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.ctx, tryFor)
	defer cancel()
	t := &trial{w: w, c: to, ctx: ctx, quiet: c.JSON, last: began, caught: make(chan heardWebhook, 64)}
	if err := t.step("ready", "the Till at "+to.base+" is ready"); err != nil {
		return err
	}
	hook, err := t.run()
	if err != nil {
		return fmt.Errorf("after %d steps: %w", len(t.steps), err)
	}
	ended := time.Now()
	took := ended.Sub(began)
	if c.JSON {
		return printJSON(w, map[string]any{
			"verified": true, "ms": took.Milliseconds(), "session": t.session, "steps": t.steps, "webhook": map[string]any{
				"id": hook.Header.Get("Webhook-Id"), "timestamp": hook.Header.Get("Webhook-Timestamp"), "signature": hook.Header.Get("Webhook-Signature"),
				"body": json.RawMessage(hook.Body),
			},
		})
	}
	_, err = fmt.Fprintf(w.out, "\nwebhook-id: %s\nwebhook-timestamp: %s\nwebhook-signature: %s\n\n%s\n\ncharge.success verified after %.1f s.  What happened:  till replay %s\n",
		hook.Header.Get("Webhook-Id"), hook.Header.Get("Webhook-Timestamp"), hook.Header.Get("Webhook-Signature"), hook.Body, took.Seconds(), t.session)
	return err
}

// found waits until there is a Till to try, and a key for it.
func (c *tryCmd) found(w *world) (to *client, err error) {
	err = patiently(w, "still waiting for the Till and a key of it", func() error {
		end := time.Now().Add(c.Wait)
		for {
			to, err = c.pretend()
			if bad := (usageError{}); err == nil {
				err = to.ready(w.ctx)
			} else if !errors.As(err, &bad) || c.keyGiven() {
				return err
			}
			if err == nil || time.Now().After(end) || w.ctx.Err() != nil {
				return err
			}
			select {
			case <-w.ctx.Done():
			case <-time.After(2 * untilEvery):
			}
		}
	})
	return to, err
}

// keyGiven says whether there is a key already: then to wait brings none.
func (c *tryCmd) keyGiven() bool {
	_, err := os.Stat(c.EnvFile)
	return err == nil || os.Getenv("TILL_SECRET_KEY") != ""
}

// ready says whether the Till can serve, its bot too.
func (c *client) ready(ctx context.Context) error {
	status, _, answer, err := c.send(ctx, http.MethodGet, "/readyz", "", nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK || !strings.Contains(string(answer), `"ready"`) {
		return fmt.Errorf("the Till at %s is not ready: %s", c.base, plain(string(answer[:min(len(answer), shownAnswer)])))
	}
	return nil
}

// step notes that a step is done, and says so.
func (t *trial) step(name, what string) error {
	now := time.Now()
	s := tried{name, now.Sub(t.last).Milliseconds(), what}
	t.last, t.steps = now, append(t.steps, s)
	if t.quiet {
		return nil
	}
	_, err := fmt.Fprintf(t.w.out, "%6d ms  %s\n", s.Ms, s.What)
	return err
}

// run goes from the session to the webhook.
func (t *trial) run() (hook heardWebhook, err error) {
	ear, err := t.c.hear(t.ctx, flow.EarOfTry, []string{"charge.success"}, func(_ context.Context, hook heardWebhook) answer {
		select {
		case t.caught <- hook:
			return answer{Status: http.StatusNoContent}
		default:
			return answer{Status: http.StatusServiceUnavailable}
		}
	})
	if err != nil {
		return hook, err
	}
	defer func() { err = errors.Join(err, ear.close(t.ctx)) }()
	if err := t.step("endpoint", "a webhook endpoint listens on this machine: "+ear.ID); err != nil {
		return hook, err
	}
	link, err := t.open()
	if err != nil {
		return hook, err
	}
	defer func() {
		if t.phone != "" {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), parting)
			defer cancel()
			err = errors.Join(err, t.c.call(ctx, http.MethodDelete, at("/v1/test/phones", t.phone), nil, nil))
		}
	}()
	if err := t.talk(link); err != nil {
		return hook, err
	}
	return t.webhook()
}

// open opens a session, and switches on a phone. It returns what the payer's
// link writes.
func (t *trial) open() (link string, err error) {
	var s aSession
	body := usual()
	body["mode"], body["description"] = "chat", "A trial"
	err = t.c.post(t.ctx, sessionsPath, body, &s)
	for refusedWith(err, flow.CodeWhatsAppUnavailable) && t.ctx.Err() == nil { // the bot is a moment away
		select {
		case <-t.ctx.Done():
		case <-time.After(2 * untilEvery):
			err = t.c.post(t.ctx, sessionsPath, body, &s)
		}
	}
	if err != nil {
		return "", err
	}
	t.session = s.ID
	at, err := url.Parse(s.CheckoutURL)
	if err != nil || at.Query().Get("text") == "" {
		return "", fmt.Errorf("the link %q writes nothing", s.CheckoutURL)
	}
	if err := t.step("session", "a session over "+naira(s.AmountMinor)+" is open: "+s.ID); err != nil {
		return "", err
	}
	var phone struct{ Phone string }
	if err := t.c.post(t.ctx, "/v1/test/phones", map[string]string{"pushName": "Ada"}, &phone); err != nil {
		return "", err
	}
	t.phone = phone.Phone
	return at.Query().Get("text"), t.step("phone", "a payer's phone is on the network: "+t.phone)
}

// talk walks the chat and pays.
func (t *trial) talk(link string) error {
	if _, err := t.says(link, `(?s)1 `); err != nil {
		return err
	}
	if err := t.step("menu", "the payer opened the link, and the bot shows how to pay"); err != nil {
		return err
	}
	account, err := t.says("1", `^\d{10}$`)
	if err != nil {
		return err
	}
	if err := t.step("account", "the payer chose bank transfer, and has an account number: "+account); err != nil {
		return err
	}
	if err := t.c.transfers(t.ctx, 1, map[string]any{"accountNumber": account}); err != nil {
		return err
	}
	if err := t.step("paid", "the payer's bank sent the money"); err != nil {
		return err
	}
	if _, err := t.reads(`(?i)receipt`); err != nil {
		return err
	}
	return t.step("receipt", "the payer has a receipt in the chat")
}

// says types a message and waits for one that looks so.
func (t *trial) says(text, pattern string) (string, error) {
	if err := t.c.post(t.ctx, at("/v1/test/phones", t.phone, "messages"), map[string]string{"text": text}, nil); err != nil {
		return "", err
	}
	return t.reads(pattern)
}

// reads waits for a message of the bot that looks so.
func (t *trial) reads(pattern string) (string, error) {
	looks := regexp.MustCompile(pattern)
	var read []string
	for {
		var got struct {
			Items []struct {
				Text   string
				FromMe bool
			}
			NextCursor string
		}
		query := url.Values{"after": {t.after}, "wait": {strconv.Itoa(tryPoll)}}
		if err := t.c.get(t.ctx, at("/v1/test/phones", t.phone, "messages")+"?"+query.Encode(), &got); err != nil {
			return "", fmt.Errorf("the bot did not write what was awaited, but %q: %w", read, err)
		}
		t.after = got.NextCursor
		for _, m := range got.Items {
			if !m.FromMe && looks.MatchString(m.Text) {
				return m.Text, nil
			}
			read = append(read, m.Text)
		}
	}
}

// webhook waits for the session's charge.success and has it verified.
func (t *trial) webhook() (heardWebhook, error) {
	for {
		select {
		case <-t.ctx.Done():
			return heardWebhook{}, fmt.Errorf("no charge.success came: %w", t.ctx.Err())
		case hook := <-t.caught:
			var told struct {
				Event string
				Data  struct{ SessionID string }
			}
			if hook.Forged == nil && json.Unmarshal(hook.Body, &told) == nil && told.Data.SessionID != t.session {
				continue // another payment of the project
			}
			if hook.Forged != nil {
				return hook, fmt.Errorf("the signature does not hold: %w", hook.Forged)
			}
			if err := fresh(hook); err != nil {
				return hook, err
			}
			return hook, t.step("webhook", told.Event+" came, and its signature holds")
		}
	}
}

// fresh says whether a webhook was signed just now: by the real time, as its
// receivers know of no other, wherever the clock of test stands.
func fresh(hook heardWebhook) error {
	seconds, err := strconv.ParseInt(hook.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		return fmt.Errorf("read the webhook's time: %w", err)
	}
	if off := time.Since(time.Unix(seconds, 0)).Abs(); off > clockOff { //nolint:forbidigo // no other clock is meant
		return fmt.Errorf("the webhook was signed %s away from now", off)
	}
	return nil
}
