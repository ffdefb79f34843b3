package main

import (
	"time"

	"till/api"
)

// limits counts the API's calls. The Redis inside the program would only count
// what this process counts anyway.
func (a *app) limits() (*api.Limiter, error) {
	c := api.LimiterConfig{
		Prefix: "till:limit:", Test: api.PerSecond(a.set.RateLimitTest), Live: api.PerSecond(a.set.RateLimitLive),
		Address: api.PerSecond(a.set.RateLimitTest), Now: time.Now, Log: a.log,
	}
	if a.set.RedisURL != "" {
		c.Redis = a.redis
	}
	return api.NewLimiter(c)
}
