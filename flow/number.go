package flow

import (
	"slices"
	"time"
)

// NumberState is where one of our WhatsApp numbers stands, as operators read it.
type NumberState string

// The states of a number.
const (
	NumberOffline    NumberState = "offline"       // no process runs it
	NumberConnecting NumberState = "connecting"    // on its way to the network
	NumberPairing    NumberState = "pairing"       // shows a code to link a phone with
	NumberSyncing    NumberState = "syncing"       // connected; what it missed is still coming in
	NumberLive       NumberState = "live"          // hears and sends
	NumberDeaf       NumberState = "deaf"          // connected, and hears nothing
	NumberMute       NumberState = "mute"          // sends nothing: its keys can be neither read nor kept
	NumberPhoneAway  NumberState = "phone-offline" // its phone was not seen for days
	NumberTimelocked NumberState = "timelocked"    // may not write to strangers for a time
	NumberBanned     NumberState = "temp-banned"   // refused for a time
	NumberReplaced   NumberState = "replaced"      // another program runs it
	NumberLoggedOut  NumberState = "logged-out"    // its owner unlinked us
	NumberOutdated   NumberState = "outdated"      // WhatsApp refuses this version
	NumberPasskey    NumberState = "passkey"       // WhatsApp wants a passkey to link it
	NumberDraining   NumberState = "draining"      // an operator wants no new chats on it
	NumberKilled     NumberState = "killed"        // an operator switched it off
)

// Advice is what an operator can do about a number in a state, "" where nothing
// is to be done.
func (s NumberState) Advice() string {
	switch s {
	case NumberOffline:
		return "Start Till, or wait until another one takes the number over."
	case NumberConnecting:
		return "Wait. If it lasts, look at how the machine of its holder reaches WhatsApp, or at --whatsapp-dial where that is set."
	case NumberPairing:
		return "Link a phone: stop Till and run till pair, or scan the code that it prints."
	case NumberDeaf:
		return "It was reconnected once. If it lasts, restart the Till that holds it and look at the number's phone."
	case NumberMute:
		return "Make room on the disk of the folder whatsapp in the data dir, or have it be written again: till doctor says what it lacks. It goes on by itself."
	case NumberPhoneAway:
		return "Switch its phone on and open WhatsApp: after 14 days without it WhatsApp unlinks us."
	case NumberTimelocked:
		return "Wait. Chats that are open go on; new ones go to other numbers."
	case NumberBanned:
		return "Wait until it is over and give it less to do then: till numbers set --weight, --daily-chats."
	case NumberReplaced:
		return "Stop the other program that uses this number, then restart the Till that holds it."
	case NumberLoggedOut:
		return "Link it again by till pair --slot with its slot; stop Till first, unless several processes share the data dir."
	case NumberOutdated:
		return "Set --whatsapp-version to what WhatsApp Web has now, or upgrade Till."
	case NumberPasskey:
		return "Link it with an eight-letter code: till pair --phone."
	case NumberDraining, NumberKilled:
		return "till numbers resume gives it new chats again."
	case NumberSyncing, NumberLive:
	}
	return ""
}

// NumberSwitch is what an operator wants of a number.
type NumberSwitch string

// The positions of a number's switch.
const (
	NumberGoes   NumberSwitch = ""      // new chats, and all that are open
	NumberDrains NumberSwitch = "drain" // no new links; what is open goes on
	NumberKill   NumberSwitch = "kill"  // nothing is sent, nothing heard is answered
)

// The bounds of how long a number's phone may stay away. WhatsApp unlinks
// companions after 14 days.
const (
	PhoneAwayWarns  = 10 * 24 * time.Hour
	PhoneAwayAlarms = 12 * 24 * time.Hour
	PhoneAwayEnds   = 14 * 24 * time.Hour
)

// Number is one of our WhatsApp numbers. Slot names its keys and stays; Digits
// are known once a phone is linked.
type Number struct {
	Slot       int
	Digits     string      // E.164 without the plus, "" until it is linked
	State      NumberState // as its holder last said, see At
	Detail     string      // more about the state, for operators
	Since      time.Time   // when the state began
	Until      time.Time   // when that ends by itself, see Ends; in other states a timelock beside it; zero for neither
	PhoneSeen  time.Time   // when its phone was last seen, zero for never
	Weight     int         // its share of new chats beside the other numbers'
	DailyChats int         // new chats a day at most, 0 for any number
	ChatsToday int
	Switch     NumberSwitch
	Switched   time.Time // when that was moved last, zero where it is on
	Holder     string    // the process that runs it
	Token      int64     // of that process's lease; a later lease has a higher one
	HeldUntil  time.Time
}

