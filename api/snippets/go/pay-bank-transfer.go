//go:build ignore

// Makes the account number of a session: go run pay-bank-transfer.go wsp_sess_…
// Calling it again gives the same one.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	url := os.Getenv("TILL_URL") + "/v1/whatsapp/checkout/sessions/" + os.Args[1] + "/pay/bank-transfer"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TILL_SECRET_KEY"))
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
