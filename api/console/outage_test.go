package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till/flow"
)

// What a supporter wrote is shown to them again where the store was away as they sent
// it: a page that only said so has lost a long answer to a payer.
func TestWhatWasWrittenIsShownAgainWhileTheStoreIsAway(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleSupport)
	v.get("/inbox")
	must(t, w.people.Close())
	for text, shown := range map[string]bool{"I looked it up: your money is here": true, "the card is 4242 4242 4242 4242": false} {
		form := url.Values{"csrf": {v.csrf}, "text": {text}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/inbox/chat_01m8gyms3jd8yn1gccpb6pf37y/reply", strings.NewReader(form.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := v.http.Do(r)
		must(t, err)
		body, err := io.ReadAll(answer.Body)
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(string(body), text) != shown {
			t.Errorf("%q: %d %s", text, answer.StatusCode, body)
		}
	}
}
