package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// container is what the Dockerfile makes, without a daemon: the folder that its last
// stage fills, and how a command is run in it.
type container struct {
	t    *testing.T
	root string
	user *syscall.Credential
	work string
	env  []string
}

// newContainer does what the last stage says.
func newContainer(t *testing.T) container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root may change the root folder of a process")
	}
	_, stage, found := strings.Cut(opsFile(t, "Dockerfile"), "\nFROM scratch\n")
	if !found {
		t.Fatal("the image has more than the program in it")
	}
	defer syscall.Umask(syscall.Umask(0o022)) // a program that another test wired here makes all for its owner alone
	c := container{t: t, root: t.TempDir()}
	owners := func(text string) (uid, gid int) {
		m := regexp.MustCompile(`^(\d+):(\d+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s is no user", text)
		}
		uid, _ = strconv.Atoi(m[1])
		gid, _ = strconv.Atoi(m[2])
		return uid, gid
	}
	for line := range strings.Lines(stage) {
		words := strings.Fields(line)
		switch words[0] {
		case "COPY":
			to := filepath.Join(c.root, words[len(words)-1])
			must(t, os.MkdirAll(filepath.Dir(to), 0o755))
			if owner, ours := strings.CutPrefix(words[2], "--chown="); ours { // the one folder that it may write to
				uid, gid := owners(owner)
				must(t, os.Mkdir(to, 0o700))
				must(t, os.Chown(to, uid, gid))
			} else if filepath.Base(to) == "till" {
				program, err := os.ReadFile(tilltest.Program(t))
				must(t, err)
				must(t, os.WriteFile(to, program, 0o755))
			}
		case "USER":
			uid, gid := owners(words[1])
			c.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		case "WORKDIR":
			c.work = words[1]
		case "ENV":
			c.env = words[1:]
		}
	}
	return c
}

// command is one that runs in it, with more settings, as --env-file gives them.
func (c container) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), "/till", args...)
	cmd.Dir, cmd.Env = c.work, slices.Concat(c.env, env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: c.user, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Till serves in its container with a bank on the same machine, and the backups,
// proofs and restores that the Dockerfile tells of work there: its user may write to
// the volume alone, and there is no /tmp.
func TestTheContainerServesAndIsRestored(t *testing.T) {
	c := newContainer(t)
	env := append(newOutside(t).env, "TILL_HTTP_ADDR="+tilltest.FreePort(t), "TILL_METRICS_ADDR=off")
	does := func(args ...string) string {
		t.Helper()
		out, err := c.command(env, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("till %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	serve := func() (end func()) {
		t.Helper()
		server := c.command(env, "serve")
		var said bytes.Buffer
		server.Stdout, server.Stderr = &said, &said
		must(t, server.Start())
		ended := make(chan error, 1)
		go func() { ended <- server.Wait() }()
		await.Until(t, "the server is healthy", func() bool {
			if len(ended) > 0 {
				t.Fatalf("it ended: %v\n%s", <-ended, said.String())
			}
			return c.command(env, "health").Run() == nil
		})
		return func() {
			t.Helper()
			_ = server.Process.Signal(syscall.SIGTERM)
			if err := <-ended; err != nil {
				t.Fatalf("it ended with %v\n%s", err, said.String())
			}
		}
	}
	end := serve()
	does("backup", "till-2026-11-22.tar.gz")
	does("verify", "till-2026-11-22.tar.gz")
	does("people", "add", "late@example.com", "--role", "operator")
	end()
	does("restore", "till-2026-11-22.tar.gz", "--yes")
	does("verify")
	if out := does("people"); strings.Contains(out, "late@example.com") {
		t.Errorf("it is not restored:\n%s", out)
	}
	serve()()
	left, err := os.ReadDir(filepath.Join(c.root, c.work))
	must(t, err)
	for i, want := range []string{`^data$`, `^data\.before-`, `^till-2026-11-22\.tar\.gz$`} {
		if len(left) != 3 || !regexp.MustCompile(want).MatchString(left[i].Name()) {
			t.Fatalf("the volume has %v", left)
		}
	}
}
