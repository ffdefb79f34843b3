package bot_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// silent takes what the Redis library would print of a server that is gone.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// times is how often something is tried with other values: a twentieth of it under -short,
// where the race detector makes each try several times as slow. `make test` tries all.
func times(n int) int {
	if testing.Short() {
		return n / 20
	}
	return n
}

// sweeps leaves a test of very many cases to `make test` and `make race`: `make check`, which
// has the race detector watch, is to be done sooner.
func sweeps(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
}
