package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/rail/sandbox"
)

// The bank is told which trace a call belongs to, and nothing that a merchant
// keeps there.
func TestACallHandsItsTraceOn(t *testing.T) {
	var got []http.Header
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header) }))
	t.Cleanup(bank.Close)
	r, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: bank.URL, Secret: "not a real secret, only long enough", HTTP: bank.Client(), Now: time.Now})
	must(t, err)
	trace := flow.NewTrace("cause")
	trace.State = "a=1"
	_, _ = r.Check(flow.WithTrace(t.Context(), trace), "wsp_ref_1") // what it says to an empty answer is not asked here
	_, _ = r.Check(t.Context(), "wsp_ref_1")
	if len(got) != 2 {
		t.Fatalf("%d calls came", len(got))
	}
	if parent := got[0].Get("Traceparent"); !strings.HasPrefix(parent, "00-"+trace.Name()+"-") || parent == trace.Parent() || got[0].Get("Tracestate") != "" {
		t.Errorf("it came with %q and %q", parent, got[0].Get("Tracestate"))
	}
	if got[1].Get("Traceparent") != "" {
		t.Error("a call of no trace has one")
	}
}
