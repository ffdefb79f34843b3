package checkout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// railLine is what the log keeps of a call to the bank and of its answer.
type railLine struct {
	Operation   string
	Attempt     flow.AttemptID
	Refund      flow.RefundID
	Method      flow.Method
	AmountMinor string
	Outcome     string
	Asked       bool  // what became of a refund; it was not told of it
	Millis      int64 `json:"ms"`
}

func (t teller) attempt(id flow.AttemptID) (flow.Attempt, bool) {
	i := slices.IndexFunc(t.attempts, func(a flow.Attempt) bool { return a.ID == id })
	if i < 0 {
		return flow.Attempt{}, false
	}
	return t.attempts[i], true
}

// calledTold tells what the bank is asked for.
func calledTold(l store.Line) string {
	var kept railLine
	if json.Unmarshal(l.Data, &kept) != nil {
		return unknown("a call to the bank", l.Kind)
	}
	switch kept.Operation {
	case "start":
		return fmt.Sprintf("%s was chosen. The bank is asked for %s.", sentence(methodTold(kept.Method)), instrument(kept.Method))
	case "disburse":
		amount := "money"
		if k, err := flow.ParseMinor(kept.AmountMinor); err == nil {
			amount = k.Naira()
		}
		return fmt.Sprintf("The bank is told to send %s back to who paid it.", amount)
	}
	return unknown("a call to the bank for", kept.Operation)
}

// answer tells what the bank answered to a call, and how fast.
func (t teller) answer(l store.Line) string {
	var kept railLine
	if json.Unmarshal(l.Data, &kept) != nil {
		return unknown("an answer of the bank", l.Kind)
	}
	took := fmt.Sprintf("%d ms", kept.Millis)
	if kept.Refund != "" {
		return t.refundAnswer(kept, took)
	}
	a, known := t.attempt(kept.Attempt)
	if kept.Outcome != "ok" {
		what := "instructions"
		if known {
			what = instrument(a.Method)
		}
		return fmt.Sprintf("The bank was asked for %s and %s. That took %s.", what, failed(kept.Outcome), took)
	}
	if !known || a.Instructions == nil {
		return fmt.Sprintf("The bank said how to pay, in %s.", took)
	}
	return fmt.Sprintf("%s chosen; %s was made in %s; it holds until %s.", sentence(methodTold(a.Method)), made(a), took, clock(a.ExpiresAt, l.At))
}

// refundAnswer tells what the bank said of a refund.
func (t teller) refundAnswer(kept railLine, took string) string {
	what := "a refund"
	if i := slices.IndexFunc(t.refunds, func(r flow.Refund) bool { return r.ID == kept.Refund }); i >= 0 {
		what = "the refund of " + t.refunds[i].Amount.Naira()
	}
	switch flow.DisbursementStatus(kept.Outcome) {
	case flow.DisbursementPending:
		if kept.Asked {
			return fmt.Sprintf("The bank was asked what became of %s, and it is still on its way. That took %s.", what, took)
		}
		return fmt.Sprintf("The bank has taken on %s, in %s. It says later whether the money was sent.", what, took)
	case flow.DisbursementDone:
		return fmt.Sprintf("The bank has sent %s. Its answer took %s.", what, took)
	case flow.DisbursementFailed:
		return fmt.Sprintf("The bank does not send %s. Its answer took %s.", what, took)
	}
	if kept.Asked {
		return fmt.Sprintf("The bank was asked what became of %s and %s. That took %s.", what, notAnswered(kept.Outcome), took)
	}
	return fmt.Sprintf("The bank was told of %s and %s. That took %s.", what, failed(kept.Outcome), took)
}

// instrument is what a method is paid to.
func instrument(m flow.Method) string {
	switch m {
	case flow.BankTransfer:
		return "an account number"
	case flow.USSD:
		return "a code to dial"
	case flow.Card:
		return "a page to pay by card"
	}
	return "instructions"
}

// made is what the bank made for an attempt.
func made(a flow.Attempt) string {
	ins := a.Instructions
	switch a.Method {
	case flow.BankTransfer:
		return fmt.Sprintf("account number %s at %s", ins.AccountNumber, ins.BankName)
	case flow.USSD:
		return fmt.Sprintf("payment code %s, to be dialled from %d banks,", ins.PaymentCode, len(ins.Banks))
	case flow.Card:
		return "a page to pay by card"
	}
	return "instructions"
}

// bankTold tells of money that a bank spoke of.
func bankTold(l store.Line) string {
	var n flow.Notice
	if json.Unmarshal(l.Data, &n) != nil || n.Kind == "" {
		return unknown("a word of the bank’s", l.Kind)
	}
	how := map[string]string{
		"bank." + fromNotice: "The bank tells us", "bank." + fromAnswer: "The bank, asked, answers", "bank." + fromStatement: "The bank’s statement of the day, and nothing before it, says",
	}[l.Kind]
	amount, at := n.Amount.Naira(), ""
	if n.PaidAt.UnixMilli() > 0 {
		at = ", with the time " + clock(n.PaidAt, l.At)
	}
	why := strings.TrimRight(n.Reason, ". ") // banks end their words as they like
	if why != "" {
		why = ": " + why
	}
	switch n.Kind {
	case flow.Credit:
		return fmt.Sprintf("%s that %s came by %s%s.", how, amount, methodTold(n.Channel), at)
	case flow.Declined:
		return fmt.Sprintf("%s that a payment of %s by %s was refused%s.", how, amount, methodTold(n.Channel), why)
	case flow.Reversal:
		return fmt.Sprintf("%s that it took %s back which had come%s%s.", how, amount, at, why)
	case flow.Pending:
		return fmt.Sprintf("%s that %s is on its way, and has not arrived.", how, amount)
	case flow.Returned:
		return fmt.Sprintf("%s that it sent %s back by itself%s. It never was ours.", how, amount, cmp.Or(why, ", and not why"))
	case flow.PaidOut:
		return fmt.Sprintf("%s that %s was sent out%s.", how, amount, at)
	case flow.PayoutFailed:
		return fmt.Sprintf("%s that %s was not sent, or came back%s.", how, amount, why)
	}
	return unknown("a word of the bank’s about", string(n.Kind))
}

