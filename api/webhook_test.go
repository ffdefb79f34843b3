package api

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"till/flow"
	"till/flow/await"
	"till/hooks"
)

// catcher is a merchant's server: it keeps what it is sent and answers as it is
// told.
type catcher struct {
	url string

	mu     sync.Mutex
	status int
	answer string
	caught []caught
}

// caught is one webhook.
type caught struct {
	header http.Header
	body   string
}

// catches starts a catcher that answers 200.
func (d *desk) catches() *catcher {
	c := &catcher{status: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		delivered(d.t, body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.caught = append(c.caught, caught{r.Header.Clone(), string(body)})
		w.WriteHeader(c.status)
		_, _ = io.WriteString(w, c.answer)
	}))
	d.t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// answers has the catcher answer otherwise from now on.
func (c *catcher) answers(status int, body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.answer = status, body
}

// of is what came of one event.
func (c *catcher) of(event string) []caught {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []caught
	for _, one := range c.caught {
		if one.header.Get("webhook-id") == event {
			out = append(out, one)
		}
	}
	return out
}

// endpoint registers an endpoint and returns the answer.
func (d *desk) endpoint(key, url string, kinds ...string) reply {
	d.t.Helper()
	body := map[string]any{"url": url}
	if len(kinds) > 0 {
		body["events"] = kinds
	}
	text, err := json.Marshal(body)
	must(d.t, err)
	r := d.call("POST", endpointsPath, key, string(text))
	if r.status != http.StatusCreated {
		d.t.Fatalf("add an endpoint: %d %s", r.status, r.body)
	}
	return r
}

// ping pings an endpoint and returns the event's id.
func (d *desk) ping(endpoint string) string {
	d.t.Helper()
	r := d.call("POST", endpointsPath+"/"+endpoint+"/ping", d.key, "")
	d.want(r, http.StatusOK, map[string]string{"data.deliveries.0.endpointId": endpoint})
	return r.text("data.eventId")
}

// stands waits until the first delivery of an event stands somewhere, after so
// many tries.
func (d *desk) stands(event, status, tries string) reply {
	d.t.Helper()
	var r reply
	await.Until(d.t, event+" is "+status+" after "+tries+" tries", func() bool {
		r = d.call("GET", eventsPath+"/"+event+"/deliveries", d.key, "")
		return r.text("data.items.0.status") == status && r.text("data.items.0.attemptCount") == tries
	})
	return r
}

// stateOf is what is said of an endpoint under a name, "" for null.
func (d *desk) stateOf(endpoint, name string) string {
	d.t.Helper()
	return d.call("GET", endpointsPath+"/"+endpoint, d.key, "").text("data." + name)
}

// triedInVain opens a session, and waits until the one try to tell of it has failed.
func (d *desk) triedInVain() {
	d.t.Helper()
	session := d.call("POST", sessions, d.key, good).text("data.id")
	d.stands(d.call("GET", eventsPath+"?sessionId="+session, d.key, "").text("data.items.0.id"), "DEAD", "1")
}

// newest is the id of the newest event that says that a session was made.
func (d *desk) newest() string {
	d.t.Helper()
	return d.call("GET", eventsPath+"?type=session.created&limit=1", d.key, "").text("data.items.0.id")
}

// verifies says whether the Standard Webhooks library takes a webhook for real.
func verifies(t *testing.T, secret string, one caught) bool {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	must(t, err)
	return w.Verify([]byte(one.body), one.header) == nil
}

