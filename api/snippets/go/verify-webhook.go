//go:build ignore

// Verifies a webhook by the Standard Webhooks scheme.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

func verify(secret, id, timestamp, signatures string, body []byte) bool {
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, one := range strings.Fields(signatures) {
		if hmac.Equal(want, []byte(one)) {
			return true
		}
	}
	return false
}

func main() {
	// In a server: the headers of the request, and its body as the bytes that
	// came, before anything parses them.
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	if !verify(os.Getenv("TILL_WEBHOOK_SECRET"), os.Getenv("webhook_id"), os.Getenv("webhook_timestamp"), os.Getenv("webhook_signature"), body) {
		log.Fatal("the signature does not hold")
	}
	fmt.Println("verified")
}
