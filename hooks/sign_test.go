package hooks_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	foreign "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"till/flow"
	"till/hooks"
)

func ExampleSign() {
	secret := flow.SecretBegins + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"event":"charge.success","reference":"order-1001"}`)
	header, err := hooks.Sign([]string{secret}, "evt_01J0000000000000000000TEST", time.Unix(1767225600, 0), body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(header)
	// Output: v1,xsciVo7z3IFW5vgeEvqgE10gP9ScpxP+MqXbMg13kbU=
}

// The library of the Standard Webhooks authors accepts what we sign, by either
// of two secrets, and nothing else.
func TestSignIsAcceptedByTheStandardLibrary(t *testing.T) {
	older, newer, other := secret(t, 1), secret(t, 2), secret(t, 3)
	now, body := time.Now(), []byte(`{"id":"evt_1","amountMinor":"500000"}`)
	for _, secrets := range [][]string{{newer}, {newer, older}, {older, newer}} {
		signature, err := hooks.Sign(secrets, "evt_1", now, body)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		header.Set(foreign.HeaderWebhookID, "evt_1")
		header.Set(foreign.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
		header.Set(foreign.HeaderWebhookSignature, signature)
		for _, s := range secrets {
			if err := verifier(t, s).Verify(body, header); err != nil {
				t.Errorf("%d secrets: %v", len(secrets), err)
			}
		}
		if err := verifier(t, other).Verify(body, header); err == nil {
			t.Error("accepted by a secret that did not sign")
		}
		refuseTampered(t, verifier(t, newer), header, body)
	}
}

// While a secret is rotated, each delivery carries a signature by either, the
// newer first, and each is good alone to whoever knows its secret.
func TestSendWhileASecretIsRotated(t *testing.T) {
	newer, older := secret(t, 2), secret(t, 1)
	got := make(chan *http.Request, 1)
	body := make(chan []byte, 1)
	s := sink(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r
		body <- b
	})
	request := to(t, s.URL)
	request.Secrets = []string{newer, older}
	if v := sender(t, nil).Send(t.Context(), request); !v.OK {
		t.Fatalf("verdict %+v", v)
	}
	r, b := <-got, <-body
	signatures := strings.Fields(r.Header.Get(foreign.HeaderWebhookSignature))
	if len(signatures) != 2 || signatures[0] == signatures[1] {
		t.Fatalf("signatures %q", signatures)
	}
	for i, own := range []string{newer, older} {
		alone := r.Header.Clone()
		alone.Set(foreign.HeaderWebhookSignature, signatures[i])
		if err := verifier(t, own).Verify(b, alone); err != nil {
			t.Errorf("signature %d alone: %v", i, err)
		}
		if verifier(t, []string{older, newer}[i]).Verify(b, alone) == nil {
			t.Errorf("signature %d is good for the other secret", i)
		}
		if err := verifier(t, own).Verify(b, r.Header); err != nil {
			t.Errorf("secret %d, both signatures: %v", i, err)
		}
	}
}

// The example of the contract, which others verify their code by, to the byte.
func TestSignTheContractsExample(t *testing.T) {
	const secret = flow.SecretBegins + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"event":"charge.success","reference":"order-1001"}`)
	got, err := hooks.Sign([]string{secret}, "evt_01J0000000000000000000TEST", time.Unix(1767225600, 0), body)
	if want := "v1,xsciVo7z3IFW5vgeEvqgE10gP9ScpxP+MqXbMg13kbU="; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	theirs, err := verifier(t, secret).Sign("evt_01J0000000000000000000TEST", time.Unix(1767225600, 0), body)
	if err != nil || theirs != got {
		t.Errorf("the library of Standard Webhooks signs %s, %v", theirs, err)
	}
}

