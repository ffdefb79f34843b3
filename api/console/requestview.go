package console

import (
	"time"

	"till/flow"
)

// Requests is a log of the newest API requests, which a server keeps in memory.
type Requests interface {
	// Requests lists those of a project in an environment, newest first: from before
	// an id on ("" is the beginning), of one class of status (2, 4 or 5; 0 is all).
	Requests(project flow.ProjectID, env flow.Environment, class int, before string, limit int) (list []Request, more bool)
	// Request finds one by its id.
	Request(project flow.ProjectID, env flow.Environment, id string) (Request, bool)
	// Most is how many are kept of one project in one environment.
	Most() int
}

// Request is one API request as it is kept: whatever is secret in it was taken out
// before.
type Request struct {
	ID        string
	At        time.Time
	Took      time.Duration
	Method    string
	Route     string // the pattern
	Target    string // path and query
	Status    int
	Code      flow.Code // of an error
	Key       string    // the hint of the API key
	Payer     bool      // it brought the clientSecret of a session
	Once      bool      // it brought an Idempotency-Key
	Replayed  bool      // it was answered with what is kept under that
	Private   bool      // its bodies are never kept
	Busy      bool      // its bodies were left out: too much came at once
	Body      []byte    // at most 4 KiB
	Answer    []byte    // at most 4 KiB
	Picture   bool      // its answer is one, and not kept
	BodyCut   bool      // there was more
	AnswerCut bool
}
