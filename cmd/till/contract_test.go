package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"till/api/apitest"
)

// theContract is the API's document, read once for all tests.
var theContract = sync.OnceValues(func() (*apitest.Contract, error) {
	document, err := os.ReadFile(filepath.Join("..", "..", "api", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	return apitest.Load(context.Background(), document)
})

// conforms holds one exchange with the real program against the document. The
// phone page's own calls stand in no document.
func conforms(t *testing.T, r *http.Request, asked []byte, answer *http.Response, body []byte) {
	t.Helper()
	if strings.HasPrefix(r.URL.Path, "/phone") {
		return
	}
	c, err := theContract()
	if err != nil {
		t.Error(err)
		return
	}
	e := apitest.Exchange{Method: r.Method, URL: r.URL, Asked: asked, Status: answer.StatusCode, Header: answer.Header, Answer: body}
	if err := c.Check(e); err != nil {
		t.Errorf("%s %s is not as the document has it: %v\nasked: %.2000s\nanswered: %d %.3000s", r.Method, r.URL.Path, err, asked, answer.StatusCode, body)
	}
}

// webhookConforms holds a webhook's body against the document.
func webhookConforms(body []byte) error {
	c, err := theContract()
	if err != nil {
		return err
	}
	return c.Webhook(body)
}
