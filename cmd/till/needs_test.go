package main

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

// need skips a test whose service is not installed, and fails it where
// TILL_TEST_REQUIRE says that it must be.
func need(t *testing.T, service, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), service) {
		t.Fatalf("%s is required here and not installed", service)
	}
	t.Skipf("skipped: %s is not installed (%s)", service, program)
	return ""
}

// redisServer is a real Redis of its own.
type redisServer struct {
	url    string
	dir    string
	client *redis.Client
}

// realRedis starts a Redis server.
func realRedis(t *testing.T) *redisServer {
	t.Helper()
	path := need(t, "redis", "redis-server")
	addr := freePort(t)
	host, port, _ := strings.Cut(addr, ":")
	dir := t.TempDir()
	cmd := exec.Command(path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := &redisServer{url: "redis://" + addr + "/0", dir: dir, client: redis.NewClient(&redis.Options{Addr: addr})}
	t.Cleanup(func() { _ = r.client.Close() })
	await.Until(t, "redis-server answers", func() bool { return r.client.Ping(context.Background()).Err() == nil })
	return r
}

func (r *redisServer) flush(t *testing.T) {
	t.Helper()
	if err := r.client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
}

// dump is all that Redis would keep on a disk.
func (r *redisServer) dump(t *testing.T) []byte {
	t.Helper()
	ctx := context.Background()
	// Long texts would be packed in it, and not found.
	if err := errors.Join(r.client.ConfigSet(ctx, "rdbcompression", "no").Err(), r.client.Save(ctx).Err()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
