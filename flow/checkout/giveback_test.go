package checkout_test

import (
	"fmt"
	"testing"

	"till/flow"
)

// However many chats an agent has, the bot has all of them back when the agent is shut
// out: it would be silent in each that was left for as long as its payer writes.
func TestAllChatsOfAnAgentAreGivenBack(t *testing.T) {
	t.Parallel()
	w := one(t)
	const chats = 203
	var of []flow.ChatID
	for i := range chats {
		person := fmt.Sprintf("payer%d", i)
		w.must(w.says(person, flow.Intent{Kind: flow.MeansNothing, Text: "hello"}))
		of = append(of, w.chatOf(person))
	}
	w.rest()
	agents := map[flow.ChatID]string{}
	for i, id := range of {
		agents[id] = "ngozi@shop.test"
		if i%100 == 7 {
			agents[id] = "uche@shop.test"
		}
		w.must(w.service.Claim(t.Context(), id, agents[id], 0))
	}
	w.must(w.service.GiveBack(t.Context(), "ngozi@shop.test"))
	w.rest()
	for _, id := range of {
		row, err := w.db.Chat(t.Context(), id)
		w.must(err)
		if has, hers := row.Desk.State == flow.DeskClaimed, agents[id] == "ngozi@shop.test"; has == hers {
			t.Errorf("a chat of %s is %q", agents[id], row.Desk.State)
		}
	}
}
