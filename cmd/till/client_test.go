package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// calls runs the program against a server that answers as told.
func calls(t *testing.T, answers http.HandlerFunc, args ...string) (code int, out, errs string) {
	t.Helper()
	return callsUntil(context.Background(), t, answers, args...)
}

// callsUntil runs a command that is interrupted once a context ends.
func callsUntil(ctx context.Context, t *testing.T, answers http.HandlerFunc, args ...string) (code int, out, errs string) {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	t.Setenv("TILL_SECRET_KEY", "sk_test_somebodys")
	t.Setenv("TILL_URL", server.URL)
	var o, e strings.Builder
	code = run(ctx, args, &o, &e)
	return code, o.String(), e.String()
}

const anEmptyPage = `{"status":true,"data":{"items":[],"hasMore":false,"nextCursor":null}}`

// A call that comes too soon is made again when the Till says so, under the same
// key, so that it is done once.
func TestAClientWaitsForItsTurn(t *testing.T) {
	var keys []string
	code, _, errs := calls(t, func(w http.ResponseWriter, r *http.Request) {
		if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"status":false,"error":{"code":"rate_limited"}}`)
			return
		}
		io.WriteString(w, `{"status":true,"data":{"id":"wsp_sess_1","status":"CANCELLED"}}`)
	}, "sessions", "cancel", "wsp_sess_1", "--yes")
	if code != exitOK || len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("it ended with %d after %q: %s", code, keys, errs)
	}
}

// A key that was copied with its line's end is that key; one with a line break inside is
// none, and not a Till that does not answer.
func TestAKeyIsReadWithoutWhatStandsAroundIt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk_test_somebodys" {
			t.Errorf("it was called with %q", r.Header.Get("Authorization"))
		}
		io.WriteString(w, anEmptyPage)
	}))
	t.Cleanup(server.Close)
	t.Setenv("TILL_URL", server.URL)
	for key, want := range map[string]int{"sk_test_somebodys\r": exitOK, " sk_test_somebodys\n": exitOK, "sk_test_some\nbodys": exitUsage, "sk_test_ñ": exitUsage} {
		t.Setenv("TILL_SECRET_KEY", key)
		var o, e strings.Builder
		if code := run(t.Context(), []string{"sessions", "list"}, &o, &e); code != want || want == exitUsage && !strings.Contains(e.String(), "this is no secret key") {
			t.Errorf("with %q it ended with %d: %s", key, code, e.String())
		}
	}
}

// One that has to wait too long is told so.
func TestAClientDoesNotWaitForever(t *testing.T) {
	n := 0
	code, _, errs := calls(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"status":false,"error":{"type":"rate_limit","code":"rate_limited","message":"Too many."}}`)
	}, "events")
	if code != exitFailed || n != 1 || !strings.Contains(errs, "rate_limited: Too many.") {
		t.Errorf("it ended with %d after %d calls: %s", code, n, errs)
	}
}

// What is no Till is not believed, and cannot fill the memory or write to the
// terminal.
func TestAClientDoesNotTrustWhatAnswers(t *testing.T) {
	for name, one := range map[string]struct {
		answer http.HandlerFunc
		code   int
		says   string
	}{
		"a page":     {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, exitFailed, "is no Till"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, exitFailed, "is no Till"},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			for range maxAnswer/(1<<20) + 1 {
				io.WriteString(w, strings.Repeat(" ", 1<<20))
			}
		}, exitFailed, "longer than"},
		"colours": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"status":false,"error":{"code":"kyc_required","type":"permission","message":"\u001b[31mred"}}`)
		}, exitRefused, "kyc_required:  [31mred"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := calls(t, one.answer, "webhooks")
			if code != one.code || out != "" || !strings.Contains(errs, one.says) || strings.Contains(errs, "\x1b") {
				t.Errorf("it ended with %d and %q: %q", code, out, errs)
			}
		})
	}
}

// A list of endpoints says why one is sent nothing: its own server asked for that, it
// only failed, or somebody did it.
func TestTheListOfEndpointsSaysWhyOneIsSentNothing(t *testing.T) {
	code, out, errs := calls(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"status":true,"data":{"hasMore":false,"nextCursor":null,"items":[{"id":"wsp_we_1","url":"https://shop.example/a","events":[],"status":"DISABLED",
 "disabledReason":"gone","failingSince":null,"secretHint":"whsec_…LaSw"},{"id":"wsp_we_2","url":"https://shop.example/b","events":[],"status":"ENABLED","disabledReason":null},
 {"id":"wsp_we_3","url":"https://shop.example/c","events":[],"status":"ENABLED","disabledReason":null,"failingSince":"2026-11-21T09:00:00.000Z","heldSince":"2026-11-21T09:30:00.000Z"}]}}`)
	}, "webhooks")
	if code != exitOK || !strings.Contains(out, " DISABLED (gone) ") || !strings.Contains(out, " ENABLED  ") || !strings.Contains(out, " ENABLED held back since 2026-11-21T09:30:00.000Z ") {
		t.Errorf("it ended with %d: %s%s", code, out, errs)
	}
}

