package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"till/flow/redistest"
)

// The program counts calls in its Redis, and goes on counting without it.
func TestTheProgramLimitsCalls(t *testing.T) {
	r := redistest.Start(t)
	m, _, _ := devServerWith(t, []string{"TILL_RATE_LIMIT_TEST=20", "TILL_REDIS_URL=" + r.URL})
	calls := func() {
		t.Helper()
		codes := map[int]int{}
		for range 150 {
			status, out, err := m.try(http.MethodGet, "/v1/whatsapp/checkout/sessions/nothing", nil)
			must(t, err)
			codes[status]++
			fault, _ := out["error"].(object)
			if status == http.StatusTooManyRequests && fault["code"] != "rate_limited" {
				t.Fatalf("%v", out)
			}
		}
		if codes[http.StatusTooManyRequests] == 0 || codes[http.StatusNotFound] == 0 || len(codes) != 2 {
			t.Errorf("want some 404 and some 429, got %v", codes)
		}
	}
	calls()
	buckets, err := r.Client.Keys(context.Background(), "till:limit:key:*").Result()
	if err != nil || len(buckets) != 1 || strings.Contains(buckets[0], "sk_") {
		t.Errorf("buckets in Redis: %v %v", buckets, err)
	}
	_ = r.Client.Shutdown(context.Background()).Err() // it never answers
	calls()
}
