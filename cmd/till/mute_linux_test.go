package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// The keys of the numbers may be on a disk of their own. While that is full no payer is
// answered: readiness, the numbers and the doctor say so and what to do, headless
// sessions go on, and once there is room again payers are answered without a restart.
func TestAFullDiskOfKeysIsTold(t *testing.T) {
	dir, addr := t.TempDir(), tilltest.FreePort(t)
	if out, err := exec.CommandContext(t.Context(), "unshare", "-rm", "mount", "-t", "tmpfs", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("skipped: no disk can be mounted here: %v %s", err, out)
	}
	env := []string{"TILL_LOG_LEVEL=warn", "TILL_RATE_LIMIT_TEST=100000", "TILL_METRICS_ADDR=off", "TILL_HTTP_ADDR=" + addr, "TILL_DATA_DIR=" + filepath.Join(dir, "data")}
	p := tilltest.StartOther(t, dir, env, "unshare", "-rm", "sh", "-euc",
		"mkdir -p -m 700 data/whatsapp; mount -t tmpfs -o size=64m,mode=700 none data/whatsapp; exec \"$0\" dev", tilltest.Program(t))
	m := &merchant{t: t, base: "http://" + addr, key: p.Line(`^secret key  (sk_test_\w+)`)[1]}
	waitReady(m)
	beside := func(args ...string) string { // in the same world of mounts
		cmd := exec.CommandContext(t.Context(), "nsenter", append([]string{"-U", "--preserve-credentials", "-m", "-t", strconv.Itoa(p.PID()), tilltest.Program(t)}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatal(err)
		}
		return string(out)
	}
	if said := beside("doctor"); strings.Contains(said, "Payers get no answers") {
		t.Fatalf("with room the doctor says\n%s", said)
	}
	filler := fmt.Sprintf("/proc/%d/root%s/data/whatsapp/filler", p.PID(), dir)
	fill(t, filler)

	ada := newPayer(m)
	_, opens := m.openChat(500_000, "full-keys")
	ada.says(opens)
	ready := func() (state, reason string) {
		status, body, err := m.try(http.MethodGet, "/readyz", nil)
		must(t, err)
		if status != http.StatusOK {
			t.Fatalf("readyz answers %d: headless sessions need no number", status)
		}
		data, _ := body["data"].(object)
		for _, c := range data["checks"].([]any) {
			if c, _ := c.(object); c["name"] == "whatsapp" {
				reason, _ = c["reason"].(string)
			}
		}
		return data["state"].(string), reason
	}
	await.Until(t, "readyz tells", func() bool {
		state, reason := ready()
		return state == "degraded" && strings.Contains(reason, "payers get no answers") && strings.Contains(reason, "till doctor")
	})
	await.Until(t, "the number tells", func() bool { return strings.Contains(beside("numbers"), "mute") })
	if said := beside("doctor"); !strings.Contains(said, "Payers get no answers") || !strings.Contains(said, "fix: df -h ") || !strings.Contains(said, "is mute since") {
		t.Errorf("the doctor says\n%s", said)
	}
	m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500_000, "customerEmail": "ada@example.com"})
	must(t, os.Remove(filler))
	ada.hears(`1 Bank transfer`)
	await.Until(t, "all is well again", func() bool { state, _ := ready(); return state == "ready" })
}

// fill writes a file until its disk has no room.
func fill(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	must(t, err)
	for _, size := range []int{1 << 20, 4096, 1} {
		for err = nil; err == nil; {
			_, err = file.Write(bytes.Repeat([]byte{'-'}, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	must(t, file.Close())
}
