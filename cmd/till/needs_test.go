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

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// redisServer is a real Redis of its own.
type redisServer struct {
	url    string
	dir    string
	client *redis.Client
	proc   *os.Process
}

// realRedis starts a Redis server.
func realRedis(t *testing.T) *redisServer {
	t.Helper()
	path := tilltest.Need(t, "redis", "redis-server")
	addr := tilltest.FreePort(t)
	host, port, _ := strings.Cut(addr, ":")
	dir := t.TempDir()
	cmd := exec.Command(path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := &redisServer{url: "redis://" + addr + "/0", dir: dir, client: redis.NewClient(&redis.Options{Addr: addr}), proc: cmd.Process}
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
