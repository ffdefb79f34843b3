//go:build ignore

// Opens a session in WhatsApp and makes its account number: give checkoutUrl to
// the payer, or show virtualAccount.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	body := strings.NewReader(`{"amount":500000,"customerEmail":"ada@example.com"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("TILL_URL")+"/v1/charges", body)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TILL_SECRET_KEY"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", rand.Text())
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	var reply struct {
		Status bool
		Data   json.RawMessage
		Error  struct{ Code, Message, DocURL string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&reply); err != nil {
		log.Fatal(err)
	}
	if !reply.Status {
		log.Fatalf("%s: %s (%s)", reply.Error.Code, reply.Error.Message, reply.Error.DocURL)
	}
	fmt.Println(string(reply.Data))
}
