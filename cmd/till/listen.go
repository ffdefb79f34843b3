package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"till/flow"
)

// listenCmd brings webhooks to a program that is being written.
type listenCmd struct {
	calling

	ForwardTo   string   `placeholder:"URL" help:"Where events go, as http://localhost:3000/hook; without it they are only shown."`
	Events      []string `placeholder:"KIND" help:"Kinds of event, with commas between; without it all but session.*."`
	PrintSecret bool     `help:"Print the signing secret alone on standard output, for a script, and everything else on standard error."`
	SkipVerify  bool     `help:"Do not check the certificate of an https target."`
}

func (listenCmd) Help() string {
	return "Example:\n\n    till listen --forward-to http://localhost:3000/hook\n    till listen --forward-to localhost:3000/hook --events charge.success,charge.late --json\n\n" +
		"It is an endpoint of your project for as long as it runs; one that a kill left behind is taken over by the next. " +
		"The Till gets your program's own answer, so what it refuses is tried again by the Till's schedule. Test keys only."
}

// The bounds of what is shown and followed.
const (
	forwardTime = 14 * time.Second // a second less than the Till waits
	shownAnswer = 300              // bytes of what a target says
	passedOn    = 8 << 10          // bytes of it that the Till hears: more than that keeps, for it judges before it cuts
	followed    = 32               // deliveries whose next try is asked about at once
)

// listener forwards what an ear hears.
type listener struct {
	till   *client
	ear    *ear
	target string
	http   *http.Client
	json   bool

	mu     sync.Mutex
	out    io.Writer
	err    error // of out
	follow chan struct{}
	tasks  sync.WaitGroup
}

// forwarded is what became of one event.
type forwarded struct {
	At            string  `json:"at"`
	ID            string  `json:"id"`
	Event         string  `json:"event"`
	Reference     *string `json:"reference"`
	Verified      bool    `json:"verified"`
	Target        string  `json:"target,omitempty"`
	Status        int     `json:"status"`
	DurationMs    int64   `json:"durationMs"`
	Answer        string  `json:"answer,omitempty"`
	Error         string  `json:"error,omitempty"`
	NextAttemptAt *string `json:"nextAttemptAt"`
}

// Run listens until it is told to stop.
func (c *listenCmd) Run(w *world) error {
	to, err := c.pretend()
	if err != nil {
		return err
	}
	target, err := c.target()
	if err != nil {
		return err
	}
	words := w.out
	if c.PrintSecret || c.JSON {
		words = w.err
	}
	l := &listener{till: to, target: target, json: c.JSON, out: w.out, follow: make(chan struct{}, followed), http: &http.Client{
		Timeout: forwardTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: c.SkipVerify}, //nolint:gosec // --skip-verify asks for it: a certificate of one's own, on one's own machine
		},
	}}
	if c.PrintSecret && !c.JSON {
		l.out = w.err
	}
	opened := make(chan struct{})
	note := flow.EarOfListen
	if target != "" {
		note = "till listen to " + target
	}
	l.ear, err = to.hear(w.ctx, note, c.Events, func(ctx context.Context, hook heardWebhook) answer {
		<-opened
		return l.take(ctx, hook)
	})
	if err != nil {
		return err
	}
	if c.PrintSecret {
		_, err = fmt.Fprintln(w.out, l.ear.Secret)
	}
	_, also := fmt.Fprintf(words, "Ready! %s. Your webhook signing secret is %s (^C to quit)\n", c.doing(target), l.ear.Secret)
	close(opened)
	if err = errors.Join(err, also); err == nil {
		<-w.ctx.Done()
	}
	err = errors.Join(err, l.ear.close(w.ctx))
	l.tasks.Wait()
	return errors.Join(err, l.err)
}

// doing says what is listened to.
func (c *listenCmd) doing(target string) string {
	what := "Test events"
	if len(c.Events) > 0 {
		what = strings.Join(c.Events, ", ")
	}
	if target == "" {
		return what + " are shown here"
	}
	return what + " go to " + target
}

// target is where events go, "" for nowhere.
func (c *listenCmd) target() (string, error) {
	if c.ForwardTo == "" {
		return "", nil
	}
	to := c.ForwardTo
	if !strings.Contains(to, "://") {
		to = "http://" + to
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usageError{fmt.Errorf("--forward-to %q cannot be used: give an address, as http://localhost:3000/hook", c.ForwardTo)}
	}
	return to, nil
}

