package sim

import (
	"slices"
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