// A session that is over is watched on while an endpoint has not got its event. A script
// that ships once it is over does not ship because its watch was ended, nor where nothing
// tries any more to tell of it.
func TestASessionIsWatchedUntilItsEventsAreDelivered(t *testing.T) {
	for state, ends := range map[string]string{
		"delivered": "", "cancelled": "", "pending": "is not over: stopped by a signal", "held": "is not over: stopped by a signal", "dead": "(till events resend evt_1)",
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		looks := 0
		code, out, errs := callsUntil(ctx, t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == eventsPath {
				if looks++; looks == 2 {
					if state == "dead" {
						t.Error("dead: it is watched on")
					}
					interrupt()
				}
				io.WriteString(w, `{"status":true,"data":{"hasMore":false,"nextCursor":null,"items":[{"id":"evt_1","event":"charge.success","deliveries":{"`+state+`":1}}]}}`)
				return
			}
			io.WriteString(w, `{"status":true,"data":{"id":"wsp_sess_1","status":"PAID","amountPaidMinor":"500000"}}`)
		}, "sessions", "watch", "wsp_sess_1")
		interrupt()
		if !strings.Contains(out, "evt_1 1 "+state) || ends == "" && code != exitOK || ends != "" && (code != exitFailed || !strings.Contains(errs, ends)) {
			t.Errorf("%s: it ended with %d: %s%s", state, code, out, errs)
		}
	}
}

// Of two events of one kind each is told when it changes, and not both again and again.
func TestTwoEventsOfOneKindAreEachWatched(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	looks := 0
	_, out, _ := callsUntil(ctx, t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == eventsPath {
			if looks++; looks == 3 {
				interrupt()
			}
			io.WriteString(w, `{"status":true,"data":{"hasMore":false,"nextCursor":null,"items":[{"id":"evt_2","event":"charge.underpaid"},{"id":"evt_1","event":"charge.underpaid"}]}}`)
			return
		}
		io.WriteString(w, `{"status":true,"data":{"id":"wsp_sess_1","status":"PENDING","amountPaidMinor":"200000"}}`)
	}, "sessions", "watch", "wsp_sess_1")
	interrupt()
	if strings.Count(out, "evt_1") != 1 || strings.Count(out, "evt_2") != 1 {
		t.Errorf("told is\n%s", out)
	}
}

// A live key is not sent where others could read it.
func TestALiveKeyIsNotSentOverPlainHTTP(t *testing.T) {
	t.Setenv("TILL_SECRET_KEY", "sk_live_somebodys")
	var errs strings.Builder
	if code := run(context.Background(), []string{"events", "--live", "--url", "http://192.0.2.1"}, io.Discard, &errs); code != exitRefused {
		t.Errorf("it ended with %d: %s", code, errs.String())
	}
}

// The file with the keys is read as a shell would read it, and the variables win.
func TestTheKeysAreReadFromTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(file, []byte("# ours\nTILL_SECRET_KEY=sk_test_a\nexport OTHER='two words'\nTILL_URL=\"http://127.0.0.1:1\"\n"), 0o600))
	got, err := readEnvFile(file)
	if err != nil || got["TILL_SECRET_KEY"] != "sk_test_a" || got["OTHER"] != "two words" || got["TILL_URL"] != "http://127.0.0.1:1" {
		t.Errorf("%v (%v)", got, err)
	}
	if got, err := readEnvFile(file + "-not"); err != nil || len(got) != 0 {
		t.Errorf("a file that is not there has %v (%v)", got, err)
	}
	if _, err := readEnvFile(filepath.Dir(file)); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder is read: %v", err)
	}
	asked := false
	code, _, errs := calls(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization") == "Bearer sk_test_somebodys"
		io.WriteString(w, anEmptyPage)
	}, "events", "--env-file", file)
	if code != exitOK || !asked {
		t.Errorf("it ended with %d: %s", code, errs)
	}
}
