package flow_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
)

var morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func TestASecondSecretSignsUntilItRetires(t *testing.T) {
	e := flow.Endpoint{Secrets: []string{"new", "old", "older"}, Retiring: []time.Time{morning}}
	for at, want := range map[time.Duration][]string{-time.Millisecond: {"new", "old"}, 0: {"new"}, time.Hour: {"new"}} {
		if got := e.Signing(morning.Add(at)); !slices.Equal(got, want) {
			t.Errorf("%s after it retires %v sign", at, got)
		}
	}
	if got := (flow.Endpoint{Secrets: []string{"only"}, Retiring: []time.Time{morning}}).Signing(time.Time{}); !slices.Equal(got, []string{"only"}) {
		t.Errorf("%v sign", got)
	}
}

func TestEachSecretSignsForItsDayAndNoMoreThanThreeAtOnce(t *testing.T) {
	e := flow.Endpoint{Secrets: []string{"a"}}
	rotate := func(secret string, at time.Duration) {
		t.Helper()
		if err := e.Rotate(secret, morning.Add(at)); err != nil {
			t.Fatal(err)
		}
	}
	rotate("b", 0)
	rotate("c", time.Hour)
	var refused *flow.Error
	if err := e.Rotate("d", morning.Add(2*time.Hour)); !errors.As(err, &refused) || refused.Code != flow.CodeRotationLimit || refused.RetryAfter != 22*time.Hour {
		t.Errorf("a fourth secret: %v", err)
	}
	for at, want := range map[time.Duration]string{2 * time.Hour: "c b a", 24*time.Hour - 1: "c b a", 24 * time.Hour: "c b", 25 * time.Hour: "c"} {
		if got := strings.Join(e.Signing(morning.Add(at)), " "); got != want {
			t.Errorf("after %s there sign %s, want %s", at, got, want)
		}
	}
	rotate("d", 24*time.Hour)
	if got := strings.Join(e.Signing(morning.Add(24*time.Hour)), " "); got != "d c b" || len(e.Secrets) != 3 {
		t.Errorf("then there sign %s of %v", got, e.Secrets)
	}
	rotate("e", 100*time.Hour)
	if got := strings.Join(e.Secrets, " "); got != "e d" {
		t.Errorf("what has retired is kept: %s", got)
	}
}

func TestWhatAnEndpointTakes(t *testing.T) {
	for _, c := range []struct {
		name string
		to   flow.Endpoint
		d    flow.Delivery
		want string
	}{
		{"one that is well", flow.Endpoint{Status: flow.EndpointEnabled}, flow.Delivery{}, flow.DeliveryPending},
		{"one that is held back", flow.Endpoint{Status: flow.EndpointEnabled, OpenSince: morning}, flow.Delivery{Cause: flow.CauseAuto}, flow.DeliveryHeld},
		{"its probe", flow.Endpoint{Status: flow.EndpointEnabled, OpenSince: morning}, flow.Delivery{Probe: true}, flow.DeliveryPending},
		{"what is asked for by hand", flow.Endpoint{Status: flow.EndpointEnabled, OpenSince: morning}, flow.Delivery{Cause: flow.CauseResend}, flow.DeliveryPending},
		{"one that is disabled", flow.Endpoint{Status: flow.EndpointDisabled}, flow.Delivery{Cause: flow.CauseResend}, flow.DeliveryHeld},
		{"one that is deleted", flow.Endpoint{Status: flow.EndpointDisabled, DeletedAt: morning}, flow.Delivery{}, flow.DeliveryCancelled},
	} {
		if got := c.to.Takes(c.d); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatFollowsAFailure(t *testing.T) {
	since := morning.Add(-5 * 24 * time.Hour)
	for _, c := range []struct {
		name    string
		to      flow.Endpoint
		gone    bool
		disable string
		open    bool
	}{
		{"the first", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 1, FailingSince: morning}, false, "", false},
		{"nineteen", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 19, FailingSince: morning}, false, "", false},
		{"twenty", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 20, FailingSince: morning}, false, "", true},
		{"more", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 21, FailingSince: morning, OpenSince: morning}, false, "", false},
		{"gone", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 1, FailingSince: morning}, true, flow.DisabledGone, false},
		{"almost five days", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 9, FailingSince: since.Add(time.Millisecond)}, false, "", false},
		{"five days", flow.Endpoint{Status: flow.EndpointEnabled, Failures: 9, FailingSince: since}, false, flow.DisabledFailing, false},
		{"disabled before", flow.Endpoint{Status: flow.EndpointDisabled, Failures: 50, FailingSince: since}, true, "", false},
		{"deleted", flow.Endpoint{Status: flow.EndpointEnabled, DeletedAt: morning, Failures: 50, FailingSince: since}, true, "", false},
	} {
		if disable, open := c.to.Ails(morning, c.gone); disable != c.disable || open != c.open {
			t.Errorf("%s: %q, %t", c.name, disable, open)
		}
	}
}

func TestProbesComeSlowerAndNeverStop(t *testing.T) {
	last := time.Duration(0)
	for probes := range 100 {
		wait := flow.ProbeIn(probes)
		if wait < last || wait > 30*time.Minute {
			t.Errorf("after %d probes it rests %s", probes, wait)
		}
		last = wait
	}
	if flow.ProbeIn(0) != 5*time.Second || flow.ProbeIn(-1) != 5*time.Second || last != 30*time.Minute {
		t.Errorf("it rests %s, and %s in the end", flow.ProbeIn(0), last)
	}
}

func TestARecordOfAnEndpointHoldsNothingOfItsSecrets(t *testing.T) {
	e := flow.Endpoint{ID: "wsp_we_1", URL: "https://shop.test", Secrets: []string{"whsec_abc"}, Status: flow.EndpointDisabled, DisabledReason: flow.DisabledGone, DisabledAt: morning}
	text, err := json.Marshal(flow.RecordEndpoint(e))
	want := `{"id":"wsp_we_1","url":"https://shop.test","description":null,"events":[],"status":"DISABLED","disabledReason":"gone",` +
		`"disabledAt":"2026-03-02T08:00:00.000Z","failingSince":null,"createdAt":"0001-01-01T00:00:00.000Z"}`
	if err != nil || string(text) != want || strings.Contains(string(text), "abc") {
		t.Errorf("%s (%v)", text, err)
	}
}
