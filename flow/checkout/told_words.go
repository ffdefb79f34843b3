package checkout

import (
	"fmt"
	"strings"

	"till/flow"
)

func methodTold(m flow.Method) string {
	switch m {
	case flow.BankTransfer:
		return "bank transfer"
	case flow.USSD:
		return "USSD"
	case flow.Card:
		return "card"
	}
	return "a way of paying that is not named"
}

func statusTold(s flow.SessionStatus) string {
	switch s {
	case flow.SessionPending:
		return "the payment is waited for"
	case flow.SessionProcessing:
		return "money is on its way"
	case flow.SessionPaid:
		return "it is paid"
	case flow.SessionExpired:
		return "its time is over"
	case flow.SessionCancelled:
		return "it was cancelled"
	}
	return "the session is " + words(string(s))
}

// stateTold tells where a chat stands.
func stateTold(s flow.TalkState) string {
	switch s {
	case flow.Choosing:
		return "the payer is to choose how to pay"
	case flow.PickingBank:
		return "the payer is to choose a bank for USSD"
	case flow.Opening:
		return "the bank’s instructions are waited for"
	case flow.AwaitTransfer:
		return "the bank transfer is waited for"
	case flow.AwaitUSSD:
		return "the payment by USSD is waited for"
	case flow.AwaitCard:
		return "the payment by card is waited for"
	case flow.Verifying:
		return "the bank is being asked what came"
	case flow.PartPaid:
		return "some of the money is there, and the rest is waited for"
	case flow.Lapsed:
		return "the instructions are over, and the payer can have new ones"
	case flow.Paid:
		return "all is paid"
	case flow.Review:
		return "somebody has to look at the money"
	case flow.Closed:
		return "this payment is over in the chat"
	}
	return "the chat stands at “" + words(string(s)) + "”"
}

// heardTold tells how a message was understood, after "the payer".
func heardTold(in flow.Intent) string {
	switch in.Kind {
	case flow.MeansStop:
		return "wants no reminders any more"
	case flow.MeansResume:
		return "wants reminders again"
	case flow.MeansSecret:
		return "typed a card number, PIN or code, which was hidden and not kept"
	case flow.MeansCode:
		return "opens a payment with its code"
	case flow.MeansHuman:
		return "asks for a person"
	case flow.MeansCancel:
		return "wants to cancel"
	case flow.MeansConfirm:
		return "confirms that it is to be cancelled"
	case flow.MeansMenu:
		return "asks for the menu"
	case flow.MeansLanguage:
		if in.Lang != "" {
			return "wants another language: " + string(in.Lang)
		}
		return "asks for the languages"
	case flow.MeansBack:
		return "goes back to the payment before this one"
	case flow.MeansReceipt:
		return "wants the receipt once more"
	case flow.MeansWho:
		return "asks who this is"
	case flow.MeansMoney:
		return "asks where the money is"
	case flow.MeansTerms:
		return "asks what holds for this payment"
	case flow.MeansMethod:
		return "chooses " + methodTold(in.Method)
	case flow.MeansMaybe:
		return "perhaps chooses " + methodTold(in.Method) + ", and is asked about it"
	case flow.MeansYes:
		return "says yes"
	case flow.MeansNo:
		return "says no"
	case flow.MeansBank:
		return "chooses the bank with the code " + in.Bank
	case flow.MeansPaid:
		return "says that it is paid, which the bank is asked about and nobody believes before"
	case flow.MeansAgain:
		return "wants the details again"
	case flow.MeansOther:
		return "wants to pay another way"
	case flow.MeansThanks:
		return "says thanks"
	case flow.MeansWait:
		return "asks for time"
	case flow.MeansAbuse:
		return "is angry"
	case flow.MeansMedia:
		return "sent a picture or a file, which proves nothing"
	case flow.MeansUnread:
		return "sent what only a person could read: a voice note, a video, a sticker, a place or a contact"
	case flow.MeansCall:
		return "called, which this number does not take"
	case flow.MeansNote:
		return "reacted to a message, or changed one"
	case flow.MeansTakeover:
		return "is answered by somebody who typed on the phone of our own number"
	case flow.MeansNothing:
		return "was not understood"
	}
	return "means “" + words(string(in.Kind)) + "”, which this version of Till has no words for"
}