func TestARotatedSecretSignsBesideTheNewOneForADay(t *testing.T) {
	d := openDesk(t)
	d.server.cfg.NewSecret = func(kind flow.Signature) (string, error) { return hooks.NewSecret(kind, rand.Reader) }
	shop := d.catches()
	made := d.endpoint(d.key, shop.url, "charge.reversed")
	id, secrets := made.text("data.id"), []string{made.text("data.secret")}
	signed := func(want ...bool) {
		t.Helper()
		event := d.ping(id)
		d.stands(event, "DELIVERED", "1")
		one := shop.of(event)[0]
		for i, secret := range secrets {
			if got := verifies(t, secret, one); got != want[i] {
				t.Errorf("secret %d verifies: %v", i, got)
			}
		}
	}
	rotate := func() {
		t.Helper()
		r := d.call("POST", endpointsPath+"/"+id+"/rotate-secret", d.key, "")
		d.want(r, http.StatusOK, map[string]string{"data.id": id})
		if r.header.Get("Cache-Control") != "no-store" || r.text("data.previousSecretExpiresAt") == "" {
			t.Errorf("%v %s", r.header, r.body)
		}
		secrets = append(secrets, r.text("data.secret"))
	}
	signed(true)
	rotate()
	signed(true, true)
	d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":3600}`), http.StatusOK, nil)
	rotate() // again within the day: each signs until its own is over
	signed(true, true, true)
	refused := d.call("POST", endpointsPath+"/"+id+"/rotate-secret", d.key, "", "Idempotency-Key", "rotates later")
	d.want(refused, http.StatusConflict, map[string]string{"error.code": "secret_rotation_limit", "error.retryable": "true"})
	if wait, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || wait < 82700 || wait > 82801 {
		t.Errorf("it is to wait %q seconds", refused.header.Get("Retry-After"))
	}
	signed(true, true, true)
	d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":82801}`), http.StatusOK, nil)
	signed(false, true, true)
	d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":3600}`), http.StatusOK, nil)
	signed(false, false, true)
	later := d.call("POST", endpointsPath+"/"+id+"/rotate-secret", d.key, "", "Idempotency-Key", "rotates later") // as it was told to
	d.want(later, http.StatusOK, nil)
	secrets = append(secrets, later.text("data.secret"))
	signed(false, false, true, true)
	read := d.call("GET", endpointsPath+"/"+id, d.key, "")
	d.want(read, http.StatusOK, map[string]string{"data.secretHint": flow.SecretHint(secrets[3])})
	for _, secret := range secrets {
		if strings.Contains(read.body+d.call("GET", endpointsPath, d.key, "").body+d.log.String(), secret) {
			t.Error("a secret is shown again")
		}
	}
}

func TestAPingShowsWhatWasSentAndAnswered(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	made := d.endpoint(d.key, shop.url, "charge.reversed")
	id := made.text("data.id")
	shop.answers(http.StatusAccepted, "\xff\x00aé"+strings.Repeat("é", 4<<10))
	event := d.ping(id)
	r := d.stands(event, "DELIVERED", "1")
	d.want(r, http.StatusOK, map[string]string{
		"data.items.0.endpointId": id, "data.items.0.attempts.0.cause": "ping", "data.items.0.attempts.0.responseStatus": "202", "data.items.0.attempts.0.error": "",
		"data.items.0.attempts.0.request.url": shop.url, "data.items.0.nextAttemptAt": "", "data.hasMore": "false",
	})
	answer := r.text("data.items.0.attempts.0.responseBody")
	if !strings.HasPrefix(answer, "\ufffd\x00aéé") || len(answer) < 4000 || len(answer) > 4<<10 || strings.Count(answer, "\ufffd") != 1 {
		t.Errorf("%d bytes: %.40q…%.20q", len(answer), answer, answer[max(0, len(answer)-20):])
	}
	// What is shown is what was sent, to the byte: its signature is of the body.
	got := shop.of(event)
	if len(got) != 1 {
		t.Fatalf("it came %d times", len(got))
	}
	read := d.call("GET", r.text("data.items.0.attempts.0.request.bodyUrl"), d.key, "")
	d.want(read, http.StatusOK, map[string]string{"data.body": got[0].body, "data.event": "ping", "data.reference": id, "data.deliveries.delivered": "1"})
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		if shown := r.text("data.items.0.attempts.0.request.headers." + name); shown != got[0].header.Get(name) || shown == "" {
			t.Errorf("%s was %q and is shown as %q", name, got[0].header.Get(name), shown)
		}
	}
	if !verifies(t, made.text("data.secret"), got[0]) {
		t.Error("the signature does not hold")
	}
	// One that fails is tried once.
	shop.answers(http.StatusInternalServerError, "no")
	failed := d.stands(d.ping(id), "DEAD", "1")
	d.want(failed, http.StatusOK, map[string]string{"data.items.0.attempts.0.responseBody": "no", "data.items.0.attempts.0.error": "status"})
	// Sent again, it is for the endpoint that it was made for, and not for one that wants
	// every kind.
	d.endpoint(d.key, d.catches().url)
	again := d.call("POST", eventsPath+"/"+event+"/resend", d.key, "")
	d.want(again, http.StatusOK, map[string]string{"data.deliveries.0.endpointId": id, "data.deliveries.1": ""})
}

// A card number of which the end is beyond what is kept of an answer is one all the
// same: its last digit can be counted from the others.
func TestNoPartOfACardNumberInAnAnswerIsKept(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	id := d.endpoint(d.key, shop.url, "charge.reversed").text("data.id")
	for _, fits := range []int{15, 16} {
		shop.answers(http.StatusOK, strings.Repeat("x", 4<<10-fits)+"4111111111111111"+strings.Repeat("x", 100))
		r := d.stands(d.ping(id), "DELIVERED", "1")
		if answer := r.text("data.items.0.attempts.0.responseBody"); strings.Contains(answer, "4111111111111") {
			t.Errorf("of %d digits that fit %q is kept", fits, answer[max(0, len(answer)-20):])
		}
	}
}

