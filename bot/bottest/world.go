package bottest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// patience is how long the bank may take to say something.
const patience = 20 * time.Second

// kinds are the messages that are not text, as a conversation writes them.
func kinds() map[string]bot.Kind {
	return map[string]bot.Kind{
		"(picture)": bot.KindPicture, "(document)": bot.KindDocument, "(voice)": bot.KindVoice, "(video)": bot.KindVideo,
		"(sticker)": bot.KindSticker, "(place)": bot.KindPlace, "(contact)": bot.KindContact, "(poll)": bot.KindPoll,
		"(reaction)": bot.KindReaction, "(took back)": bot.KindRevoke, "(call)": bot.KindCall,
	}
}

// says is a payer sending something. A text may begin with what it is: an edit
// of the last one, something typed on the phone of our number, or an answer to
// the message of ours that begins with certain words.
func (s *Stage) says(payer, text string) {
	s.tb.Helper()
	s.turns++
	said := Saying{Payer: payer}
	text, said.Edit = strings.CutPrefix(text, "(edit) ")
	text, said.Own = strings.CutPrefix(text, "(typed on our phone) ")
	if rest, is := strings.CutPrefix(text, "(quoting "); is {
		quoted, rest, _ := strings.Cut(rest, ") ")
		text = rest
		for first, id := range s.said {
			if strings.HasPrefix(first, quoted) {
				said.Quoted = id
			}
		}
		if said.Quoted == "" {
			s.tb.Fatalf("nothing that was said begins with %q", quoted)
		}
	}
	for i, code := range s.codes {
		text = strings.ReplaceAll(text, fmt.Sprint("CODE", i+1), flow.ShowCode(code))
	}
	if len(s.codes) > 0 {
		text = strings.ReplaceAll(text, "CODE", flow.ShowCode(s.codes[len(s.codes)-1]))
	}
	said.Text = text
	for name, kind := range kinds() { // with a caption or without
		if caption, is := strings.CutPrefix(text, name); is {
			said.Kind, said.Text = kind, strings.TrimPrefix(caption, " ")
		}
	}
	s.net.Say(said)
}

// happens is what happens around the chat.
func (s *Stage) happens(words []string) {
	s.tb.Helper()
	ctx := s.tb.Context()
	amount := 0
	if len(words) > 1 {
		amount, _ = strconv.Atoi(strings.ReplaceAll(words[1], ",", ""))
	}
	switch words[0] {
	case "session": // amount in kobo, methods
		s.open(amount, 1, words[2:])
	case "policy": // under, over or late, and what is done then, for the sessions from now on
		s.policies(words[1], words[2])
	case "resolve": // accept or refund what waits for a decision
		s.resolves(words[1] == "accept")
	case "session-days": // amount in kobo, days, methods
		days, err := strconv.Atoi(words[2])
		s.must(err)
		s.open(amount, days, words[3:])
	case "again": // WhatsApp delivers the payer's last message once more
		s.net.Again()
	case "flushall":
		s.forget()
	case "wait":
		s.wait(words[1])
	case "pay", "pay-unheard", "pay-thrice", "pay-pending", "pay-arrives", "bank-sends", "pay-returned", "reverse", "ussd", "card", "bank":
		s.banks(words, flow.Kobo(amount))
	case "fades": // the payer makes messages of this chat disappear
		s.net.Fade(First, 24*time.Hour)
	case "agent": // claim, reply TEXT or release
		s.agent(words[1], strings.Join(words[2:], " "))
	case "merchant-cancels":
		_, err := s.Service.Cancel(ctx, s.session, s.call())
		s.must(err)
	case "merchant-refunds": // kobo, of what came last
		s.refunds(flow.Kobo(amount))
	case "by-hand": // a supporter says that the last refund was paid by hand
		s.byHand()
	case "calls": // how often the bank was called for this session
		calls, err := s.rail.Calls(ctx, 0, 100)
		s.must(err)
		n := len(slices.DeleteFunc(calls, func(c rail.Call) bool { return c.Session != string(s.session) }))
		if n != amount {
			s.tb.Errorf("the bank was called %d times, not %d", n, amount)
		}
	default:
		s.tb.Fatalf("the world cannot do %q", words)
	}
}

// wait moves the clock.
func (s *Stage) wait(text string) {
	s.tb.Helper()
	d, err := time.ParseDuration(text)
	s.must(err)
	s.pass(d)
	s.Service.Wake()
}

// banks is what happens at the bank.
func (s *Stage) banks(words []string, amount flow.Kobo) {
	s.tb.Helper()
	ctx := s.tb.Context()
	switch words[0] {
	case "pay": // kobo, to the account number in the chat; nothing: what is asked for
		s.transfer(rail.Transfer{AccountNumber: s.account, Amount: amount, SenderName: "BOLA ADE"}, 1)
	case "pay-unheard": // the bank's notice is lost
		s.transfer(rail.Transfer{AccountNumber: s.account, Drop: true}, 0)
	case "pay-thrice": // the bank tells three times of one transfer
		s.transfer(rail.Transfer{AccountNumber: s.account, Copies: 3}, 3)
	case "pay-pending": // kobo, or what is asked for: it is on its way for three minutes
		s.transfer(rail.Transfer{AccountNumber: s.account, Amount: amount, SenderName: "BOLA ADE", PendingMs: 180_000}, 0)
	case "bank-sends": // what it was ordered to send, and tells of it; then that it came back, where it bounces
		s.wait("1s")
		s.notices(1)
	case "pay-arrives": // the bank tells of what was on its way
		s.notices(1)
	case "pay-returned": // kobo: the bank sends it back by itself
		s.transfer(rail.Transfer{AccountNumber: s.account, Amount: amount, Returned: true}, 1)
	case "reverse": // the bank takes the last transfer back
		_, err := s.rail.Reverse(ctx, s.paid)
		s.must(err)
		s.notices(1)
	case "ussd":
		s.must(s.rail.CompleteUSSD(ctx, s.dial, words[1]))
		s.notices(1)
	case "card": // how it ends, of the attempt of this number; nothing: of the last
		attempts, err := s.db.Attempts(ctx, s.session)
		s.must(err)
		of := len(attempts)
		if len(words) > 2 {
			of, err = strconv.Atoi(words[2])
			s.must(err)
		}
		s.must(s.rail.CompleteCard(ctx, attempts[of-1].Reference, words[1]))
		s.notices(1)
	case "bank": // up or down; or up, and what it sends comes back, or is refused
		c := rail.Conditions{Up: words[1] != "down"}
		switch words[1] {
		case "bounces":
			c.Refunds = rail.FateBounce
		case "refuses":
			c.Refunds = rail.FateFail
		}
		_, err := s.rail.SetConditions(ctx, c)
		s.must(err)
	}
}

