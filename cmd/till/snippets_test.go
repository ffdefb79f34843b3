package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow"
	"till/hooks"
)

// language is how the snippets of a language are run.
type language struct {
	name    string
	program string // what has to be installed
	ext     string
	run     []string // nil where it is built
}

func languages() []language {
	return []language{
		{"curl", "curl", ".sh", []string{"sh"}},
		{"node", "node", ".mjs", []string{"node"}},
		{"php", "php", ".php", []string{"php"}},
		{"python", "python3", ".py", []string{"python3"}},
		{"go", "go", ".go", nil},
	}
}

// prepared is a language's snippet, ready to be run.
func (l language) prepared(t *testing.T, task string) func(env []string, stdin []byte, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "api", "snippets", l.name, task+l.ext))
	must(t, err)
	command := append(append([]string{}, l.run...), file)
	if l.run == nil { // go run would take its time and its environment into every try
		bin := filepath.Join(t.TempDir(), task)
		if out, err := exec.Command("go", "build", "-o", bin, file).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", file, err, out)
		}
		command = []string{bin}
	}
	return func(env []string, stdin []byte, args ...string) (string, string, error) {
		cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = t.TempDir(), append(os.Environ(), env...), bytes.NewReader(stdin)
		var out, bad bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &bad
		err := cmd.Run()
		return out.String(), bad.String(), err
	}
}

// made is the object that a snippet printed: cURL prints the envelope, the
// others its data.
func made(t *testing.T, out string) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatalf("this is not JSON: %v\n%s", err, out)
	}
	if data, ok := o["data"].(object); ok {
		return data
	}
	return o
}

func TestTheSnippetsWork(t *testing.T) {
	m, _, _ := devServer(t)
	bySecret, byKey := deliveries(t, m)
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			tilltest.Need(t, l.name, l.program)
			env := []string{"TILL_URL=" + m.base, "TILL_SECRET_KEY=" + m.key}
			programs := map[string]func([]string, []byte, ...string) (string, string, error){}
			for _, task := range []string{"create-session", "pay-bank-transfer", "create-charge", "verify-webhook", "verify-webhook-v1a"} {
				programs[task] = l.prepared(t, task)
			}
			run := func(task string, env []string, args ...string) object {
				t.Helper()
				out, bad, err := programs[task](env, nil, args...)
				if err != nil {
					t.Fatalf("%s: %v\n%s%s", task, err, out, bad)
				}
				return made(t, out)
			}
			session := run("create-session", env)
			if session["status"] != "PENDING" || session["amountMinor"] != "500000" {
				t.Errorf("a session that was made: %v", session)
			}
			account := run("pay-bank-transfer", env, session["id"].(string))
			again := run("pay-bank-transfer", env, session["id"].(string))
			if !regexp.MustCompile(`^\d{10}$`).MatchString(account["accountNumber"].(string)) || again["accountNumber"] != account["accountNumber"] {
				t.Errorf("an account that was made: %v, then %v", account, again)
			}
			charge := run("create-charge", env)
			if !strings.Contains(charge["checkoutUrl"].(string), "text=Pay%20") || charge["virtualAccount"] == nil {
				t.Errorf("a charge that was made: %v", charge)
			}
			wrong := []string{"TILL_URL=" + m.base, "TILL_SECRET_KEY=sk_test_wrong"}
			for _, task := range []string{"create-session", "create-charge"} {
				if out, bad, err := programs[task](wrong, nil); err == nil || !strings.Contains(out+bad, "invalid_api_key") {
					t.Errorf("%s with a wrong key: %v\n%s%s", task, err, out, bad)
				}
			}
			verifies(t, programs["verify-webhook"], bySecret)
			t.Run("v1a", func(t *testing.T) {
				if l.name == "python" && !strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), l.name) { // whose own library knows no Ed25519
					if err := exec.CommandContext(t.Context(), l.program, "-c", "import cryptography").Run(); err != nil {
						t.Skip("skipped: Python's package cryptography is not installed")
					}
				}
				verifies(t, programs["verify-webhook-v1a"], byKey)
			})
		})
	}
}

// deliveredHook is a webhook as it came over the wire.
type deliveredHook struct {
	signature string // by which it is signed
	variable  string // in which the snippets take the key
	key       string // that verifies it
	another   string // that does not
	header    http.Header
	body      []byte
}

// env is the delivery as the snippets take it.
func (d deliveredHook) env() map[string]string {
	return map[string]string{
		d.variable: d.key, "webhook_id": d.header.Get("webhook-id"),
		"webhook_timestamp": d.header.Get("webhook-timestamp"), "webhook_signature": d.header.Get("webhook-signature"),
	}
}

