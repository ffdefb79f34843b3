package checkout

import (
	"till/flow"
	"till/flow/store"
)

// kin are the chats of a chat's person with our other numbers that asked for
// instructions of some sessions: a number can be banned or unlinked between a payment
// and its receipt, and its payers write to another one.
func (w *saving) kin(row store.ChatRow, of map[flow.SessionID]flow.Checkout) ([]flow.ChatID, error) {
	asked := map[flow.ChatID]bool{}
	for _, co := range of {
		for _, a := range co.Attempts {
			if a.Chat != "" && a.Chat != row.ID {
				asked[a.Chat] = true
			}
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	rows, err := w.tx.ChatsOfPerson(w.ctx, row.Person)
	var list []flow.ChatID
	for _, other := range rows {
		if asked[other.ID] {
			list = append(list, other.ID)
		}
	}
	return list, err
}
