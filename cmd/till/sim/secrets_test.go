package sim

import (
	"slices"
	"strings"
	"testing"
)

func TestSecretsAreFoundWhereTheyStand(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"a": "whsec_one", "b": "whsec_two", "c": "sk_test_three", "d": "5060 6666", "none": ""}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"nothing of whsec_ and 5060 is one", nil},
		{"whsec_one", []string{"a"}},
		{"whswhsec_two, sk_test_sk_test_three", []string{"b", "c"}},
		{"5060 5060 6666", []string{"d"}},
		{"it ends with whsec_on", nil},
	} {
		if got := held([]byte(c.text), secrets); !slices.Equal(got, c.want) {
			t.Errorf("%q holds %q, and %q was found", c.text, c.want, got)
		}
	}
}

// A long secret is found wherever it begins, and not where a letter of it is another.
func TestALongSecretIsFoundAnywhere(t *testing.T) {
	t.Parallel()
	const secret = "whsec_0123456789abcdef"
	secrets := map[string]string{"a": secret, "b": secret + "0", "c": secret[:found]}
	for before := range 3 * word {
		for after := range 2 * word {
			text := []byte(strings.Repeat("w", before) + secret + strings.Repeat("x", after))
			if got := held(text, secrets); !slices.Equal(got, []string{"a", "c"}) {
				t.Errorf("%q: %q was found", text, got)
			}
			for i := range secret {
				text[before+i]++
				want := []string{"c"}
				if i < found {
					want = nil
				}
				if got := held(text, secrets); !slices.Equal(got, want) {
					t.Errorf("%q: %q was found", text, got)
				}
				text[before+i]--
			}
		}
	}
}