// newsTold tells a chat's news of what happened outside it.
func newsTold(n flow.News) string {
	amount := ""
	if money := n.Money(); money > 0 {
		amount = " (" + money.Naira() + ")"
	}
	chat := func(what string) string { return "The chat hears that " + what }
	why := func(what string) string { return strings.TrimSuffix(chat(what)+": "+n.Reason, ": ") }
	switch n.Kind {
	case flow.NewsOpened:
		return chat("the bank’s instructions are there")
	case flow.NewsRefused:
		return why("the bank cannot make instructions")
	case flow.NewsSlow:
		return chat("the bank takes its time")
	case flow.NewsPaid:
		return chat("all of the money is there" + amount)
	case flow.NewsPartial:
		return chat("some of the money is there" + amount)
	case flow.NewsExtra:
		return chat("more money came after all was paid" + amount)
	case flow.NewsLate:
		return chat("money came after the payment was over" + amount)
	case flow.NewsDeclined:
		return why("the bank refused the payment")
	case flow.NewsNothing:
		return chat("the bank, asked, knows of no money yet")
	case flow.NewsBankDown:
		return chat("the bank, asked, did not answer")
	case flow.NewsLapsed:
		return chat("the time of the instructions is over")
	case flow.NewsClosed:
		return chat("the time of the payment is over")
	case flow.NewsCancelled:
		return chat("the payment was cancelled")
	case flow.NewsStopped:
		return chat("the merchant asked for another way of paying")
	case flow.NewsComing:
		return chat("the bank, asked, says that money is on its way")
	case flow.NewsSentBack:
		return chat("the bank sent money back by itself" + amount)
	case flow.NewsReversed:
		return chat("the bank took money back that had come" + amount)
	case flow.NewsTooLittle:
		return chat("less came than was asked for, and goes back" + amount)
	case flow.NewsReturning:
		return chat("money that was set aside goes back" + amount)
	case flow.NewsRefunded:
		return chat("the bank has sent money back" + amount)
	case flow.NewsByHand:
		return chat("somebody has sent money back by hand" + amount)
	case flow.NewsBounced:
		return chat("money that the bank had sent back did not arrive, and came back" + amount)
	case flow.NewsUnsent:
		return chat("the bank refused to send back what was to go back" + amount)
	case flow.NewsKept:
		return chat("the merchant takes the money that was set aside" + amount)
	case flow.NewsTimer:
		return "A time came at which the chat does something by itself"
	case flow.NewsMuted, flow.NewsUnmuted:
		return "The payer said " + map[flow.NewsKind]string{flow.NewsMuted: "STOP", flow.NewsUnmuted: "START"}[n.Kind] + " to a number of ours"
	case flow.NewsClaimed:
		return n.By + " takes the chat over: the bot is silent, but for news of money"
	case flow.NewsReply:
		return n.By + " writes to the payer: “" + n.Reason + "”"
	case flow.NewsReleased:
		return n.By + " gives the chat back to the bot"
	case flow.NewsAgain:
		return n.By + " has the payer told once more where the payment stands"
	}
	return unknown("news of the kind", string(n.Kind))
}

// eventTold tells what a webhook says.
func eventTold(k flow.EventKind) string {
	switch k {
	case flow.ChargeSuccess:
		return "it is paid, and the goods can go out"
	case flow.ChargeFailed:
		return "the payment failed"
	case flow.ChargeExpired:
		return "nobody paid in time"
	case flow.ChargeCancelled:
		return "the payment was cancelled"
	case flow.ChargeUnderpaid:
		return "less came than was asked for"
	case flow.ChargeLate:
		return "money came when it was over"
	case flow.ChargeDuplicate:
		return "it was paid a second time, and the second waits for a decision"
	case flow.ChargeReversed:
		return "the bank took money back"
	case flow.SessionCreated:
		return "the session was opened"
	case flow.InstructionsIssued:
		return "the payer was told how to pay"
	case flow.SessionExpiredKind:
		return "the time of the session is over"
	case flow.SessionCancelKind:
		return "the session was cancelled"
	case flow.PaymentUnmatched:
		return "money came that belongs to no session"
	case flow.PaymentReversed:
		return "the bank took money back that belongs to no session"
	case flow.RefundPendingKind:
		return "money is to go back"
	case flow.RefundProcessedKind:
		return "money went back"
	case flow.RefundFailedKind:
		return "money could not be sent back"
	case flow.RefundAttentionKind:
		return "somebody must look at money that is to go back"
	case flow.SettlementSuccessKind:
		return "the merchant was paid out"
	case flow.SettlementFailedKind:
		return "the merchant could not be paid out"
	case flow.IdentityVerified:
		return "an identity was verified"
	case flow.IdentityFailed:
		return "an identity could not be verified"
	case flow.EndpointDisabledKind:
		return "an endpoint is sent nothing any more"
	case flow.Ping:
		return "only a test"
	}
	return "of which this version of Till has no words"
}