// At is the state of a number at a moment: what operators want of it stands
// before what it says itself, and what nobody runs says nothing.
func (n Number) At(now time.Time) NumberState {
	switch {
	case n.Switch == NumberKill:
		return NumberKilled
	case n.Holder == "" || !now.Before(n.HeldUntil):
		over := n.State == NumberBanned && !n.Until.IsZero() && !now.Before(n.Until)
		if n.State.Lasts() && !over {
			return n.State
		}
		return NumberOffline
	case n.Switch == NumberDrains && n.State.works():
		return NumberDraining
	}
	return n.State
}

// Began is when the state of a moment began, zero where nobody knows: what a number
// said of itself last may be weeks older than that it is killed, or that nobody runs it.
func (n Number) Began(now time.Time) time.Time {
	switch state := n.At(now); {
	case state == n.State:
		return n.Since
	case state == NumberKilled || state == NumberDraining:
		return n.Switched
	case n.Holder == "":
		return time.Time{}
	}
	return n.HeldUntil
}

// works says whether messages go both ways in a state.
func (s NumberState) works() bool {
	return s == NumberLive || s == NumberPhoneAway || s == NumberSyncing || s == NumberTimelocked
}

// Lasts says of a state whether it stays true while nobody runs the number.
func (s NumberState) Lasts() bool {
	return s == NumberLoggedOut || s == NumberBanned || s == NumberPasskey || s == NumberMute
}

// Ends says of a state whether a time is known with it at which it ends.
func (s NumberState) Ends() bool {
	return s == NumberBanned || s == NumberTimelocked || s == NumberPhoneAway
}

// Takes says whether a new chat may be opened with the number.
func (n Number) Takes(now time.Time) bool {
	if n.Digits == "" || n.Weight <= 0 || n.DailyChats > 0 && n.ChatsToday >= n.DailyChats {
		return false
	}
	at := n.At(now)
	return at == NumberLive || at == NumberPhoneAway && now.Before(n.PhoneSeen.Add(PhoneAwayAlarms))
}

// Able says whether a link to the number still leads somewhere, now or soon. A
// number that is only on its way stays in the links that carry it.
func (n Number) Able(now time.Time) bool {
	gone := []NumberState{NumberBanned, NumberReplaced, NumberLoggedOut, NumberOutdated, NumberPasskey, NumberKilled}
	return !slices.Contains(gone, n.At(now)) // in every other state it comes back by itself
}

// PickNumber chooses the number that a new link carries: of those that take new
// chats, the one that was given the least for its weight so far. It is false
// where none takes any.
func PickNumber(list []Number, given map[string]int, now time.Time) (Number, bool) {
	var best Number
	for _, n := range list {
		if !n.Takes(now) {
			continue
		}
		// given/weight < given/weight, without a fraction
		if best.Digits == "" || given[n.Digits]*best.Weight < given[best.Digits]*n.Weight {
			best = n
		}
	}
	return best, best.Digits != ""
}

// SwitchKind is what a switch is about.
type SwitchKind string

// What operators can switch.
const (
	SwitchNumber   SwitchKind = "number"
	SwitchMethod   SwitchKind = "method"
	SwitchMerchant SwitchKind = "merchant" // by project
	SwitchMoney    SwitchKind = "money"    // MoneyOut
)

// The positions of the switches of methods, merchants and money; "" is on.
const (
	MethodOff       = "off"
	MerchantStopped = "stopped"
	MoneyHeld       = "held"
)

// MoneyOut is the money that is sent out, payouts and refunds: while it is held,
// none is newly ordered from the bank.
const MoneyOut = "payouts and refunds"

// SwitchMove is one act of an operator, kept for ever.
type SwitchMove struct {
	Kind   SwitchKind
	Name   string // digits of a number, a method, the id of a project
	From   string
	To     string
	Reason string
	By     string // who, as their machine knows them
	At     time.Time
}

// Check refuses a move to where there is nothing.
func (m SwitchMove) Check() error {
	known := map[SwitchKind][]string{
		SwitchNumber: {string(NumberGoes), string(NumberDrains), string(NumberKill)}, SwitchMethod: {"", MethodOff}, SwitchMerchant: {"", MerchantStopped},
		SwitchMoney: {"", MoneyHeld},
	}
	for _, to := range known[m.Kind] {
		if m.To == to && m.Name != "" {
			return nil
		}
	}
	return Refuse(CodeInvalidField, "There is no switch of a %s %q to %q.", m.Kind, m.Name, m.To)
}
