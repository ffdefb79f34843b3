package flow

import (
	"slices"
	"time"
)

// moneyNews are the messages that tell of money that moved. Nothing holds them
// back: not a person who has taken the chat over, not STOP.
var moneyNews = []string{
	"receipt", "paid_over", "paid_twice", "paid_late", "paid_elsewhere", "part_paid", "sent_back", "reversed", "declined", "fading",
	"too_little", "returning", "refunded", "sent_by_hand", "over_returned", "came_back", "not_sent", "kept", "part_waits", "went_back", "taken_back",
}

// MoneyNews says whether a message tells of money that moved.
func MoneyNews(key string) bool { return slices.Contains(moneyNews, key) }

// always are the messages that no person holds back either: they protect the
// payer, answer what must be answered, are the person's own, or tell of what
// another person did.
var always = []string{"secret_typed", "stopped", "resumed", "agent", "person_here", "cancelled"}

// Withheld says whether a message is not said while a person has the chat.
func Withheld(key string) bool { return !MoneyNews(key) && !slices.Contains(always, key) }

// asks are the messages that end in a menu, or ask for a digit.
var asks = []string{"lapsed", "method_down", "declined", "part_paid", "sent_back", "too_little", "switch", "pick_bank"}

// Lasts says whether a message is worth being read however late: it tells of money
// that moved, and asks for nothing that may be over by then.
func Lasts(key string) bool { return MoneyNews(key) && !slices.Contains(asks, key) }

// reminders are said only in time: who reads one hours later is misled.
var reminders = []string{"nudge", "reminder", "still_waiting"}

// Stale says whether a message that could not be sent for so long is better
// not sent at all.
func Stale(key string, age time.Duration) bool {
	return slices.Contains(reminders, key) && age > remindBefore
}
