package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"till/config"
	"till/flow"
)

// redisPatience is how long Redis may take to answer at the start.
const redisPatience = 3 * time.Second

// redisLog takes what the Redis library would print: whatever it is, it comes to
// us as an error as well.
type redisLog struct{ log *slog.Logger }

// Printf keeps a line for those who look closely.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.LogAttrs(ctx, slog.LevelDebug, "redis", slog.String("text", fmt.Sprintf(format, args...)))
}

// openRedis connects to Redis, or starts one inside the program. One that does not
// answer keeps nothing from starting, as it stops nothing that runs: it holds only
// what may be lost. One that answers with a no is a wrong setting, unless that passes:
// after a power cut it reads what it holds for as long as that takes.
func (a *app) openRedis(ctx context.Context) error {
	redis.SetLogger(redisLog{a.log})
	if a.set.RedisURL == "" {
		inside := miniredis.NewMiniRedis()
		if err := inside.Start(); err != nil {
			return fmt.Errorf("start the Redis inside the program: %w", err)
		}
		stop := make(chan struct{})
		go func() { // it forgets keys only when it is told that time passes
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					inside.FastForward(time.Second)
				case <-stop:
					return
				}
			}
		}()
		a.closing(func() error { close(stop); inside.Close(); return nil })
		a.redis = redis.NewClient(&redis.Options{Addr: inside.Addr(), DisableIdentity: true})
		a.closing(a.redis.Close)
		return nil
	}
	client, err := redisAt(a.set)
	if err != nil {
		return err
	}
	a.redis = client
	a.closing(a.redis.Close)
	a.checkRedis()
	short, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	err = a.redis.Ping(short).Err()
	if _, no := errors.AsType[redis.Error](err); no && !redis.IsLoadingError(err) && !redis.IsMaxClientsError(err) {
		return fmt.Errorf("redis lets us do nothing: %w (check --redis-url)", err)
	}
	if ctx.Err() != nil {
		return ctx.Err() // told to stop: that says nothing of Redis
	}
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelError, "redis does not answer: check --redis-url. It goes on without it, and nothing is lost; calls are counted by each process alone",
			slog.String("error", err.Error()))
	}
	return nil
}

// redisAt is the Redis of the settings.
func redisAt(set config.Settings) (*redis.Client, error) {
	options, err := redis.ParseURL(string(set.RedisURL))
	if err != nil {
		return nil, usageError{errors.New("--redis-url [secret] cannot be used: give a redis:// address, as redis://127.0.0.1:6379/0")}
	}
	options.ContextTimeoutEnabled = true // a Redis that hangs is waited for as long as whoever asks can, and not as long as the client likes
	return redis.NewClient(options), nil
}

// placesOf begins the keys in Redis under which stands where the talks of an
// environment are.
func placesOf(env flow.Environment) string { return "till:" + string(env) + ":" }
