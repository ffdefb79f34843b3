package checkout

import (
	"slices"

	"till/flow"
	"till/flow/store"
)

// STOP and START hold for a person and not for one chat: a payer who wants no
// reminders does not know, and need not, how many numbers we have.

// everywhere takes what a payer said about reminders to their chats with our other
// numbers.
func (w *saving) everywhere(said store.ChatRow, stopped bool) error {
	others, err := w.others(said)
	for _, chat := range others {
		if err == nil && chat.Stopped != stopped {
			err = w.mute(chat.ID, stopped)
		}
	}
	return err
}

// begins has a chat that was just made stand as its person left it with our other
// numbers.
func (w *saving) begins(row store.ChatRow) (store.ChatRow, error) {
	others, err := w.others(row)
	if err != nil || !slices.ContainsFunc(others, func(c flow.Chat) bool { return c.Stopped }) {
		return row, err
	}
	if err := w.mute(row.ID, true); err != nil {
		return row, err
	}
	return w.tx.Chat(w.ctx, row.ID)
}

// others are the chats of a chat's person with our other numbers.
func (w *saving) others(row store.ChatRow) ([]flow.Chat, error) {
	rows, err := w.tx.ChatsOfPerson(w.ctx, row.Person)
	if err != nil {
		return nil, err
	}
	var list []flow.Chat
	for _, other := range rows {
		if other.ID == row.ID {
			continue
		}
		chat, err := w.stands(other)
		if err != nil {
			return nil, err
		}
		list = append(list, chat)
	}
	return list, nil
}

func (w *saving) mute(id flow.ChatID, stopped bool) error {
	kind := flow.NewsUnmuted
	if stopped {
		kind = flow.NewsMuted
	}
	return w.tellChat(id, "", flow.News{Kind: kind})
}
