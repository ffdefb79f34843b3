package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/hooks"
)

// What the sender cannot send through a fault of our own is no try of an endpoint:
// a delivery whose secret this process cannot open waits. What is too large will never
// be sent.
func TestWhatCannotBeSignedIsSaidNotToHaveBeenSent(t *testing.T) {
	sender := hooks.New(hooks.Config{Now: time.Now})
	defer sender.Close()
	d := flow.Delivery{Event: "evt_1", URL: "https://shop.test", Body: []byte("{}")}
	if v := post(t.Context(), sender, d, time.Now()); !v.Ours || !v.Unsent || v.OK || v.Reason != hooks.WordUnsendable {
		t.Errorf("the verdict is %+v", v)
	}
	d.Body = make([]byte, 1<<20)
	if v := post(t.Context(), sender, d, time.Now()); !v.Ours || v.Unsent || v.OK || v.Reason != hooks.WordTooLarge {
		t.Errorf("the verdict on what is too large is %+v", v)
	}
}

// Webhooks of the live environment never go to this machine, also where those of
// test may.
func TestOnlyWebhooksOfTestMayGoToThisMachine(t *testing.T) {
	var calls atomic.Int32
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer sink.Close()
	a := &app{set: config.Settings{HTTPAddr: "127.0.0.1:8080", WebhookLoopback: true}}
	d := flow.Delivery{Event: "evt_1", URL: sink.URL, Body: []byte("{}"), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	for env, want := range map[flow.Environment]string{flow.Live: hooks.WordGuard, flow.Test: ""} {
		sender := a.sender(env)
		defer sender.Close()
		before := calls.Load()
		v := post(t.Context(), sender, d, time.Now())
		if v.SignedAt.IsZero() == v.OK {
			t.Errorf("in %s it is said to have been sent at %s: %+v", env, v.SignedAt, v)
		}
		if v.Reason != want || v.OK != (want == "") || calls.Load()-before != map[bool]int32{true: 1}[v.OK] {
			t.Errorf("in %s it is called %d times: %+v", env, calls.Load()-before, v)
		}
	}
}

// An event is tried ten times, as merchants are told, each wait a fifth longer at
// most; and a post ends when they are told, which its lease goes by.
func TestTheScheduleIsThatOfTheContract(t *testing.T) {
	const m, h = time.Minute, time.Hour
	for tried, want := range []time.Duration{5 * time.Second, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h} {
		if wait, again := nextTry(flow.Delivery{Attempts: tried}, flow.Verdict{}); !again || wait < want || wait > want+want/5 {
			t.Errorf("after %d tries before it waits for %s (%t), want %s", tried, wait, again, want)
		}
	}
	if wait, again := nextTry(flow.Delivery{Attempts: 9}, flow.Verdict{}); again {
		t.Errorf("there is an eleventh try, in %s", wait)
	}
	if wait, again := nextTry(flow.Delivery{}, flow.Verdict{RetryAfter: h}); !again || wait != h {
		t.Errorf("one that asks for an hour is tried again in %s (%t)", wait, again)
	}
	if checkout.PostLasts != 15*time.Second {
		t.Errorf("a post lasts %s", checkout.PostLasts)
	}
}

// All that an endpoint answers reaches the rules: how long it asks to be spared, that it
// is gone, and in which words.
func TestWhatAnEndpointAnswersReachesTheRules(t *testing.T) {
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(map[string]int{"/busy": http.StatusTooManyRequests, "/gone": http.StatusGone}[r.URL.Path])
		_, _ = io.WriteString(w, "not now")
	}))
	defer sink.Close()
	a := &app{set: config.Settings{HTTPAddr: "127.0.0.1:8080", WebhookLoopback: true}}
	sender := a.sender(flow.Test)
	defer sender.Close()
	for path, want := range map[string]flow.Verdict{
		"/busy": {Status: http.StatusTooManyRequests, Reason: hooks.WordStatus, RetryAfter: time.Hour},
		"/gone": {Status: http.StatusGone, Reason: hooks.WordGone, RetryAfter: time.Hour, Gone: true},
	} {
		at := time.Now()
		v := post(t.Context(), sender, flow.Delivery{Event: "evt_1", URL: sink.URL + path, Body: []byte("{}"), Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}, at)
		if v.Signature == "" || v.Duration <= 0 {
			t.Errorf("%s: it is not said what was sent, or how long that took: %+v", path, v)
		}
		want.Body, want.URL, want.SignedAt, want.Signature, want.Duration = []byte("not now"), sink.URL+path, at, v.Signature, v.Duration
		if !reflect.DeepEqual(v, want) {
			t.Errorf("%s: the verdict is %+v, want %+v", path, v, want)
		}
	}
}
