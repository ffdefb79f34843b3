package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// The README's network and bank run as processes of their own, as it says, at
// ports of the test's; its curl links a number there, and money that is played at
// that bank settles.
func TestTheReadmesOutsidesWork(t *testing.T) {
	_, section, ok := strings.Cut(readme(t), "### The outsides as processes of their own\n")
	fences := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, 2)
	if !ok || len(fences) != 2 {
		t.Fatal("the README does not say how the outsides run by themselves")
	}
	networkAt, bankAt := tilltest.FreePort(t), tilltest.FreePort(t)
	ours := strings.NewReplacer("127.0.0.1:8090", networkAt, "127.0.0.1:8091", bankAt)
	lines := strings.Split(strings.TrimSpace(ours.Replace(fences[0][1])), "\n")
	if len(lines) != 3 {
		t.Fatalf("the README starts %q", lines)
	}
	// words are those of a call of the program, behind what stands before it.
	words := func(line string) (before, args []string) {
		code, _, _ := strings.Cut(line, "#")
		first, rest, found := strings.Cut(code, "bin/till ")
		if !found {
			t.Fatalf("%q calls no till", line)
		}
		return strings.Fields(first), strings.Fields(rest)
	}
	dir := t.TempDir()
	_, args := words(lines[0])
	network := start(t, dir, nil, args...)
	key := network.Line(`\b([0-9a-f]{64})\b`)[1]
	_, args = words(lines[1])
	start(t, dir, nil, args...).Line(regexp.QuoteMeta(bankAt))
	env, args := words(strings.ReplaceAll(lines[2], "<root key>", key))
	addr := tilltest.FreePort(t)
	dev := start(t, dir, append(env, "TILL_HTTP_ADDR="+addr), args...)
	m := &merchant{t: t, base: "http://" + addr, key: dev.Line(`^secret key  (sk_test_\w+)`)[1]}
	var shown []string
	await.Until(t, "the bot shows a code", func() bool { // before or after it says what else is running
		shown = pairing.FindStringSubmatch(dev.Said())
		return shown != nil
	})
	curl := strings.TrimSpace(ours.Replace(strings.ReplaceAll(fences[1][1], "<text>", shown[1])))
	if out, err := exec.Command("sh", "-euc", strings.Replace(curl, "curl -s ", "curl -sf ", 1)).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", curl, err, out)
	}
	var charge object
	await.Until(t, "the number is linked, so that links can lead to it", func() bool {
		status, answer, err := m.try("POST", "/v1/charges", object{"amount": 500_000, "customerEmail": "ada@example.com"})
		charge, _ = answer["data"].(object)
		return err == nil && status == 201
	})
	m.call("POST", "/v1/test/bank/transfers", object{"accountNumber": charge["virtualAccount"].(object)["accountNumber"]})
	m.until("the session is paid", func() bool {
		return m.call("GET", "/v1/whatsapp/checkout/sessions/"+charge["sessionId"].(string), nil)["status"] == "PAID"
	})
}
