package sim

// joined are the moves that are two of their table, made in one go: one decision is
// kept of them, and the state between is never seen. All other moves are judged one
// by one, because each change of a row or a decision is kept by itself. They count
// as none of those that they are made of, which must be seen by themselves, and a
// run must see them too: what is not made any more has no place here. Those whose
// instructions were replaced alone are too seldom for that.
//
// A session that expires while money is on its way is not among them, although the
// rules do that after a day: the sandbox bank has nothing on its way for so long.
var joined = map[string]string{
	"talk: closed → opening":           backAgain,
	"talk: closed → ussd_bank":         backAgain,
	"talk: closed → verifying":         backAgain,
	"talk: opening → ussd_bank":        saidMeanwhile,
	"talk: opening → verifying":        saidMeanwhile,
	"talk: await_transfer → opening":   replaced,
	"talk: await_transfer → ussd_bank": replaced,
	"talk: await_ussd → opening":       replaced,
	"talk: await_ussd → ussd_bank":     replaced,
	"talk: await_card → opening":       replaced,
	"talk: await_card → ussd_bank":     replaced,
}

// Why two moves are made in one go.
const (
	backAgain     = "what a payer writes after a day of silence opens the talk anew, and is decided on"
	saidMeanwhile = "what a payer wrote while the bank was asked is decided on with its answer"
	replaced      = "the instructions ran out and were not swept yet, or were replaced for another amount: that is noticed when the payer chooses"
)
