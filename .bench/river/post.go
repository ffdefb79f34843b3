package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// timeout is how long one post may take.
const timeout = 15 * time.Second

// poster posts, signed as https://www.standardwebhooks.com says.
type poster struct {
	key    []byte
	client *http.Client
}

func newPoster(s setup) *poster {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Secret, "whsec_")) // the bench made it
	return &poster{key, &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}}}
}

// send makes one post.
func (p *poster) send(ctx context.Context, h hook) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(h.ID + "." + at + "."))
	mac.Write(h.Body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(h.Body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", h.ID)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the answer is %s", answer.Status)
	}
	return nil
}
