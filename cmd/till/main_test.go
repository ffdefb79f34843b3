package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"till/cmd/till/tilltest"
)

// Every command and every way to start badly, as an operator meets them.
func TestCommands(t *testing.T) {
	bin := tilltest.Program(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TILL", bin)
			e.Setenv("FREE", tilltest.FreePort(t))
			e.Setenv("TILL_METRICS_ADDR", "off")            // many run at once
			e.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR")) // where a program that counts says what was reached
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"listen": listen, "json": isJSON, "exits": exits, "keep": keep, "sink": sinkCmd, "sql": sqlCmd},
	})
}

// isJSON fails unless a file, or stdout, is one JSON value.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: json file")
	}
	if text := ts.ReadFile(args[0]); !json.Valid([]byte(text)) {
		ts.Fatalf("this is not JSON:\n%s", text)
	}
}
