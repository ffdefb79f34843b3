package meter_test

import (
	"testing"
	"time"

	"till/cmd/till/meter"
	"till/flow"
)

// BenchmarkARequest is what counting one request costs, beside the tens of
// microseconds that the cheapest one takes.
func BenchmarkARequest(b *testing.B) {
	m := meter.New("bench", time.Now)
	b.ReportAllocs()
	for b.Loop() {
		m.Answering()("/v1/whatsapp/checkout/sessions", "POST", 201, flow.Test, false)
	}
}

// BenchmarkACheckout is what counting a whole checkout costs.
func BenchmarkACheckout(b *testing.B) {
	m := meter.New("bench", time.Now).Of(flow.Test)
	b.ReportAllocs()
	for b.Loop() {
		m.Session("", flow.SessionPending)
		m.Heard(flow.Intent{Kind: flow.MeansCode})
		m.Said("summary")
		m.Replied(time.Second)
		m.Heard(flow.Intent{Kind: flow.MeansMethod})
		m.Said("transfer_how")
		m.Notice("credit")
		m.Payment(flow.Matched, 500_000)
		m.Session(flow.SessionPending, flow.SessionPaid)
		m.Said("receipt")
		m.Delivery("")
	}
}
