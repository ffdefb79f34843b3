// Package redistest runs a Redis server of a test's own: the real one, killed
// and started anew as the test likes. It must not know what is kept there.
package redistest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"till/flow/await"
)

// program is Redis's server.
const program = "redis-server"

// Server is one that runs, on a socket in a folder of its own.
type Server struct {
	Client *redis.Client // with the library's own settings
	URL    string        // as Till is told of it
	Dir    string        // what it keeps on disk

	tb      testing.TB
	path    string
	socket  string
	flags   []string
	process *exec.Cmd
}

// Installed says whether there is one to run, for what goes without it too.
func Installed() bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// Start starts a server that keeps nothing on disk, or what flags say, and ends it
// with the test. Where none is installed the test is skipped, or fails if
// TILL_TEST_REQUIRE names redis.
func Start(tb testing.TB, flags ...string) *Server {
	tb.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
	case strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), "redis"):
		tb.Fatal("redis is required here and not installed")
	default:
		tb.Skipf("skipped: redis is not installed (%s)", program)
	}
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // a socket's path may not be long
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Dir: dir, tb: tb, path: path, socket: filepath.Join(dir, "s"), flags: flags}
	s.URL = "unix://" + s.socket
	s.Client = redis.NewClient(s.Options())
	tb.Cleanup(func() {
		_ = s.Client.Close()
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	s.Again()
	return s
}

// Options are where it is, for a client with settings of its own.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Network: "unix", Addr: s.socket, DisableIdentity: true}
}

// Again starts it anew after Kill, with what it kept on disk.
func (s *Server) Again() {
	s.tb.Helper()
	flags := append([]string{"--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no", "--dir", s.Dir}, s.flags...)
	s.process = exec.CommandContext(context.WithoutCancel(s.tb.Context()), s.path, flags...) //nolint:gosec // the server that was found
	if err := s.process.Start(); err != nil {
		s.tb.Fatal(err)
	}
	await.Until(s.tb, "redis-server answers", func() bool { return s.Client.Ping(s.tb.Context()).Err() == nil })
}

// Kill ends it as a power cut would, and waits until it is gone.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Signal sends it a signal: to stop for a while, go on, or end while a test does
// something else.
func (s *Server) Signal(what os.Signal) error { return s.process.Process.Signal(what) }

// Flush empties it.
func (s *Server) Flush() {
	s.tb.Helper()
	if err := s.Client.FlushAll(s.tb.Context()).Err(); err != nil {
		s.tb.Fatal(err)
	}
}

// Dump is all that it would keep on a disk.
func (s *Server) Dump() []byte {
	s.tb.Helper()
	ctx := s.tb.Context()
	// Long texts would be packed in it, and not found.
	err := errors.Join(s.Client.ConfigSet(ctx, "rdbcompression", "no").Err(), s.Client.Save(ctx).Err())
	if err != nil {
		s.tb.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, "dump.rdb"))
	if err != nil {
		s.tb.Fatal(err)
	}
	return text
}
