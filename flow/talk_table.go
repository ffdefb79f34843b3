package flow

import "github.com/looplab/fsm"

// The triggers of a talk.
const (
	talkPick    = "pick_bank" // USSD was chosen: which bank?
	talkOpen    = "open"      // a method was chosen: ask the rail
	talkRefused = "refused"   // the rail will not
	talkAsk     = "ask"       // ask the bank what came
	talkDecline = "declined"
	talkLapse   = "lapse"
	talkPart    = "part"
	talkPay     = "pay"
	talkHold    = "hold" // money came that does not apply by itself
	talkClose   = "close"
	talkReopen  = "reopen"  // somebody goes on with what nobody spoke of for a day, or what a person has looked at
	talkReverse = "reverse" // the bank took the money back
)

// opened and back lead to a state that the trigger names, because the table
// allows one way out of a state for each trigger.
func opened(m Method) string      { return "opened_" + string(m) }
func back(state TalkState) string { return "back_" + string(state) }

// live are the states in which a talk can still come to a payment.
var live = []TalkState{Choosing, PickingBank, Opening, AwaitTransfer, AwaitUSSD, AwaitCard, Verifying, PartPaid, Lapsed}

// awaiting are the states in which the payer has instructions.
var awaiting = []TalkState{AwaitTransfer, AwaitUSSD, AwaitCard}

func names(states ...TalkState) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}

var talkTable = tabled("talk", fsm.Events{
	{Name: talkPick, Src: names(Choosing, PartPaid, Lapsed, Verifying), Dst: string(PickingBank)},
	{Name: talkOpen, Src: names(Choosing, PickingBank, PartPaid, Lapsed, Verifying), Dst: string(Opening)},
	{Name: opened(BankTransfer), Src: names(Opening), Dst: string(AwaitTransfer)},
	{Name: opened(USSD), Src: names(Opening), Dst: string(AwaitUSSD)},
	{Name: opened(Card), Src: names(Opening), Dst: string(AwaitCard)},
	{Name: talkRefused, Src: names(Opening), Dst: string(Choosing)},
	{Name: talkAsk, Src: names(append(append([]TalkState{}, awaiting...), Choosing, PickingBank, PartPaid, Lapsed, Review)...), Dst: string(Verifying)},
	{Name: back(Choosing), Src: names(Verifying, PickingBank, PartPaid), Dst: string(Choosing)},
	{Name: back(PickingBank), Src: names(Verifying), Dst: string(PickingBank)},
	{Name: back(AwaitTransfer), Src: names(Verifying), Dst: string(AwaitTransfer)},
	{Name: back(AwaitUSSD), Src: names(Verifying), Dst: string(AwaitUSSD)},
	{Name: back(AwaitCard), Src: names(Verifying), Dst: string(AwaitCard)},
	{Name: back(PartPaid), Src: names(Verifying), Dst: string(PartPaid)},
	{Name: back(Lapsed), Src: names(Verifying), Dst: string(Lapsed)},
	{Name: back(Review), Src: names(Verifying), Dst: string(Review)},
	{Name: talkDecline, Src: names(AwaitUSSD, AwaitCard, Verifying), Dst: string(Choosing)},
	{Name: talkLapse, Src: names(append(append([]TalkState{}, awaiting...), Opening, Verifying)...), Dst: string(Lapsed)},
	{Name: talkPart, Src: names(append(append([]TalkState{}, live...), Review, Closed)...), Dst: string(PartPaid)},
	{Name: talkPay, Src: names(append(append([]TalkState{}, live...), Review, Closed)...), Dst: string(Paid)},
	{Name: talkHold, Src: names(append(append([]TalkState{}, live...), Review, Closed)...), Dst: string(Review)},
	{Name: talkClose, Src: names(append(append([]TalkState{}, live...), Review)...), Dst: string(Closed)},
	{Name: talkReopen, Src: names(Review, Closed), Dst: string(Choosing)},
	{Name: talkReverse, Src: names(append(append([]TalkState{}, live...), Paid, Review, Closed)...), Dst: string(Review)},
})

// The triggers of a desk.
const (
	deskCall    = "call" // a person is asked for
	deskClaim   = "claim"
	deskType    = "type" // on the phone of our number
	deskRelease = "release"
)

// deskBot is how the table names DeskBot: a state of the library has a name.
const deskBot = "bot"

var deskTable = tabled("desk", fsm.Events{
	{Name: deskCall, Src: []string{deskBot}, Dst: string(DeskWaiting)},
	{Name: deskClaim, Src: []string{deskBot, string(DeskWaiting), string(DeskDevice)}, Dst: string(DeskClaimed)},
	{Name: deskType, Src: []string{deskBot, string(DeskWaiting), string(DeskClaimed), string(DeskDevice)}, Dst: string(DeskDevice)},
	{Name: deskRelease, Src: []string{string(DeskWaiting), string(DeskClaimed), string(DeskDevice)}, Dst: deskBot},
})

// move is the talk after a trigger. One that the state does not know leaves it
// where it is: a talk observes, it cannot refuse what happened.
func (t Talk) move(trigger string) (Talk, bool) {
	to, err := move(talkTable, string(t.State), trigger)
	if err != nil {
		return t, false
	}
	t.State = TalkState(to)
	return t, true
}
