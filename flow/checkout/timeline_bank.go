package checkout

import (
	"encoding/json"
	"fmt"
	"strings"

	"till/flow"
	"till/flow/store"
)

func tellBank(l store.Line) string {
	var n flow.Notice
	if l.Kind == "bank.asked" || json.Unmarshal(l.Data, &n) != nil || n.Kind == "" {
		return strings.TrimPrefix(l.Kind, "bank.") + " " + compact(l.Data)
	}
	how := "notice"
	switch l.Kind {
	case "bank." + fromAnswer:
		how = "answer"
	case "bank." + fromStatement:
		how = "found on the statement"
	}
	return fmt.Sprintf("%s: %s %s, value time %s, %s", how, n.Kind, n.Amount.Naira(), flow.Stamp(n.PaidAt), n.RailTransactionID)
}

// compact is a line's data without its braces, for people.
func compact(data json.RawMessage) string {
	return strings.Trim(strings.ReplaceAll(string(data), `"`, ""), "{}")
}