// take forwards one webhook and answers the Till as the target answered.
func (l *listener) take(ctx context.Context, hook heardWebhook) answer {
	var told struct {
		Event     string
		Reference *string
	}
	f := forwarded{ID: plain(hook.Header.Get("webhook-id")), At: time.Now().Format(time.TimeOnly), Verified: hook.Forged == nil, Target: l.target}
	if hook.Forged != nil { // somebody else on this machine wrote to us
		f.Status, f.Error = http.StatusBadRequest, "it is not from the Till: "+hook.Forged.Error()
		l.show(f)
		return answer{Status: f.Status, Body: []byte("the signature does not hold")}
	}
	if err := json.Unmarshal(hook.Body, &told); err == nil {
		f.Event, f.Reference = plain(told.Event), told.Reference
	}
	if l.target == "" {
		f.Status = http.StatusOK
		l.show(f)
		return answer{Status: f.Status}
	}
	began := time.Now()
	given, err := l.forward(ctx, hook)
	ended := time.Now()
	f.DurationMs = ended.Sub(began).Milliseconds()
	if err != nil {
		f.Error = plain(err.Error())
		given = answer{Status: http.StatusBadGateway, Body: []byte("till listen cannot reach the target")}
	} else {
		f.Status, f.Answer = given.Status, plain(string(given.Body[:min(len(given.Body), shownAnswer)]))
	}
	if given.Status/100 == 2 {
		l.show(f)
		return given
	}
	select {
	case l.follow <- struct{}{}:
		l.tasks.Go(func() { // once the Till has our answer it knows when it tries again
			defer func() { <-l.follow }()
			f.NextAttemptAt = l.next(context.WithoutCancel(ctx), f.ID)
			l.show(f)
		})
	default:
		l.show(f)
	}
	return given
}

// forward posts a webhook to the target as it came.
func (l *listener) forward(ctx context.Context, hook heardWebhook) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.target, bytes.NewReader(hook.Body))
	if err != nil {
		return answer{}, err
	}
	for _, name := range []string{"Content-Type", "User-Agent", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		req.Header[name] = hook.Header[name]
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, passedOn))
	if err != nil {
		return answer{}, err
	}
	given := answer{Status: resp.StatusCode, Header: http.Header{}, Body: body}
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if v, ok := resp.Header[name]; ok {
			given.Header[name] = v
		}
	}
	if given.Status < http.StatusOK { // cannot be passed on
		given.Status = http.StatusBadGateway
	}
	return given, nil
}

// next asks the Till when it tries an event again, nil where it does not or has
// not said within two seconds.
func (l *listener) next(ctx context.Context, event string) *string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for {
		items, _, err := l.till.list(ctx, at(eventsPath, event, "deliveries"), nil, pageSize)
		if err != nil {
			return nil
		}
		var when *string
		err = each(items, func(d aDelivery) error {
			if d.EndpointID == l.ear.ID && len(d.Attempts) > 0 && d.NextAttemptAt != nil && d.NextAttemptAt.After(time.Now()) {
				text := d.NextAttemptAt.Format(time.RFC3339)
				when = &text
			}
			return nil
		})
		if err != nil || when != nil {
			return when
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * untilEvery):
		}
	}
}

// show prints what became of an event.
func (l *listener) show(f forwarded) {
	var b strings.Builder
	if l.json {
		if err := json.NewEncoder(&b).Encode(f); err != nil {
			b.WriteString("{}\n")
		}
	} else {
		f.write(&b, l.ear.Secret)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := io.WriteString(l.out, b.String()); err != nil && l.err == nil {
		l.err = fmt.Errorf("say what came: %w", err)
	}
}

// write prints it for people.
func (f forwarded) write(b *strings.Builder, secret string) {
	status := fmt.Sprint(f.Status)
	if f.Status == 0 {
		status = "---"
	}
	fmt.Fprintf(b, "%s  %s  %4d ms  %-24s %s  %s\n", f.At, status, f.DurationMs, f.Event, f.ID, orDash(f.Reference))
	const inset = "                        "
	if f.Error != "" {
		fmt.Fprintf(b, "%s%s\n", inset, f.Error)
	}
	if f.Status/100 == 2 || !f.Verified {
		return
	}
	if f.Answer != "" {
		fmt.Fprintf(b, "%sthe target says: %s\n", inset, f.Answer)
	}
	if f.Status == http.StatusBadRequest || f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden {
		fmt.Fprintf(b, "%sThe signature is right: has the target the secret whsec_…%s, does it compute over the body\n%sas it came, byte for byte, and is its clock right?\n", inset, secret[max(0, len(secret)-4):], inset)
	}
	if f.NextAttemptAt != nil {
		fmt.Fprintf(b, "%sThe Till tries again at %s\n", inset, *f.NextAttemptAt)
	}
}