// openedTold tells how a session began.
func openedTold(s flow.Session) string {
	how := "shown by the merchant itself"
	if s.Mode == flow.InChat {
		how = "paid in the chat"
	}
	return fmt.Sprintf("%s asked for %s, to be %s, until %s. Nobody called a bank for it.", s.Merchant, s.Amount.Naira(), how, clock(s.ExpiresAt, s.CreatedAt))
}

// matchTold tells what a payment was taken for.
func matchTold(p flow.Payment, s flow.Session, a flow.Attempt) string {
	told := fmt.Sprintf("%s came for this payment: %s. The bank’s time for it is %s", p.Amount.Naira(), meantBy(p, s), clock(p.PaidAt, p.ReceivedAt))
	if s.Status == flow.SessionCancelled { // it was open for less than its time
		return told + "."
	}
	told += "; the session was open until " + clock(s.ExpiresAt, p.ReceivedAt)
	if a.ID != "" {
		told += fmt.Sprintf(", the %s until %s", methodTold(a.Method), clock(a.ExpiresAt, p.ReceivedAt))
	}
	return told + "."
}

// resolvedTold tells what was decided about set-aside money.
func resolvedTold(p flow.Payment) string {
	what := unknown("a decision", string(p.Resolution))
	switch p.Resolution {
	case flow.ResolvedAccepted:
		what = "Money that had been set aside was given to the merchant"
	case flow.ResolvedRefunded:
		what = "Money that had been set aside goes back to who paid it"
	case flow.Unresolved:
	}
	switch p.ResolvedBy {
	case flow.ByPolicy:
		return what + ", because the policy of the session says so."
	case flow.ByClock:
		return what + ", because nobody decided in time."
	}
	return because(what+", as "+p.Decider()+" decided", p.ResolvedWhy)
}

// because ends a sentence with somebody's reason, where there is one: people end theirs
// as they like.
func because(told, why string) string {
	if why != "" {
		told += ": " + why
	}
	return strings.TrimRight(told, ". ") + "."
}

// wantedTold tells who wanted money sent back.
func wantedTold(b flow.Refund) string {
	told := b.Amount.Naira() + " is to go back to who paid it"
	switch b.Origin {
	case flow.OriginPolicy:
		return told + ", because the policy of the session says so."
	case flow.OriginClock:
		return told + ", because nobody decided in time."
	case flow.OriginMerchant:
		told += ", because the merchant’s own program asked for that"
	case flow.OriginResolve:
		told += ", because that was decided"
	}
	return because(told, b.Reason)
}

// postedTold tells one line of the books.
func postedTold(e flow.Entry, line flow.Posting) string {
	amount, more := line.Amount.Naira(), line.Amount > 0
	if !more {
		amount = (-line.Amount).Naira()
	}
	return fmt.Sprintf("In the books, %s: %s %s.", entryTold(e.Kind), amount, accountTold(line.Account, more))
}

// dayTold is a day in words.
func dayTold(d flow.Date) string { return d.Start().In(flow.Lagos).Format("2 January 2006") }

// settledTold tells that a session's money is in a settlement.
func settledTold(b flow.SettlementShare) string {
	told := fmt.Sprintf("%s of this payment is in the merchant’s settlement of %s (%s).", b.Net.Naira(), dayTold(b.SettlesOn), b.ID)
	if b.Net < 0 {
		told = fmt.Sprintf("%s of this payment was taken off the merchant’s settlement of %s (%s).", (-b.Net).Naira(), dayTold(b.SettlesOn), b.ID)
	}
	if b.Status != flow.SettlementFailed {
		return told
	}
	how := "which was not sent"
	if b.Returned {
		how = "which was sent, and came back"
	}
	return fmt.Sprintf("%s, %s: %s. The money goes with the payout after it.", strings.TrimSuffix(told, "."), how, strings.TrimRight(b.Failure, ". "))
}

// triedTold tells one try of a webhook.
func triedTold(t store.Tried) string {
	why := map[string]string{flow.CauseResend: ", sent again as somebody asked for it", flow.CauseReplay: ", sent again with others as somebody asked for it"}[t.Cause]
	told := fmt.Sprintf("The merchant’s server at %s was told %s (try %d%s)", hostOf(t), t.Kind, t.N, why)
	switch {
	case t.Status == 0:
		return fmt.Sprintf("%s, and gave no answer: %s. It is not taken as told.", told, words(t.Reason))
	case t.Status >= 200 && t.Status < 300:
		return fmt.Sprintf("%s and took it: it answered %d in %s.", told, t.Status, took(t.Took))
	}
	return fmt.Sprintf("%s and answered %d in %s, which is no yes. It is not taken as told.", told, t.Status, took(t.Took))
}

func took(d time.Duration) string {
	if d < time.Millisecond {
		return "less than 1 ms"
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// endTold tells where a session stands.
func endTold(s flow.Session) string {
	return fmt.Sprintf("As it stands: %s; %s of %s is paid.", statusTold(s.Status), s.AmountPaid.Naira(), s.Amount.Naira())
}
