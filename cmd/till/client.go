package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"till/api"
	"till/config"
	"till/flow"
)

// calling is how a command reaches a Till over its API: where it is, and with
// which secret key.
type calling struct {
	URL     string `name:"url" env:"TILL_URL" placeholder:"URL" help:"Address of the Till; without it the one in --env-file, or http://127.0.0.1:8080."`
	EnvFile string `name:"env-file" default:".env.till" placeholder:"FILE" help:"File with TILL_URL and TILL_SECRET_KEY, for where these variables are not set. till dev writes it."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// remote is calling for commands that work with test keys and live ones.
type remote struct {
	calling

	Live bool `help:"Needed with a live key: it is about real money."`
}

// The bounds of a call.
const (
	callTime    = 90 * time.Second // a bank may be slow, and is waited for
	maxAnswer   = 16 << 20
	maxEnvFile  = 64 << 10
	limitedFor  = 5 * time.Second // the longest that a full bucket is waited for
	limitedTry  = 5
	standardURL = "http://127.0.0.1:8080"
)

// client calls the API of a Till.
type client struct {
	base, key string
	http      *http.Client
}

// dial reaches the Till with a key that may be live. What is live is said.
func (r *remote) dial(w *world) (*client, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	if err := mayUse(c.key, r.Live); err != nil {
		return nil, err
	}
	if !r.Live {
		return c, nil
	}
	var project struct{ ID, Name string }
	if err := c.get(w.ctx, "/v1/project", &project); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(w.err, "till: live, project %s (%s)\n", plain(project.Name), project.ID)
	return c, err
}

// pretend reaches the Till for what only test keys may do.
func (r *calling) pretend() (*client, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	return c, testOnly(c.key)
}

// client finds out where the Till is and with which key it is called.
func (r *calling) client() (*client, error) {
	kept, err := readEnvFile(r.EnvFile)
	if err != nil {
		return nil, err
	}
	c := &client{base: cmp.Or(r.URL, kept["TILL_URL"], standardURL), key: keyAtHand(kept), http: loopbackClient()}
	c.base = strings.TrimSuffix(c.base, "/")
	at, err := url.Parse(c.base)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, usageError{fmt.Errorf("--url %q cannot be used: give an http:// address", c.base)}
	}
	if c.key == "" {
		return nil, usageError{fmt.Errorf("there is no secret key: set TILL_SECRET_KEY, or go where %s is (till dev writes it)", r.EnvFile)}
	}
	if strings.HasPrefix(c.key, liveKey) && at.Scheme == "http" && !c.local() {
		return nil, refusedError{fmt.Errorf("a live key is not sent over plain http to %s", at.Host)}
	}
	return c, nil
}

// keyAtHand is the key of the environment, or that of the file of keys. A line's end that
// was copied with it is no part of it.
func keyAtHand(kept map[string]string) string {
	return cmp.Or(strings.TrimSpace(os.Getenv("TILL_SECRET_KEY")), kept["TILL_SECRET_KEY"])
}

// readEnvFile reads lines as NAME=value; a file that is not there has none.
func readEnvFile(name string) (map[string]string, error) {
	kept := map[string]string{}
	text, err := readPlain(name, maxEnvFile)
	if errors.Is(err, os.ErrNotExist) {
		return kept, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the keys of %s: %w", name, err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		kept[strings.TrimPrefix(name, "export ")] = strings.Trim(value, `"'`)
	}
	return kept, nil
}

// local says whether the Till is on this machine.
func (c *client) local() bool { return config.OnThisMachine(c.base) }

// get reads what is at a path into a value.
func (c *client) get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// post makes a call with a body, nil for none, and reads its answer.
func (c *client) post(ctx context.Context, path string, body, into any) error {
	return c.call(ctx, http.MethodPost, path, body, into)
}

// call makes one call. What the answer holds as data is read into a value, which
// may be nil. A call that makes something has a key of its own, so that it is made
// once. Errors: *apiError for what the Till refuses.
func (c *client) call(ctx context.Context, method, path string, body, into any) error {
	if err := checkIDs(path); err != nil {
		return err
	}
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("write the body of %s %s: %w", method, path, err)
		}
	}
	once := rand.Text()
	for try := 1; ; try++ {
		status, header, answer, err := c.send(ctx, method, path, once, sent)
		if err != nil {
			return err
		}
		if status == http.StatusTooManyRequests && try < limitedTry {
			if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && time.Duration(seconds)*time.Second <= limitedFor {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Duration(seconds) * time.Second):
				}
				continue
			}
		}
		return byReference(path, c.read(status, answer, into))
	}
}

// byReference adds to what was refused of a session how one is found by its merchant's own
// reference, where that seems to be given in place of its id.
func byReference(path string, err error) error {
	at, query, _ := strings.Cut(path, "?")
	id, is := strings.CutPrefix(at, sessionsPath+"/")
	if id, _, _ = strings.Cut(id, "/"); !is {
		given, _ := url.ParseQuery(query) // our own
		id = given.Get("sessionId")
	}
	if id == "" || strings.HasPrefix(id, flow.PrefixSession) || !refusedWith(err, flow.CodeNotFound) && !refusedWith(err, flow.CodeInvalidField) {
		return err
	}
	return fmt.Errorf("%w\n  %s is no id of a session; if it is your reference of one: till sessions list --reference %s", err, plain(id), plain(id))
}

