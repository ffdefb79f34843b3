package main

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// maxStdLine is how much of a line of the standard library is kept.
const maxStdLine = 200

// stdLog takes what the standard library would print: net/http tells there of
// what a webhook's receiver did, in the receiver's own bytes. Those are quoted,
// so a line is kept until its first quotation mark.
type stdLog struct{ log *slog.Logger }

// Write keeps a line for those who look closely.
func (l stdLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), `"`)
	text = strings.TrimSpace(text[:min(len(text), maxStdLine)])
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "standard library", slog.String("text", text))
	return len(line), nil
}

// takeStdLog has all that the standard library would print go to a log.
func takeStdLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(stdLog{to})
}