// deliveries has a session paid and catches the webhooks about it: of an endpoint that
// is signed for by a secret, and of one by a key pair.
func deliveries(t *testing.T, m *merchant) (bySecret, byKey deliveredHook) {
	t.Helper()
	sink := func(signature string) (object, chan deliveredHook) {
		came := make(chan deliveredHook, 10)
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			came <- deliveredHook{signature: signature, header: r.Header, body: body}
		}))
		t.Cleanup(s.Close)
		return m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": s.URL, "signature": signature}), came
	}
	secret, bySecrets := sink("v1")
	pair, byKeys := sink("v1a")
	session := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500000, "customerEmail": "ada@example.com", "customerName": "Ọlá ₦"})
	account := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session["id"].(string)+"/pay/bank-transfer", nil)
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account["accountNumber"]})
	bySecret, byKey = <-bySecrets, <-byKeys
	bySecret.variable, bySecret.key, bySecret.another = "TILL_WEBHOOK_SECRET", secret["secret"].(string), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	byKey.variable, byKey.key, byKey.another = "TILL_WEBHOOK_PUBLIC_KEY", pair["publicKey"].(string), "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	return bySecret, byKey
}

// verifies feeds a verifying snippet a real delivery, which must pass, and
// everything that must not.
func verifies(t *testing.T, run func([]string, []byte, ...string) (string, string, error), hook deliveredHook) {
	t.Helper()
	try := func(change map[string]string, body []byte) error {
		var env []string
		for name, v := range hook.env() {
			if changed, ok := change[name]; ok {
				v = changed
			}
			env = append(env, name+"="+v)
		}
		_, stderr, err := run(env, body)
		if strings.Contains(stderr, "Traceback") { // in a server that is its 500, which whoever forges can have at will
			t.Errorf("it breaks instead of refusing: %s", stderr)
		}
		return err
	}
	if err := try(nil, hook.body); err != nil {
		t.Errorf("a real delivery is refused: %v", err)
	}
	sign, kind := hook.header.Get("webhook-signature"), hook.signature
	long := base64.StdEncoding.EncodeToString(make([]byte, 64)) // as a signature of Ed25519 is
	for _, beside := range []string{kind + ",AAAA", kind + "," + long, "v1,xsciVo7z3IFW5vgeEvqgE10gP9ScpxP+MqXbMg13kbU=", "v1a," + long, "v1a", kind + ",#"} {
		if err := try(map[string]string{"webhook_signature": beside + " " + sign}, hook.body); err != nil {
			t.Errorf("a delivery with %s beside its signature is refused: %v", beside, err)
		}
	}
	own, err := hooks.NewSecret(flow.Signature(kind), rand.Reader)
	must(t, err)
	for ago, passes := range map[time.Duration]bool{4 * time.Minute: true, -4 * time.Minute: true, 6 * time.Minute: false, -6 * time.Minute: false} {
		at := time.Now().Add(-ago) // the programs know no other clock
		signed, err := hooks.Sign([]string{own}, hook.header.Get("webhook-id"), at, hook.body)
		must(t, err)
		change := map[string]string{hook.variable: cmp.Or(flow.PublicKeyOf(own), own), "webhook_timestamp": strconv.FormatInt(at.Unix(), 10), "webhook_signature": signed}
		if err := try(change, hook.body); (err == nil) != passes {
			t.Errorf("a delivery that was signed %s ago: %v", ago, err)
		}
	}
	tampered := bytes.Replace(hook.body, []byte(`"500000"`), []byte(`"900000"`), 1)
	if bytes.Equal(tampered, hook.body) {
		t.Fatal("nothing was tampered with")
	}
	stamp := hook.header.Get("webhook-timestamp")
	for name, one := range map[string]struct {
		change map[string]string
		body   []byte
	}{
		"a tampered body":      {nil, tampered},
		"a byte more":          {nil, append(bytes.Clone(hook.body), '\n')},
		"another key":          {map[string]string{hook.variable: hook.another}, hook.body},
		"another id":           {map[string]string{"webhook_id": "evt_1"}, hook.body},
		"an old time":          {map[string]string{"webhook_timestamp": "1767225600"}, hook.body},
		"a time that is none":  {map[string]string{"webhook_timestamp": stamp + "x"}, hook.body},
		"no signature":         {map[string]string{"webhook_signature": ""}, hook.body},
		"another signature":    {map[string]string{"webhook_signature": kind + ",xsciVo7z3IFW5vgeEvqgE10gP9ScpxP+MqXbMg13kbU="}, hook.body},
		"another version":      {map[string]string{"webhook_signature": "v2" + strings.TrimPrefix(sign, kind)}, hook.body},
		"no version":           {map[string]string{"webhook_signature": strings.TrimPrefix(sign, kind+",")}, hook.body},
		"a long signature":     {map[string]string{"webhook_signature": kind + "," + long}, hook.body},
		"half of a signature":  {map[string]string{"webhook_signature": sign[:len(sign)/2]}, hook.body},
		"a time without end":   {map[string]string{"webhook_timestamp": strings.Repeat("9", 5000)}, hook.body},
		"a pattern for a time": {map[string]string{"webhook_timestamp": "a[$(touch pwned)]"}, hook.body},
		"a star":               {map[string]string{"webhook_signature": "*"}, hook.body},
	} {
		if try(one.change, one.body) == nil {
			t.Errorf("%s passes", name)
		}
	}
}
