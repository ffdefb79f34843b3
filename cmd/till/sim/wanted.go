package sim

import (
	"fmt"

	"till/api"
	"till/flow"
	"till/hooks"
)

// goal is something beside edges and refusals that every long run must reach.
type goal struct{ group, key string }

// wanted are the goals, by the words of the rules themselves where they have any.
func wanted() []goal {
	var list []goal
	for _, match := range flow.MatchStatuses() {
		list = append(list, goal{"outcome", string(match)})
	}
	for _, all := range []struct {
		group string
		n     int
	}{
		{"webhook try", hooks.MaxAttempts},
		{"refund asked", len(flow.AskAges())},
		{"settlement asked", len(flow.AskAges())},
		{"refund failure", len(flow.SendAgainWaits()) + 1},
		{"requery", len(flow.CheckAges())},
		{"requery when late", len(flow.LateWaits())},
		{"requery after the end", len(flow.AfterwardsWaits())},
		{"start again", len(flow.StartWaits())},
	} {
		for index := 1; index <= all.n; index++ {
			list = append(list, goal{all.group, fmt.Sprint(index)})
		}
	}
	for _, kind := range flow.EntryKinds() {
		list = append(list, goal{"ledger", string(kind)})
	}
	for _, kind := range flow.EventKinds() {
		list = append(list, goal{"event", string(kind)})
	}
	for _, origin := range []flow.RefundOrigin{flow.OriginMerchant, flow.OriginPolicy, flow.OriginClock, flow.OriginResolve} {
		list = append(list, goal{"refund origin", string(origin)})
	}
	for _, at := range []string{"now", atWrite, "bank.before", "bank.after", "sink.after", "send.before", "send.after"} {
		list = append(list, goal{"crash", at})
	}
	return append(list, goal{"flush", "places"}, goal{"flush", "restored"})
}

// codes are the refusals of the API.
func codes() []string {
	all, err := api.Codes()
	if err != nil {
		return []string{err.Error()} // which nobody reaches
	}
	list := make([]string, 0, len(all))
	for _, code := range all {
		list = append(list, string(code))
	}
	return list
}

// elsewhere are what the simulation cannot reach, and why, with who does.
var elsewhere = map[string]string{
	"refund: PENDING → NEEDS_ATTENTION": "a fourth refusal, told in the moment in which somebody has it sent again after a day's doubt: flow/refund_test.go, TestARefundThatWasRefusedTooOftenIsGivenUpWhileItWaitsToBeSentAgain",
	"event payment.unmatched":           "needs a bank that says for whom it collected what is of no session: flow/checkout/unmatched_test.go",
	"event payment.reversed":            "as payment.unmatched: flow/checkout/statement_day_test.go",
	"event identity.verified":           "no person is looked up here: api/identity_test.go",
	"event identity.failed":             "as identity.verified: api/identity_test.go",
	"code malformed_request":            "needs bytes that no merchant's library sends: api/guard_test.go",
	"code not_ready":                    "asked of the operator's page alone: api/health_test.go",
	"code internal_error":               "would be a fault of ours, and fails the seed: api/error_test.go",
	"code storage_unavailable":          "the simulated disk does not fail: api/outage_test.go",
	"code invalid_credentials":          "passwords are hashed too slowly for a simulation: api/login_test.go",
}