// entryTold tells what a transaction of the books is about.
func entryTold(k flow.EntryKind) string {
	switch k {
	case flow.EntryPayment:
		return "for money that came"
	case flow.EntryReversal:
		return "because the bank took money back"
	case flow.EntryAccept:
		return "because set-aside money was taken for the merchant"
	case flow.EntryRefund:
		return "because money is to go back"
	case flow.EntryRefundPaid:
		return "because money went back"
	case flow.EntryRefundFailed:
		return "because money could not be sent back"
	case flow.EntryRefundReturned:
		return "because money that went back came again"
	case flow.EntrySettle:
		return "because the merchant is paid out"
	case flow.EntrySettlePaid:
		return "because the merchant was paid out"
	case flow.EntrySettleFailed:
		return "because the merchant could not be paid out"
	case flow.EntrySettleReturned:
		return "because the merchant’s payout came back"
	}
	return "for what is called “" + words(string(k)) + "”"
}

// accountTold tells what a line of the books means; more says that its amount is
// positive.
func accountTold(a flow.LedgerAccount, more bool) string {
	pick := func(positive, negative string) string {
		if more {
			return positive
		}
		return negative
	}
	switch a {
	case flow.RailClearing:
		return pick("came in at the bank", "left the bank")
	case flow.MerchantPending:
		return pick("is no longer the merchant’s", "is the merchant’s, and waits for the day of its payout")
	case flow.MerchantAvailable:
		return pick("is no longer ready to be paid out", "is ready to be paid out to the merchant")
	case flow.Fees:
		return pick("of our fee was given back", "is our fee")
	case flow.Unapplied:
		return pick("is no longer set aside", "is set aside, for the rest of it or for a decision")
	case flow.RefundsPayable:
		return pick("is no longer on its way back", "is on its way back to who paid it")
	case flow.Settled:
		return pick("is no longer on its way to the merchant", "is on its way to the merchant’s own bank")
	}
	return fmt.Sprintf("was booked to “%s”", words(string(a)))
}

// ToldAct tells what somebody did in the console or on the command line, with the
// reason that they gave.
func ToldAct(a flow.Audited) string {
	if a.Refused() {
		return fmt.Sprintf("What %s wanted was refused, and not done: %s", a.Actor, a.Reason)
	}
	what := "did “" + a.Action + "”"
	if known, ok := acts[a.Action]; ok {
		what = known
	}
	for before, told := range map[string]string{"ask.": "asked to ", "agree.": "agreed, as the second person, to ", "refuse.": "refused to "} {
		if act, is := strings.CutPrefix(a.Action, before); is {
			what = told + OrderTold(flow.MoneyAct(act))
		}
	}
	if a.Reason == "" {
		return fmt.Sprintf("%s %s.", a.Actor, what)
	}
	return fmt.Sprintf("%s %s. Reason: %s", a.Actor, what, a.Reason)
}

// OrderTold tells what somebody wants done with money, after "asked to".
func OrderTold(a flow.MoneyAct) string {
	switch a {
	case flow.ActAccept:
		return "give set-aside money to the merchant"
	case flow.ActSendBack:
		return "send set-aside money back to who paid it"
	case flow.ActRetry:
		return "send a refund once more"
	case flow.ActByHand:
		return "take a refund for paid by hand"
	}
	return "do “" + words(string(a)) + "”"
}

// acts are the acts that belong to a session's story.
var acts = map[string]string{
	"phone.reveal":        "looked at the payer’s whole phone number",
	"session.note":        "left a note",
	"session.export":      "took the conversation away as a file",
	"session.cancel":      "cancelled the session",
	"session.expire":      "ended the session’s time",
	"instructions.resend": "had the payer told once more where the payment stands",
	"bank.ask":            "had the bank asked what came",
	"event.resend":        "had a webhook sent again",
	"payment.accept":      "gave set-aside money to the merchant",
	"payment.send_back":   "had set-aside money sent back",
	"refund.retry":        "had a refund sent once more",
	"settings.change":     "changed the settings of the project",
	"refund.done_by_hand": "said that a refund was paid by hand",
}
