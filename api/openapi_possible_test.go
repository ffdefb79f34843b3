package api

import (
	"slices"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// shown are the examples of a body, by their names.
func shown(media *openapi3.MediaType) map[string]any {
	out := map[string]any{}
	if media == nil {
		return out
	}
	if media.Example != nil {
		out["example"] = media.Example
	}
	for name, one := range media.Examples {
		out[name] = one.Value.Value
	}
	return out
}

// Who writes a program by an example, or has a mock answer with it, builds on what it
// shows: none shows what no answer and no webhook ever does.
func TestNoExampleShowsWhatCannotBe(t *testing.T) {
	for call, op := range operations(t) {
		for status, r := range op.Responses.Map() {
			for name, value := range shown(r.Value.Content["application/json"]) {
				possible{t, call + " " + status + " " + name}.judge(value, "")
				if op.OperationID == "cancelSession" && status == "200" {
					if got := value.(map[string]any)["data"].(map[string]any)["status"]; got != "CANCELLED" {
						t.Errorf("a session that was just cancelled is %s", got)
					}
				}
			}
		}
	}
	for kind, hook := range contract(t).Doc.Webhooks {
		for _, value := range shown(hook.Post.RequestBody.Value.Content["application/json"]) {
			event := value.(map[string]any)
			possible{t, kind}.judge(event, event["createdAt"].(string))
		}
	}
}

// possible says of which example something cannot be.
type possible struct {
	*testing.T
	of string
}

// judge holds what an example shows against what it shows beside it; at is when an event
// is told, "" where it is none.
func (p possible) judge(value any, at string) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			p.judge(one, at)
		}
	case map[string]any:
		p.session(v)
		p.charge(v, at)
		p.payment(v)
		p.delivery(v)
		for _, one := range v {
			p.judge(one, at)
		}
	}
}

// session: what is over can be paid by no method, and says why.
func (p possible) session(v map[string]any) {
	methods, is := v["paymentMethods"].([]any)
	if !is {
		return
	}
	over := slices.Contains([]any{"PAID", "EXPIRED", "CANCELLED"}, v["status"])
	for _, m := range methods {
		one := m.(map[string]any)
		if open := one["status"] == "available" || one["status"] == "active"; open && over {
			p.Errorf("%s: the session is %s, and %s is %s", p.of, v["status"], one["method"], one["status"])
		}
		if (one["status"] == "unavailable") != (one["reason"] != nil) {
			p.Errorf("%s: %s is %s, and why is %v", p.of, one["method"], one["status"], one["reason"])
		}
	}
}

// charge: what is paid says by whom, when and how much; what came to an account has one;
// and none is over before its time.
func (p possible) charge(v map[string]any, at string) {
	account, is := v["virtualAccount"]
	if !is {
		return
	}
	for _, name := range []string{"paidAt", "amountPaidMinor", "feeMinor", "netMinor", "channel"} {
		if v["status"] == "SUCCEEDED" && v[name] == nil {
			p.Errorf("%s: the charge is paid, and has no %s", p.of, name)
		}
	}
	if came, is := v["payment"].(map[string]any); is && came["channel"] == "bank_transfer" && account == nil {
		p.Errorf("%s: money came by transfer, and there is no account", p.of)
	}
	if ends := v["expiresAt"].(string); v["status"] == "EXPIRED" && at < ends {
		p.Errorf("%s: told at %s of a charge that expires at %s", p.of, at, ends)
	}
}

// payment: every transfer between banks has a number.
func (p possible) payment(v map[string]any) {
	if number, is := v["nipSessionId"]; is && v["channel"] == "bank_transfer" && number == nil {
		p.Errorf("%s: a transfer without the number of its network", p.of)
	}
}

// delivery: what failed once is tried again after five seconds, a fifth longer at most.
func (p possible) delivery(v map[string]any) {
	tries, is := v["attempts"].([]any)
	if !is || v["status"] != "PENDING" || len(tries) != 1 {
		return
	}
	moment := func(of any) time.Time {
		at, err := time.Parse(time.RFC3339, of.(string))
		must(p.T, err)
		return at
	}
	if after := moment(v["nextAttemptAt"]).Sub(moment(tries[0].(map[string]any)["at"])); after < 5*time.Second || after > 6*time.Second {
		p.Errorf("%s: tried again %s after the first try", p.of, after)
	}
}