// refuseTampered changes each signed part by a little.
func refuseTampered(t *testing.T, v *foreign.Webhook, header http.Header, body []byte) {
	t.Helper()
	for i := range body {
		tampered := bytes.Clone(body)
		tampered[i] ^= 1
		if v.Verify(tampered, header) == nil {
			t.Errorf("accepted with byte %d changed", i)
		}
	}
	for name, value := range map[string]string{
		foreign.HeaderWebhookID:        "evt_2",
		foreign.HeaderWebhookTimestamp: strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10),
	} {
		changed := header.Clone()
		changed.Set(name, value)
		if v.Verify(body, changed) == nil {
			t.Errorf("accepted with another %s", name)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	good, at := secret(t, 1), time.Unix(1767225600, 0)
	for name, c := range map[string]struct {
		secrets []string
		id      string
		at      time.Time
	}{
		"no secret":          {nil, "evt_1", at},
		"nine secrets":       {[]string{good, good, good, good, good, good, good, good, good}, "evt_1", at},
		"no prefix":          {[]string{strings.TrimPrefix(good, flow.SecretBegins)}, "evt_1", at},
		"not base64":         {[]string{flow.SecretBegins + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa!!"}, "evt_1", at},
		"base64 for URLs":    {[]string{flow.SecretBegins + strings.Repeat("-_-_", 8)}, "evt_1", at},
		"loose ends":         {[]string{flow.SecretBegins + strings.Repeat("A", 33) + "B=="}, "evt_1", at},
		"line break inside":  {[]string{good[:20] + "\n" + good[20:]}, "evt_1", at},
		"23 bytes":           {[]string{encoded(23)}, "evt_1", at},
		"65 bytes":           {[]string{encoded(65)}, "evt_1", at},
		"second one bad":     {[]string{good, "whsec_"}, "evt_1", at},
		"no id":              {[]string{good}, "", at},
		"id with a dot":      {[]string{good}, "evt.1", at},
		"id with a space":    {[]string{good}, "evt 1", at},
		"id with a line":     {[]string{good}, "evt\r\nX-Other: 1", at},
		"id not ASCII":       {[]string{good}, "evt_é", at},
		"id of 256":          {[]string{good}, strings.Repeat("e", 256), at},
		"no time":            {[]string{good}, "evt_1", time.Time{}},
		"time before epochs": {[]string{good}, "evt_1", time.Unix(-1, 0)},
		"the epoch":          {[]string{good}, "evt_1", time.Unix(0, 0)},
	} {
		header, err := hooks.Sign(c.secrets, c.id, c.at, nil)
		if err == nil || header != "" {
			t.Errorf("%s: signed %q", name, header)
			continue
		}
		for _, s := range c.secrets {
			if text := strings.TrimPrefix(s, flow.SecretBegins); text != "" && strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error quotes the secret: %v", name, err)
			}
		}
	}
	for _, n := range []int{24, 64} {
		if _, err := hooks.Sign([]string{encoded(n)}, "evt_1", at, nil); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if header, err := hooks.Sign(slices.Repeat([]string{good}, 8), strings.Repeat("~", 255), time.Unix(1, 0), nil); err != nil || strings.Count(header, "v1,") != 8 {
		t.Errorf("eight secrets, an id of 255: %q, %v", header, err)
	}
}

func TestNewSecret(t *testing.T) {
	s, err := hooks.NewSecret(flow.SignatureV1, bytes.NewReader(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if want := flow.SecretBegins + strings.Repeat("A", 43) + "="; s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	broken := errors.New("no entropy")
	if s, err = hooks.NewSecret(flow.SignatureV1, iotest.ErrReader(broken)); !errors.Is(err, broken) || s != "" {
		t.Errorf("without randomness: %q, %v", s, err)
	}
	if s, err = hooks.NewSecret(flow.SignatureV1, bytes.NewReader(make([]byte, 31))); err == nil || s != "" {
		t.Errorf("with too little randomness: %q", s)
	}
}

// secret is a secret that seed decides.
func secret(t *testing.T, seed byte) string {
	t.Helper()
	s, err := hooks.NewSecret(flow.SignatureV1, bytes.NewReader(bytes.Repeat([]byte{seed}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// encoded is a secret of n bytes.
func encoded(n int) string {
	return flow.SecretBegins + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, n))
}

func verifier(t *testing.T, secret string) *foreign.Webhook {
	t.Helper()
	v, err := foreign.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