func TestWhatWasGivenUpOrDeliveredIsSentAgain(t *testing.T) {
	d := openDesk(t)
	shop, other := d.catches(), d.catches()
	id := d.endpoint(d.key, shop.url, "session.created").text("data.id")
	never := d.endpoint(d.key, other.url, "charge.reversed").text("data.id")
	shop.answers(http.StatusServiceUnavailable, "closed")
	session := d.call("POST", sessions, d.key, good).text("data.id")
	event := d.newest()
	d.stands(event, "DEAD", "1")
	resend := func(body string) reply { return d.call("POST", eventsPath+"/"+event+"/resend", d.key, body) }
	d.want(resend(""), http.StatusOK, map[string]string{"data.deliveries.0.endpointId": id, "data.deliveries.1": ""})
	d.stands(event, "DEAD", "2") // by hand, and in vain: it is what it was
	shop.answers(http.StatusOK, "")
	d.want(resend(`{}`), http.StatusOK, nil)
	r := d.stands(event, "DELIVERED", "3")
	d.want(r, http.StatusOK, map[string]string{"data.items.0.attempts.0.cause": "auto", "data.items.0.attempts.1.cause": "resend", "data.items.0.attempts.2.cause": "resend"})
	d.want(resend(`{"endpointId":"`+id+`"}`), http.StatusOK, nil)
	d.stands(event, "DELIVERED", "4")
	tries := shop.of(event)
	for _, one := range tries[1:] {
		if one.body != tries[0].body {
			t.Errorf("the body was\n%s\nand is\n%s", tries[0].body, one.body)
		}
	}
	if len(tries) != 4 || len(other.of(event)) != 0 {
		t.Errorf("it came %d times, and %d to who never wanted it", len(tries), len(other.of(event)))
	}
	d.want(resend(`{"endpointId":"`+never+`"}`), http.StatusOK, map[string]string{"data.deliveries.0.endpointId": never})
	await.Until(t, "it comes to who was named", func() bool { return len(other.of(event)) == 1 })
	// Lists know whose and of what it is.
	for query, want := range map[string]string{"?sessionId=" + session: event, "?type=charge.success": "", "?createdBefore=2020-01-01T00:00:00Z": "", "?createdAfter=2020-01-01T00:00:00Z&type=session.created": event} {
		d.want(d.call("GET", eventsPath+query, d.key, ""), http.StatusOK, map[string]string{"data.items.0.id": want, "data.items.1": ""})
	}
	_, _, stranger := d.merchant("Bola Stores")
	foreign := d.endpoint(stranger, other.url).text("data.id")
	d.want(resend(`{"endpointId":"`+foreign+`"}`), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.call("GET", eventsPath, stranger, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	// Who is stopped is passed over, and refused where they are named.
	d.want(d.call("PATCH", endpointsPath+"/"+id, d.key, `{"status":"DISABLED"}`), http.StatusOK, map[string]string{"data.disabledReason": "requested"})
	d.want(resend(`{"endpointId":"`+id+`"}`), http.StatusConflict, map[string]string{"error.code": "endpoint_disabled"})
	d.want(d.call("POST", endpointsPath+"/"+id+"/ping", d.key, ""), http.StatusConflict, map[string]string{"error.code": "endpoint_disabled"})
	d.want(resend(""), http.StatusOK, map[string]string{"data.deliveries.0.endpointId": never, "data.deliveries.1": ""})
}

// A ping says nothing against an endpoint, and speaks for it where it is taken.
func TestAPingThatIsTakenSaysThatAnEndpointIsWell(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	id := d.endpoint(d.key, shop.url, "session.created").text("data.id")
	failing := func() string { return d.stateOf(id, "failingSince") }
	shop.answers(http.StatusServiceUnavailable, "")
	d.stands(d.ping(id), "DEAD", "1")
	if at := failing(); at != "" {
		t.Errorf("a ping failed, and it fails since %s", at)
	}
	d.triedInVain()
	if failing() == "" {
		t.Error("an event failed, and it does not fail")
	}
	shop.answers(http.StatusOK, "")
	d.stands(d.ping(id), "DELIVERED", "1")
	if at := failing(); at != "" {
		t.Errorf("a ping was taken, and it fails since %s", at)
	}
}

// An endpoint that is spared says so, and since when: it is enabled, and is sent next
// to nothing.
func TestAnEndpointThatIsHeldBackSaysSo(t *testing.T) {
	d := openDesk(t)
	shop := d.catches()
	id := d.endpoint(d.key, shop.url, "session.created").text("data.id")
	held := func() string { return d.stateOf(id, "heldSince") }
	shop.answers(http.StatusInternalServerError, "")
	for range 20 {
		if at := held(); at != "" {
			t.Fatalf("it is held since %s", at)
		}
		d.triedInVain()
	}
	if held() == "" {
		t.Error("twenty tries failed, and it is not held")
	}
	shop.answers(http.StatusOK, "")
	d.stands(d.ping(id), "DELIVERED", "1")
	if at := held(); at != "" {
		t.Errorf("a ping was taken, and it is held since %s", at)
	}
}

// A merchant with as many endpoints as there may be is told how to have another, and
// the call that was refused is not held against it.
func TestAnEndpointTooManyMayComeOnceThereIsRoom(t *testing.T) {
	d := openDesk(t)
	var last string
	for i := range 20 {
		last = d.endpoint(d.key, fmt.Sprintf("http://127.0.0.1:9/%d", i)).text("data.id")
	}
	more := func() reply {
		return d.call("POST", endpointsPath, d.key, `{"url":"http://127.0.0.1:9/more"}`, "Idempotency-Key", "one more")
	}
	refused := more()
	d.want(refused, http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	if !strings.Contains(refused.text("error.message"), "DELETE /v1/webhook-endpoints/{id}") {
		t.Errorf("it is told %q", refused.text("error.message"))
	}
	d.want(d.call("DELETE", endpointsPath+"/"+last, d.key, ""), http.StatusOK, nil)
	d.want(more(), http.StatusCreated, nil)
	d.want(d.call("POST", endpointsPath, d.key, `{"url":null}`), http.StatusBadRequest, map[string]string{"error.fields.0.message": "url is null, and is required."})
}

// Who changes an endpoint is told what leads to what they meant: what is left out stays
// as it is, there.
func TestAChangeThatIsRefusedSaysWhatToSend(t *testing.T) {
	d := openDesk(t)
	at := endpointsPath + "/" + d.endpoint(d.key, "http://127.0.0.1:9/hook").text("data.id")
	for body, says := range map[string]string{
		`{"events":[]}`: "null is for every kind that is not on request.",
		`{"url":null}`:  "url is null. Leave it out instead.",
	} {
		refused := d.call("PATCH", at, d.key, body)
		d.want(refused, http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
		if told := refused.text("error.fields.0.message"); !strings.HasSuffix(told, says) {
			t.Errorf("%s: it is told %q", body, told)
		}
	}
	d.want(d.call("PATCH", at, d.key, `{"events":null}`), http.StatusOK, nil)
}

// Every word that a try may have failed with stands in the document with what it means:
// who has an endpoint that fails reads it among its deliveries, and nowhere else.
func TestEachWordForWhyATryFailedIsExplained(t *testing.T) {
	_, delivery, _ := strings.Cut(string(document), "\n    Delivery:\n")
	delivery, _, _ = strings.Cut(delivery, "\n    Sending:\n")
	words := 0
	for file, constant := range map[string]string{"../hooks/word.go": `\bWord\w+ += "(\w+)"`, "../flow/checkout/deliver.go": `\breason\w+ += "(\w+)"`} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range regexp.MustCompile(constant).FindAllStringSubmatch(string(source), -1) {
			words++
			if told := strings.Contains(delivery, "`"+word[1]+"`"); told == (word[1] == hooks.WordStopped) { // told as shutdown
				t.Errorf("%s: the document tells of it: %t", word[1], told)
			}
		}
	}
	if words < 16 {
		t.Errorf("only %d words were found", words)
	}
}

// The document says what is promised of webhooks, and no more: who read that an event
// is sent exactly once would hand over the goods again for one that comes twice.
func TestTheDocumentPromisesWhatIsKeptOfWebhooks(t *testing.T) {
	_, added, _ := strings.Cut(string(document), "\n      operationId: addEndpoint\n")
	added, _, _ = strings.Cut(added, "\n      security:")
	told := strings.Join(strings.Fields(added), " ")
	var waits []string
	for tried := 1; tried < hooks.MaxAttempts; tried++ {
		wait, again := hooks.Next(tried, 0, 0)
		if !again {
			t.Errorf("there is no try %d", tried+1)
		}
		waits = append(waits, strings.NewReplacer("h0m0s", " h", "m0s", " min", "s", " s").Replace(wait.String()))
	}
	schedule := strings.Join(waits, ", ")
	for _, want := range []string{"at least once, in no promised order", "within 15 seconds", "Redirects are not followed", schedule} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not say %q:\n%s", want, told)
		}
	}
	if strings.Contains(string(document), "Sent exactly once") {
		t.Error("it promises that an event is sent exactly once")
	}
}
