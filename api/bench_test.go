package api

import (
	"testing"

	"github.com/valyala/fasthttp"

	"till/flow"
)

// BenchmarkDecode is the cost of reading and judging a session's body.
func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"amount":500000,"customerEmail":"ada@example.com","mode":"headless","metadata":{"cart":"7"}}`)
	for b.Loop() {
		f, err := decode("application/json", body, decodeRules{})
		must(b, err)
		f.amount(true, flow.MinAmount, flow.MaxAmount)
		f.email("customerEmail")
		f.metadata("metadata")
		f.oneOf("mode", flow.CodeInvalidMode, "headless")
		must(b, f.done())
	}
}

// BenchmarkGuard is what every request pays for being read in one way only.
func BenchmarkGuard(b *testing.B) {
	raw := []byte("Host: 127.0.0.1:8080\r\nAuthorization: Bearer sk_test_x\r\nContent-Type: application/json\r\nContent-Length: 80\r\nUser-Agent: x\r\n\r\n")
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/v1/whatsapp/checkout/sessions")
	for b.Loop() {
		if why, _ := guardHeaders(raw, "HTTP/1.1"); why != "" {
			b.Fatal(why)
		}
		if why := guardPath(ctx.Request.Header.RequestURI()); why != "" {
			b.Fatal(why)
		}
	}
}
