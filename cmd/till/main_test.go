package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Every command and every way to start badly, as an operator meets them.
func TestCommands(t *testing.T) {
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TILL", bin)
			e.Setenv("FREE", freePort(t))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"listen": listen},
	})
}
