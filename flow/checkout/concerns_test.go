package checkout_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"till/flow"
	"till/flow/checkout"
)

// Somebody who looks for a session or a chat in the log finds all that is owed for it
// and goes wrong, and what the bank said of it: by whatever else its line is named.
func TestTheLogSaysWhichSessionAndChatWorkIsAbout(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		told := func(line string) {
			w.t.Helper()
			w.until("the log to say "+line, func() bool { return regexp.MustCompile(line).MatchString(w.logs.String()) })
		}
		w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
			return flow.Instructions{}, errors.New("half an answer")
		})
		session := w.session(flow.InChat)
		w.hear("ada", code(session))
		w.hear("ada", flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"})
		chat := string(w.chatOf("ada"))
		told(`level=WARN msg=task kind=rail.start subject=wsp_att_\w+ session=` + string(session.ID) + ` chat=` + chat + ` `)
		w.rail.set(func(r *shakyRail) { r.onStart = nil })

		paid, p := w.paidFor(500_000)
		told(`level=INFO msg="the bank said" kind=credit session=` + string(paid.ID) + ` transaction=` + p.RailTransactionID + ` `)
		w.must(w.tell(credit(p.RailTransactionID, w.attempts(paid.ID)[0].Reference, 900_000, w.clock())))
		told(`level=ERROR msg="a bank changed its mind.*payment=` + string(p.ID) + ` session=` + string(paid.ID) + ` `)
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) { panic("it is broken") }
		})
		r := w.ordered(p, 200_000)
		told(`level=\w+ msg=task kind=refund.send subject=` + string(r.ID) + ` session=` + string(paid.ID) + ` `)

		w.sending(func(checkout.Outgoing) error { return errors.New("no line") })
		w.hear("ada", flow.Intent{Kind: flow.MeansMenu, Text: "MENU"})
		told(`level=WARN msg=task kind=chat.say subject=` + chat + ` chat=` + chat + ` `)
	})
}
