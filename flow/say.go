package flow

import "slices"

// moneyNews are the messages that tell of money that moved. Nothing holds them
// back: not a person who has taken the chat over, not a flood, not STOP.
var moneyNews = []string{
	"receipt", "paid_over", "paid_twice", "paid_late", "paid_elsewhere", "part_paid", "sent_back", "reversed", "declined", "fading",
}

// MoneyNews says whether a message tells of money that moved.
func MoneyNews(key string) bool { return slices.Contains(moneyNews, key) }

// always are the messages that no person and no flood holds back either: they
// protect the payer, or answer what must be answered.
var always = []string{"secret_typed", "stopped", "resumed", "agent"}
