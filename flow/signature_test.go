package flow_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"till/flow"
)

func TestWhatASecretSignsWithAndWhatVerifiesIt(t *testing.T) {
	key := strings.Repeat("s", 32) + strings.Repeat("p", 32)
	for _, c := range []struct {
		secret, public, hint string
		kind                 flow.Signature
	}{
		{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "", "whsec_…LaSw", flow.SignatureV1},
		{"", "", "whsec_…", flow.SignatureV1},
		{"whsk_" + base64.StdEncoding.EncodeToString([]byte(key)), "whpk_" + base64.StdEncoding.EncodeToString([]byte(key[32:])), "whpk_…cHA=", flow.SignatureV1A},
		{"whsk_" + base64.StdEncoding.EncodeToString([]byte(key[:63])), "", "whpk_…", flow.SignatureV1A},
		{"whsk_%", "", "whpk_…", flow.SignatureV1A},
	} {
		if kind, public, hint := flow.SignatureOf(c.secret), flow.PublicKeyOf(c.secret), flow.SecretHint(c.secret); kind != c.kind || public != c.public || hint != c.hint {
			t.Errorf("%q: %s, %q, %q", c.secret, kind, public, hint)
		}
	}
}
