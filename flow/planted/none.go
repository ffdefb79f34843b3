//go:build !planted

package planted

// No bug is planted. What each of them is stands where they are, in bugs.go.
const (
	DoublePost      = false
	DroppedNotice   = false
	PendingIsMoney  = false
	LateInTime      = false
	AskedAmount     = false
	OddKobo         = false
	SettledTwice    = false
	RefundTwice     = false
	RefundForgotten = false
	LostEvent       = false
	LostOutbox      = false
	NewBody         = false
	GivesUpEarly    = false
	OldSecret       = false
	OthersWebhook   = false
	AnybodysKey     = false
	AnotherAnswer   = false
	OthersSession   = false
	LiveForTest     = false
	PaidExpires     = false
	ExpiresOnTheWay = false
	EagerBank       = false
	EagerChat       = false
	HeardTwice      = false
	KeptCard        = false
	OwnClock        = false
	LostCommit      = false
	UnsyncedCommit  = false
)
