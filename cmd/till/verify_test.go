package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"till/cmd/till/tilltest"
)

const identities = "/v1/verification/identities"

// heap is everything that a webhook receiver was ever sent.
type heap struct {
	mu   sync.Mutex
	all  bytes.Buffer
	says int
}

func (h *heap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(&h.all, "%s %v %s\n", r.URL, r.Header, body)
	if h.says++; h.says%3 == 0 { // so that some are tried again
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (h *heap) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// spill sends a request as it is and returns all that was answered.
func spill(m *merchant, method, path, body string, headers ...string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tilltest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, strings.NewReader(body))
	must(m.t, err)
	req.Header.Set("Authorization", "Bearer "+m.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	must(m.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(m.t, err)
	return fmt.Sprint(resp.StatusCode, resp.Header, string(text))
}

// secretPerson is a request about a number, with names that are kept nowhere.
func secretPerson(number string) string {
	return `{"type":"bvn","number":"` + number + `","firstName":"Nwakaego","lastName":"Ezeakonobi","dateOfBirth":"1987-06-05",` +
		`"consent":{"given":true,"purpose":"Account opening"}}`
}

// spills are ways to send a number, good and bad; each may be answered in any
// way but with the number.
func spills(m *merchant, i int, number string) string {
	good := secretPerson(number)
	switch i % 10 {
	case 0:
		return spill(m, "POST", identities, good)
	case 1:
		once := fmt.Sprintf("kyc-%d", i)
		return spill(m, "POST", identities, good, "Idempotency-Key", once) + spill(m, "POST", identities, good, "Idempotency-Key", once) +
			spill(m, "POST", identities, strings.Replace(good, "Nwakaego", "Ada", 1), "Idempotency-Key", once)
	case 2:
		return spill(m, "POST", identities, good[:len(good)-1])
	case 3:
		return spill(m, "POST", identities, strings.Replace(good, `"type"`, `"`+number+`":1,"type"`, 1))
	case 4:
		return spill(m, "POST", identities, strings.Replace(good, "Account opening", "of "+number, 1))
	case 5:
		return spill(m, "POST", identities, strings.Replace(good, "true", "false", 1))
	case 6:
		return spill(m, "GET", identities+"/"+number, "") + spill(m, "GET", identities+"?number="+number, "") + spill(m, "POST", identities+"?number="+number, good)
	case 7:
		return spill(m, "POST", identities, secretPerson(number+"1"), "Idempotency-Key", fmt.Sprintf("kyc-%d", i))
	case 8:
		return spill(m, "POST", identities, good, "Idempotency-Key", "for-"+number)
	}
	return spill(m, "POST", identities, good, "X-Request-Id", number, "User-Agent", number, "Content-Type", "text/"+number)
}

// searched fails the test for every file that holds one of the words.
func searched(t *testing.T, dir string, words []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for _, word := range words {
			if bytes.Contains(text, []byte(word)) {
				t.Errorf("%s holds %s", path, word)
			}
		}
		return err
	})
	if err != nil || files < 5 {
		t.Fatalf("searched %d files: %v", files, err)
	}
}

// Fifty numbers are sent in every way, good and bad; the program is killed during
// a look-up, and no byte of a number is anywhere: not in a file, a log, an
// answer or a webhook. The look-up that was cut off has failed, and is told.
func TestNoNumberOfAPersonIsEverWrittenDown(t *testing.T) {
	m, p, dir := devServerWith(t, []string{"TILL_LOG_LEVEL=debug"})
	h := &heap{}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": server.URL})
	words := []string{"Nwakaego", "Ezeakonobi", "1987-06-05"}
	var answers strings.Builder
	for i := range 50 {
		number := fmt.Sprintf("%011d", 22_000_000_019+int64(i)*1_234_567)
		words = append(words, number)
		if i == 30 {
			m.call(http.MethodPut, "/v1/test/bank/conditions", object{"up": false})
		}
		if i == 40 {
			m.call(http.MethodPut, "/v1/test/bank/conditions", object{"up": true})
		}
		answers.WriteString(spills(m, i, number))
		bare := sha256.Sum256([]byte(number))
		words = append(words, hex.EncodeToString(bare[:]))
		if i%10 == 1 { // the hash of a call is not one that can be tried out
			var in strings.Builder
			for _, part := range []string{"POST", identities, secretPerson(number)} {
				fmt.Fprintf(&in, "%d:%s", len(part), part)
			}
			sum := sha256.Sum256([]byte(in.String()))
			words = append(words, hex.EncodeToString(sum[:]))
		}
	}
	m.until("ten look-ups are told", func() bool { return strings.Count(h.text(), `"event":"identity.`) >= 10 })

	m.call(http.MethodPut, "/v1/test/bank/conditions", object{"latencyMs": 4000})
	number := "22111111119"
	words = append(words, number)
	cut := m.call(http.MethodPost, identities, object{
		"type": "bvn", "number": number, "firstName": "Nwakaego", "lastName": "Ezeakonobi", "consent": object{"given": true, "purpose": "Account opening"},
	})
	p.Kill()
	searched(t, dir, words) // what a power cut leaves: journals and all
	again := start(t, dir, []string{"TILL_LOG_LEVEL=debug"}, "dev", "--http-addr", strings.TrimPrefix(m.base, "http://"))
	again.Line(`/phone$`)
	var found object
	m.until("the look-up that was cut off has ended", func() bool {
		found = m.eventually(http.MethodGet, identities+"/"+cut["id"].(string), nil)
		return found["status"] != "PENDING"
	})
	if found["status"] != "FAILED" || found["reason"] != "interrupted" || found["numberMasked"] != "*********19" {
		t.Errorf("it is %v", found)
	}
	m.until("its end is told", func() bool { return strings.Contains(h.text(), `"reference":"`+cut["id"].(string)+`"`) })
	again.Kill()
	searched(t, dir, words)
	for where, text := range map[string]string{"answers": answers.String(), "webhooks": h.text(), "first log": p.Said(), "second log": again.Said()} {
		if len(text) < 100 {
			t.Errorf("the %s are empty: %q", where, text)
		}
		for _, word := range words {
			if strings.Contains(text, word) {
				t.Errorf("the %s hold %s", where, word)
			}
		}
	}
	if !strings.Contains(p.Said(), `look-up`) {
		t.Error("no line of the log is about a look-up")
	}
}
