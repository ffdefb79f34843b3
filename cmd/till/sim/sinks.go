package sim

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"till/flow"
)

// sink is where a merchant's webhooks come in.
type sink struct {
	url     string
	m       *merchant
	live    bool
	id      string          // of the endpoint
	secrets []string        // that it knows
	learnt  []time.Duration // when it did, of each
	mode    string          // how it is: "" is well
	got     map[string]*received
}

// received is an event as its merchant received it.
type received struct {
	kind, session string
	paid          string // in kobo, of a charge.success
	sequence      int64
	sum           [32]byte
	first, last   time.Duration
	tries         int
	taken         int  // answered with success
	gone          bool // answered that it is not there any more
}

// sinks are all of them. Guarded by w.mu.
type sinks struct {
	w   *world
	all map[string]*sink // by URL
}

// webhook is what a merchant reads of an event's body.
type webhook struct {
	ID        string `json:"id"`
	Event     string `json:"event"`
	Reference string `json:"reference"`
	Sequence  int64  `json:"sequence"`
	Livemode  bool   `json:"livemode"`
	Data      struct {
		ID          string `json:"id"`
		SessionID   string `json:"sessionId"`
		AmountMinor string `json:"amountMinor"`
		Paid        string `json:"amountPaidMinor"`
		Status      string `json:"status"`
		PaymentID   string `json:"paymentId"`
	} `json:"data"`
}

// transport carries the webhooks of an environment of one process.
func (s *sinks) transport(i *instance, env flow.Environment) http.RoundTripper {
	return carrier(func(r *http.Request) (*http.Response, error) { return s.post(i, env, r) })
}

// post is one delivery.
func (s *sinks) post(i *instance, env flow.Environment, r *http.Request) (*http.Response, error) {
	w := s.w
	if i.dead.Load() {
		return nil, syscall.ECONNRESET
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var hook webhook
	if err := json.Unmarshal(body, &hook); err != nil {
		w.breaks("I7", "a webhook that is no JSON: %v", err)
		return nil, err
	}
	w.mu.Lock()
	to := s.all[r.URL.String()]
	w.mu.Unlock()
	if to == nil {
		w.breaks("I10", "a webhook for %s, which nobody registered", r.URL)
		return nil, errors.New("no such sink")
	}
	if to.live != (env == flow.Live) || hook.Livemode != to.live {
		w.breaks("I9", "a webhook of the %s environment at %s", env, r.URL)
	}
	if hook.Data.SessionID == "" && strings.HasPrefix(hook.Event, "session.") {
		hook.Data.SessionID = hook.Data.ID
	}
	name := w.canonical(fmt.Sprintf("%s of %s/%s#%d to %s", hook.Event, hook.Reference, hook.Data.AmountMinor, hook.Sequence, to.m.name))
	came := w.age()
	w.takes("sink", name, clockOf(came))
	if i.dead.Load() { // which of the last things that a process did came this far is chance
		return nil, syscall.ECONNRESET
	}
	w.mu.Lock()
	tries, fault := to.take(hook, body, r.Header, came)
	mode := to.mode
	w.mu.Unlock()
	if fault != "" {
		invariant, what, _ := strings.Cut(fault, "|")
		w.breaks(invariant, "%s: %s", to.url, what)
	}
	if mode == "" {
		mode = w.mood(name, tries)
	}
	w.saw("webhook %s try %d: %s", name, tries, orWell(mode))
	w.mu.Lock()
	if mode == "" || mode == "slow" {
		to.got[hook.ID].taken++
	}
	to.got[hook.ID].gone = to.got[hook.ID].gone || mode == "410"
	w.mu.Unlock()
	w.goals.reached("webhook try", fmt.Sprint(tries), w)
	if err := w.caught(i, "sink.after"); err != nil {
		return nil, err
	}
	return behave(r, mode)
}

func orWell(mode string) string {
	if mode == "" {
		return "200"
	}
	return mode
}

// mood is how a sink that is well takes a try: some events it fails at first,
// each so often that every wait of the schedule is met.
func (w *world) mood(name string, try int) string {
	if w.ending || w.draw(100, name, "sick") >= w.swarm.sickEvents || try > 1+w.draw(11, name, "times") {
		return ""
	}
	moods := []string{"500", "429", "reset", "hang", "slow", "302", "503"}
	return moods[w.draw(len(moods), name, "mood", fmt.Sprint(try))]
}

// behave answers as a sink in a mood does.
func behave(r *http.Request, mode string) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte("ok"))), Request: r}
	switch mode {
	case "slow":
		time.Sleep(8 * time.Second)
	case "500":
		answer.StatusCode = http.StatusInternalServerError
	case "503":
		answer.StatusCode = http.StatusServiceUnavailable
	case "410":
		answer.StatusCode = http.StatusGone
	case "302":
		answer.StatusCode = http.StatusFound
		answer.Header.Set("Location", "http://169.254.169.254/")
	case "429":
		answer.StatusCode = http.StatusTooManyRequests
		answer.Header.Set("Retry-After", "90")
	case "reset":
		return nil, syscall.ECONNRESET
	case "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return answer, nil
}

// take keeps what came, and says what is wrong with it, "" for nothing. The
// caller holds the lock.
func (k *sink) take(hook webhook, body []byte, h http.Header, now time.Duration) (tries int, fault string) {
	if h.Get("Webhook-Id") != hook.ID {
		fault = fmt.Sprintf("I7|the header says %s, the body %s", h.Get("Webhook-Id"), hook.ID)
	}
	if !signed(k.current(now), h, body) {
		fault = fmt.Sprintf("I7|%s %s is not signed with the secret that this endpoint has by now", hook.Event, hook.ID)
	}
	sum := sha256.Sum256(body)
	was := k.got[hook.ID]
	if was == nil {
		was = &received{kind: hook.Event, session: hook.Data.SessionID, paid: hook.Data.Paid, sequence: hook.Sequence, sum: sum, first: now}
		k.got[hook.ID] = was
		for id, other := range k.got {
			switch {
			case id == hook.ID || was.session == "" || other.session != was.session:
			case hook.Event == "charge.success" && other.kind == hook.Event:
				fault = fmt.Sprintf("I4|%s was told of twice, as %s and %s", was.session, id, hook.ID)
			case hook.Sequence > 0 && other.sequence == hook.Sequence:
				fault = fmt.Sprintf("I7|%s and %s are both number %d of %s", id, hook.ID, hook.Sequence, was.session)
			}
		}
	}
	if was.sum != sum {
		fault = fmt.Sprintf("I4|%s changed between two deliveries", hook.ID)
	}
	was.tries++
	was.last = now
	return was.tries, fault
}

// signed checks a signature by one of some secrets or public keys as Standard Webhooks
// says, with code of its own.
func signed(secrets []string, h http.Header, body []byte) bool {
	for _, secret := range secrets {
		if public, ok := strings.CutPrefix(secret, "whpk_"); ok {
			if paired(public, h, body) {
				return true
			}
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "."))
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for one := range strings.SplitSeq(h.Get("Webhook-Signature"), " ") {
			if hmac.Equal([]byte(one), []byte(want)) {
				return true
			}
		}
	}
	return false
}

// paired checks a signature by a public key.
func paired(public string, h http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(public)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	whole := slices.Concat([]byte(h.Get("Webhook-Id")+"."+h.Get("Webhook-Timestamp")+"."), body)
	for one := range strings.SplitSeq(h.Get("Webhook-Signature"), " ") {
		text, ok := strings.CutPrefix(one, "v1a,")
		signature, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && ed25519.Verify(key, whole, signature) {
			return true
		}
	}
	return false
}