// agent is somebody of support who does something in the chat that waits
// longest.
func (s *Stage) agent(does, text string) {
	s.tb.Helper()
	ctx := s.tb.Context()
	queue, err := s.Service.Desk(ctx)
	s.must(err)
	if len(queue) == 0 {
		s.tb.Fatal("no chat waits for anybody")
	}
	switch does {
	case "claim":
		s.must(s.Service.Claim(ctx, queue[0].ID, "ngozi", 0))
	case "reply":
		s.must(s.Service.Reply(ctx, queue[0].ID, "ngozi", text, checkout.Call{}))
	case "release":
		s.must(s.Service.Release(ctx, queue[0].ID, "ngozi"))
	default:
		s.tb.Fatalf("an agent cannot %s", does)
	}
	s.Service.Wake()
}

func (s *Stage) transfer(t rail.Transfer, notices int) {
	s.tb.Helper()
	booked, err := s.rail.Transfer(s.tb.Context(), t)
	s.must(err)
	s.paid = booked.RailTransactionID
	s.notices(notices)
}

// notices waits until so many of the bank's notices were taken in.
func (s *Stage) notices(n int) {
	s.tb.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for range n {
		select {
		case <-s.told:
		case <-late.C:
			s.tb.Fatal("the bank's notice never came")
		}
	}
}

// policies sets a part of the policy of sessions.
func (s *Stage) policies(part, then string) {
	s.tb.Helper()
	at := map[string]*string{"under": &s.policy.Underpayment, "over": &s.policy.Overpayment, "late": &s.policy.LatePayment}[part]
	if at == nil {
		s.tb.Fatalf("a policy has no %q", part)
	}
	*at = then
}

// resolves decides about the first payment that waits for that.
func (s *Stage) resolves(accept bool) {
	s.tb.Helper()
	ctx := s.tb.Context()
	session, err := s.db.Session(ctx, s.session)
	s.must(err)
	payments, err := s.db.Payments(ctx, s.session)
	s.must(err)
	i := slices.IndexFunc(payments, func(p flow.Payment) bool { return p.Waits(session) })
	if i < 0 {
		s.tb.Fatalf("nothing waits for a decision: %+v", payments)
	}
	_, err = s.Service.Resolve(ctx, payments[i].ID, checkout.NewResolution{Accept: accept, Key: "wsp_key_1"}, s.callOfMoney())
	s.must(err)
}

// callOfMoney is a call that makes no session: the one that was opened last stays so.
func (s *Stage) callOfMoney() checkout.Call {
	c := s.call()
	c.Render = func(checkout.Made) (int, []byte, error) { return http.StatusOK, nil, nil }
	return c
}

// refunds is the merchant sending some of what came last back.
func (s *Stage) refunds(amount flow.Kobo) {
	s.tb.Helper()
	ctx := s.tb.Context()
	payments, err := s.db.Payments(ctx, s.session)
	s.must(err)
	_, err = s.Service.Refund(ctx, checkout.NewRefund{Payment: payments[len(payments)-1].ID, Amount: amount, Key: "wsp_key_1"}, s.callOfMoney())
	s.must(err)
}

// byHand is that a supporter paid the session's last refund by hand.
func (s *Stage) byHand() {
	s.tb.Helper()
	ctx := s.tb.Context()
	list, err := s.db.Refunds(ctx, store.RefundFilter{Project: "wsp_prj_1", Session: s.session, Limit: 1})
	s.must(err)
	_, err = s.Service.Order(ctx, list[0].Project, checkout.MoneyOrder{Act: flow.ActByHand, Subject: string(list[0].ID), Transfer: "FT-77", Key: "wsp_usr_1", By: "ngozi"})
	s.must(err)
	s.Service.Wake()
}

func (s *Stage) open(amount, days int, methods []string) {
	s.tb.Helper()
	n := checkout.NewSession{
		Merchant: "Ada Stores", Mode: flow.InChat, Amount: flow.Kobo(amount), CustomerEmail: "bola@example.com", Reference: "order-" + strconv.Itoa(s.turns+1),
		AllowedMethods: flow.Methods(), ExpiresIn: time.Duration(days) * 24 * time.Hour, Policy: s.policy,
	}
	if len(methods) > 0 {
		n.AllowedMethods = nil
		for _, m := range methods {
			n.AllowedMethods = append(n.AllowedMethods, flow.Method(m))
		}
	}
	_, err := s.Service.Open(s.tb.Context(), n, s.call())
	s.must(err)
}
