package main

import (
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

const aSecretsKey = "1a00000000000000000000000000000000000000000000000000000000000001"

// A command about money whose key is not the one that secrets are sealed with says
// what is to be set, as a start does.
func TestACommandAboutMoneySaysWhichKeyItLacks(t *testing.T) {
	_, _, dir := devServerWith(t, []string{"TILL_SECRETS_KEY=" + aSecretsKey})
	for _, args := range [][]string{{"ledger", "check"}, {"reconcile"}} {
		out, err := tilltest.Output(t.Context(), dir, []string{"TILL_SECRETS_KEY="}, args...)
		if err == nil || !strings.Contains(out, "sealed with another key") || !strings.Contains(out, "or set TILL_SECRETS_KEY to it") {
			t.Errorf("till %v: %v\n%s", args, err, out)
		}
	}
}
