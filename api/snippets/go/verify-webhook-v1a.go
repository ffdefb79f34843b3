//go:build ignore

// Verifies a webhook that is signed by v1a of Standard Webhooks.
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

func verify(publicKey, id, timestamp, signatures string, body []byte) bool {
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publicKey, "whpk_"))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	signed := fmt.Appendf(nil, "%s.%s.%s", id, timestamp, body)
	for _, one := range strings.Fields(signatures) {
		text, ok := strings.CutPrefix(one, "v1a,")
		given, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && ed25519.Verify(key, signed, given) {
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
	if !verify(os.Getenv("TILL_WEBHOOK_PUBLIC_KEY"), os.Getenv("webhook_id"), os.Getenv("webhook_timestamp"), os.Getenv("webhook_signature"), body) {
		log.Fatal("the signature does not hold")
	}
	fmt.Println("verified")
}