// checkIDs refuses a path of at whose id can be none, as one that was cut short, or of
// a variable that is not set: the API would only speak of a path that nobody typed.
func checkIDs(path string) error {
	path, _, _ = strings.Cut(path, "?")
	for part := range strings.SplitSeq(path[1:], "/") {
		id, err := url.PathUnescape(part)
		if err != nil || id == "" || id != part {
			return usageError{fmt.Errorf("%q is no id: give a whole one, as lists show it", id)}
		}
	}
	return nil
}

// send sends a request and reads all of its answer.
func (c *client) send(ctx context.Context, method, path, once string, body []byte) (status int, header http.Header, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("User-Agent", "till/"+version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost {
		req.Header.Set("Idempotency-Key", once)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no Till answers at %s: %w (is it running? till dev starts one; --url says where it is)", c.base, err)
		}
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return 0, nil, nil, fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	if len(answer) > maxAnswer {
		return 0, nil, nil, fmt.Errorf("the answer of %s %s is longer than %d bytes", method, path, maxAnswer)
	}
	return resp.StatusCode, resp.Header, answer, nil
}

// read takes an answer out of its envelope.
func (c *client) read(status int, answer []byte, into any) error {
	var envelope struct {
		Data  json.RawMessage
		Error *apiError
	}
	if err := json.Unmarshal(answer, &envelope); err != nil || envelope.Data == nil && envelope.Error == nil {
		return fmt.Errorf("what answers at %s is no Till: status %d (does --url say where it is?)", c.base, status)
	}
	if envelope.Error != nil {
		return envelope.Error
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(envelope.Data, into); err != nil {
		return fmt.Errorf("read what the Till answered: %w", err)
	}
	return nil
}

// apiError is what a Till refuses.
type apiError struct {
	Type      string            `json:"type"`
	Code      flow.Code         `json:"code"`
	Message   string            `json:"message"`
	Fields    []flow.FieldError `json:"fields"`
	RequestID string            `json:"requestId"`
	DocURL    string            `json:"docUrl"`
}

// Error says what is wrong, with which field, what to do and where more stands.
func (e *apiError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Code, plain(e.Message))
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "\n  %s: %s", plain(f.Field), plain(f.Message))
	}
	if fix := api.Fix(e.Code); fix != "" {
		fmt.Fprintf(&b, "\n  next: %s", fix)
	}
	fmt.Fprintf(&b, "\n  see %s (request %s)", plain(e.DocURL), plain(e.RequestID))
	return b.String()
}

// forbidden says whether the Till's rules refuse it, whatever is sent.
func (e *apiError) forbidden() bool { return e.Type == "permission" }

// refusedWith says whether a call was refused with a code.
func refusedWith(err error, code flow.Code) bool {
	refused, ok := errors.AsType[*apiError](err)
	return ok && refused.Code == code
}

// plain is a text of somebody else's as it may stand on a terminal, in one line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// page is one page of a list.
type page struct {
	Items      []json.RawMessage `json:"items"`
	HasMore    bool              `json:"hasMore"`
	NextCursor *string           `json:"nextCursor"`
}

// pageSize is how many things are asked for at a time.
const pageSize = 100

// maxExported is how long a list is that is exported at most.
const maxExported = 100_000

// list reads a list up to a number of things, page by page, and says whether
// there are more. query has no limit and no cursor.
func (c *client) list(ctx context.Context, path string, query url.Values, most int) (items []json.RawMessage, more bool, err error) {
	if query == nil {
		query = url.Values{}
	}
	items = []json.RawMessage{}
	for {
		query.Set("limit", strconv.Itoa(min(pageSize, most-len(items))))
		var one page
		if err := c.get(ctx, path+"?"+query.Encode(), &one); err != nil {
			return nil, false, err
		}
		items = append(items, one.Items...)
		if !one.HasMore || one.NextCursor == nil || len(items) >= most {
			return items, one.HasMore, nil
		}
		query.Set("cursor", *one.NextCursor)
	}
}

// pick reads those things of a list that keep wants, up to a number of them and
// however many others stand between, and says whether there are more.
func (c *client) pick(
	ctx context.Context, path string, query url.Values, most int, keep func(json.RawMessage) (bool, error),
) (items []json.RawMessage, more bool, err error) {
	items = []json.RawMessage{}
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		var one page
		if err := c.get(ctx, path+"?"+query.Encode(), &one); err != nil {
			return nil, false, err
		}
		for _, item := range one.Items {
			is, err := keep(item)
			switch {
			case err != nil:
				return nil, false, err
			case is && len(items) == most:
				return items, true, nil
			case is:
				items = append(items, item)
			}
		}
		if !one.HasMore || one.NextCursor == nil {
			return items, false, nil
		}
		query.Set("cursor", *one.NextCursor)
	}
}

// each reads the things of a list one by one.
func each[T any](items []json.RawMessage, do func(T) error) error {
	for _, item := range items {
		var one T
		if err := json.Unmarshal(item, &one); err != nil {
			return fmt.Errorf("read what the Till listed: %w", err)
		}
		if err := do(one); err != nil {
			return err
		}
	}
	return nil
}
