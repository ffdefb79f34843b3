package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// Who stops a server in the middle of its start is told of no fault: there is none.
func TestAServerThatIsStoppedWhileItStartsEndsWell(t *testing.T) {
	redis, err := net.Listen("tcp", "127.0.0.1:0") // takes who comes, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = redis.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		if conn, err := redis.Accept(); err == nil {
			defer func() { _ = conn.Close() }()
			stop()
			<-t.Context().Done()
		}
	}()
	var said bytes.Buffer
	code := run(ctx, []string{
		"serve", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off", "--data-dir", t.TempDir(), "--redis-url", "redis://" + redis.Addr().String(),
		"--bank-url", "http://127.0.0.1:1", "--whatsapp-dial", "127.0.0.1:1", "--whatsapp-root-key", strings.Repeat("0", 64),
	}, io.Discard, &said)
	if code != exitOK || said.Len() > 0 {
		t.Errorf("it ended with %d and said:\n%s", code, &said)
	}
}
