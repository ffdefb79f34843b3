package flow_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"till/flow"
)

// ask asks for a method.
func ask(m flow.Method) flow.Ask {
	return flow.Ask{Method: m, ID: "wsp_att_new", Reference: "wsp_ref_new", Chat: "chat_1"}
}

func TestBegin(t *testing.T) {
	half := noon.Add(30 * time.Minute)
	for _, c := range []struct {
		name     string
		session  func(*flow.Session)
		attempts []flow.Attempt
		ask      func(*flow.Ask)
		served   []flow.Method
		now      time.Time
		code     flow.Code // of the refusal, "" for none
		got      flow.AttemptID
		expires  time.Time
		changed  string // statuses of the changed attempts
	}{
		{name: "a first ask makes an attempt of half an hour", got: "wsp_att_new", expires: half, changed: "ACTIVE"},
		{name: "it lasts as long as asked for", ask: func(a *flow.Ask) { a.Lasts = time.Hour }, got: "wsp_att_new", expires: noon.Add(time.Hour), changed: "ACTIVE"},
		{name: "it never outlasts its session", session: func(s *flow.Session) { s.ExpiresAt = noon.Add(time.Minute) }, got: "wsp_att_new", expires: noon.Add(time.Minute), changed: "ACTIVE"},
		{name: "asked again it is the same one", attempts: []flow.Attempt{leftIn("chat_1", flow.AttemptActive)}, got: "a", expires: half},
		{name: "one that REST asked for is the chat's that asks for it first", attempts: []flow.Attempt{leftIn("", flow.AttemptActive)}, got: "a", expires: half, changed: "ACTIVE"},
		{name: "another chat's makes room for one of its own", attempts: []flow.Attempt{leftIn("chat_2", flow.AttemptActive)}, got: "wsp_att_new", expires: half, changed: "SUPERSEDED ACTIVE"},
		{name: "while the bank still makes another chat's it is waited for", attempts: []flow.Attempt{unmade("chat_2")}, got: "a", expires: half},
		{name: "REST is shown what a chat asked for", attempts: []flow.Attempt{leftIn("chat_2", flow.AttemptActive)}, ask: func(a *flow.Ask) { a.Chat = "" }, got: "a", expires: half},
		{name: "one that was switched away from is taken up again", attempts: []flow.Attempt{leftIn("chat_1", flow.AttemptSuperseded)}, got: "a", expires: half, changed: "ACTIVE"},
		{name: "REST's that was switched away from too", attempts: []flow.Attempt{leftIn("", flow.AttemptSuperseded)}, got: "a", expires: half, changed: "ACTIVE"},
		{name: "another chat's that was switched away from is not", attempts: []flow.Attempt{leftIn("chat_2", flow.AttemptSuperseded)}, got: "wsp_att_new", expires: half, changed: "ACTIVE"},
		{
			name: "nor is one whose time is over", attempts: []flow.Attempt{leftIn("chat_1", flow.AttemptSuperseded)}, now: half,
			got: "wsp_att_new", expires: half.Add(30 * time.Minute), changed: "ACTIVE",
		},
		{
			name: "nor one of another amount", attempts: []flow.Attempt{leftIn("chat_1", flow.AttemptSuperseded)},
			session: func(s *flow.Session) { s.AmountPaid = 450_000 }, got: "wsp_att_new", expires: half, changed: "ACTIVE",
		},
		{name: "another method's attempt is not in the way", attempts: []flow.Attempt{trying("a", flow.Card)}, got: "wsp_att_new", expires: half, changed: "ACTIVE"},
		{
			name: "one that lapsed unnoticed is ended first", attempts: []flow.Attempt{trying("a", flow.BankTransfer)}, now: half,
			got: "wsp_att_new", expires: half.Add(30 * time.Minute), changed: "EXPIRED ACTIVE",
		},
		{
			name: "one that asks for more than is due is replaced", attempts: []flow.Attempt{trying("a", flow.BankTransfer)},
			session: func(s *flow.Session) { s.AmountPaid = 450_000 }, got: "wsp_att_new", expires: half, changed: "SUPERSEDED ACTIVE",
		},
		{name: "a paid session is refused", session: func(s *flow.Session) { s.Status = flow.SessionPaid }, code: flow.CodeSessionPaid},
		{name: "an expired session is refused", session: func(s *flow.Session) { s.Status = flow.SessionExpired }, code: flow.CodeSessionExpired},
		{name: "a cancelled session is refused", session: func(s *flow.Session) { s.Status = flow.SessionCancelled }, code: flow.CodeSessionCancelled},
		{name: "a session that is over and not swept yet is refused", now: noon.Add(24 * time.Hour), code: flow.CodeSessionExpired},
		{name: "one that money is on its way to is refused too", session: func(s *flow.Session) { s.Status = flow.SessionProcessing }, now: noon.Add(24 * time.Hour), code: flow.CodeSessionExpired},
		{name: "a method that the session does not allow is refused", session: func(s *flow.Session) { s.AllowedMethods = []flow.Method{flow.Card} }, code: flow.CodeMethodNotAllowed},
		{name: "a method that the bank does not serve is refused", served: []flow.Method{flow.Card}, code: flow.CodeRailUnavailable},
		{name: "USSD over its limit is refused", ask: func(a *flow.Ask) { a.Method = flow.USSD }, session: func(s *flow.Session) { s.Amount = flow.MaxUSSD + 100 }, code: flow.CodeMethodNotAllowed},
		{name: "USSD of kobo is refused", ask: func(a *flow.Ask) { a.Method = flow.USSD }, session: func(s *flow.Session) { s.Amount = 500_001 }, code: flow.CodeMethodNotAllowed},
		{name: "USSD at its limit is served", ask: func(a *flow.Ask) { a.Method = flow.USSD }, session: func(s *flow.Session) { s.Amount = flow.MaxUSSD }, got: "wsp_att_new", expires: half, changed: "ACTIVE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, q, served, now := open(), ask(flow.BankTransfer), flow.Methods(), noon
			if c.session != nil {
				c.session(&s)
			}
			if c.ask != nil {
				c.ask(&q)
			}
			if c.served != nil {
				served = c.served
			}
			if !c.now.IsZero() {
				now = c.now
			}
			a, change, err := flow.Begin(s, c.attempts, q, served, now)
			if c.code != "" {
				if flow.CodeOf(err) != c.code || len(change.Attempts) != 0 {
					t.Fatalf("%v, changed %d", err, len(change.Attempts))
				}
				return
			}
			changed := ""
			for i, x := range change.Attempts {
				changed += " "[:min(i, 1)] + string(x.Status)
			}
			if err != nil || a.ID != c.got || !a.ExpiresAt.Equal(c.expires) || changed != c.changed || a.Status != flow.AttemptActive {
				t.Fatalf("%+v, changed %q, %v", a, changed, err)
			}
			if len(c.attempts) > 0 && c.got == c.attempts[0].ID && a.Chat != cmp.Or(c.attempts[0].Chat, q.Chat) {
				t.Errorf("it is %q's", a.Chat)
			}
			if c.got == q.ID && (a.Amount != s.Outstanding() || a.Reference != q.Reference || a.Chat != q.Chat || a.Instructions != nil) {
				t.Errorf("made %+v", a)
			}
		})
	}
}

// leftIn is an account that was asked for in a chat and is in a state now.
func leftIn(chat flow.ChatID, status flow.AttemptStatus) flow.Attempt {
	a := trying("a", flow.BankTransfer)
	a.Chat, a.Status = chat, status
	return a
}

// unmade is one that the bank has not answered to yet.
func unmade(chat flow.ChatID) flow.Attempt {
	a := leftIn(chat, flow.AttemptActive)
	a.Instructions = nil
	return a
}

func TestTheChatsHearOfInstructionsThatLapsedUnnoticed(t *testing.T) {
	_, change, err := flow.Begin(open(), []flow.Attempt{trying("a", flow.BankTransfer)}, ask(flow.BankTransfer), flow.Methods(), noon.Add(time.Hour))
	if err != nil || len(change.News) != 1 || change.News[0].Kind != flow.NewsLapsed || change.News[0].Attempt != "a" {
		t.Errorf("%+v %v", change.News, err)
	}
}

func TestStarted(t *testing.T) {
	bare := trying("a", flow.BankTransfer)
	ins := *bare.Instructions
	bare.Instructions = nil
	t.Run("the answer is kept and told", func(t *testing.T) {
		c := flow.Started(open(), bare, ins)
		if len(c.Attempts) != 1 || c.Attempts[0].Instructions.AccountNumber != "9012345678" || len(c.Facts) != 1 || c.Facts[0].Kind != flow.InstructionsIssued ||
			len(c.News) != 1 || c.News[0].Kind != flow.NewsOpened || bare.Instructions != nil {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a bank that gives less time is believed, one that gives more is not", func(t *testing.T) {
		for _, c := range []struct{ gives, want time.Duration }{{10 * time.Minute, 10 * time.Minute}, {time.Hour, 30 * time.Minute}} {
			given := ins
			given.ExpiresAt = noon.Add(c.gives)
			if got := flow.Started(open(), bare, given).Attempts[0]; !got.ExpiresAt.Equal(noon.Add(c.want)) {
				t.Errorf("given %v it ends %v", c.gives, got.ExpiresAt)
			}
		}
		given := ins
		given.ExpiresAt = time.Time{}
		if got := flow.Started(open(), bare, given).Attempts[0]; !got.ExpiresAt.Equal(bare.ExpiresAt) {
			t.Errorf("given no end it ends %v", got.ExpiresAt)
		}
	})
	t.Run("a second answer changes nothing", func(t *testing.T) {
		if c := flow.Started(open(), trying("a", flow.BankTransfer), flow.Instructions{AccountNumber: "0000000000"}); len(c.Attempts)+len(c.News)+len(c.Facts) != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("an answer that comes too late is kept, and nobody is invited to pay it", func(t *testing.T) {
		for _, status := range []flow.AttemptStatus{flow.AttemptExpired, flow.AttemptSuperseded, flow.AttemptFailed} {
			late := bare
			late.Status = status
			c := flow.Started(open(), late, ins)
			if len(c.Attempts) != 1 || c.Attempts[0].Instructions == nil || c.Attempts[0].Status != status || len(c.News)+len(c.Facts) != 0 {
				t.Errorf("%s: %+v", status, c)
			}
		}
	})
}

func TestTheEndsOfAnAttempt(t *testing.T) {
	bare := trying("a", flow.Card)
	bare.Instructions = nil
	over := bare.ExpiresAt
	refused := func(a flow.Attempt) (flow.Change, error) { return flow.Refused(a, "no such bank") }
	declined := func(a flow.Attempt) (flow.Change, error) {
		return flow.Decline(open(), a, flow.Notice{Kind: flow.Declined, Reason: "insufficient funds"})
	}
	lapse := func(now time.Time) func(flow.Attempt) (flow.Change, error) {
		return func(a flow.Attempt) (flow.Change, error) { return flow.Lapse(a, []flow.Attempt{a}, now) }
	}
	for _, c := range []struct {
		name    string
		do      func(flow.Attempt) (flow.Change, error)
		attempt flow.Attempt
		want    flow.AttemptStatus // "" for no change
		news    flow.NewsKind
		reason  string
	}{
		{"a rail that refuses fails it", refused, bare, flow.AttemptFailed, flow.NewsRefused, "no such bank"},
		{"a rail cannot refuse what it answered", refused, trying("a", flow.Card), "", "", ""},
		{"a decline fails it and says why", declined, trying("a", flow.Card), flow.AttemptFailed, flow.NewsDeclined, "insufficient funds"},
		{"a decline fails one that was switched away from", declined, leftBy(trying("a", flow.Card)), flow.AttemptFailed, flow.NewsDeclined, "insufficient funds"},
		{"it does not lapse a moment early", lapse(over.Add(-time.Nanosecond)), bare, "", "", ""},
		{"it lapses at its end", lapse(over), bare, flow.AttemptExpired, flow.NewsLapsed, ""},
		{"another method supersedes it in silence", flow.Supersede, bare, flow.AttemptSuperseded, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			change, err := c.do(c.attempt)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(change.Attempts)+len(change.News)+len(change.Facts) != 0 {
					t.Errorf("%+v", change)
				}
				return
			}
			if len(change.Attempts) != 1 || change.Attempts[0].Status != c.want || change.Attempts[0].Reason != c.reason {
				t.Fatalf("%+v", change.Attempts)
			}
			news := flow.NewsKind("")
			for _, n := range change.News {
				news = n.Kind
			}
			if news != c.news || len(change.News) > 0 && change.News[0].Attempt != "a" {
				t.Errorf("news %q", news)
			}
			if told := len(change.Facts) == 1 && change.Session != nil && change.Facts[0] == (flow.Fact{Kind: flow.ChargeFailed, Attempt: "a"}); told != (c.news == flow.NewsDeclined) {
				t.Errorf("the merchant is told %+v", change.Facts)
			}
			for _, status := range []flow.AttemptStatus{flow.AttemptSucceeded, flow.AttemptFailed, flow.AttemptExpired, flow.AttemptSuperseded} {
				done := c.attempt
				if done.Status = status; status == flow.AttemptSuperseded && c.news == flow.NewsDeclined {
					continue
				}
				if again, err := c.do(done); err != nil || len(again.Attempts)+len(again.News)+len(again.Facts) != 0 {
					t.Errorf("%s changed once more: %+v %v", status, again, err)
				}
			}
		})
	}
}

// leftBy is an attempt that was switched away from.
func leftBy(a flow.Attempt) flow.Attempt {
	a.Status = flow.AttemptSuperseded
	return a
}

// A chat whose instructions gave way to another chat's is told when they are over, and
// nobody is told of those that somebody switched away from.
func TestInstructionsThatGaveWayToAnotherChatsLapseToo(t *testing.T) {
	mine, other := leftBy(trying("a", flow.Card)), trying("b", flow.Card)
	mine.Chat, other.Chat = "ada", "obi"
	own, ofREST, transfer := other, other, other
	own.Chat, ofREST.Chat, transfer.Method = "ada", "", flow.BankTransfer
	for _, c := range []struct {
		name string
		by   flow.Attempt
		at   time.Time
		told int
	}{
		{"another chat's", other, mine.ExpiresAt, 1},
		{"another chat's, a moment early", other, mine.ExpiresAt.Add(-time.Nanosecond), 0},
		{"its own", own, mine.ExpiresAt, 0},
		{"one of REST", ofREST, mine.ExpiresAt, 0},
		{"another chat's other method", transfer, mine.ExpiresAt, 0},
	} {
		change, err := flow.Lapse(mine, []flow.Attempt{mine, c.by}, c.at)
		if err != nil || len(change.News) != c.told || len(change.Attempts) != 0 {
			t.Errorf("%s: %+v %v", c.name, change, err)
		}
	}
}

func TestADeclineOfASessionThatIsOverIsNotTold(t *testing.T) {
	for _, status := range []flow.SessionStatus{flow.SessionPaid, flow.SessionExpired, flow.SessionCancelled} {
		s := open()
		s.Status = status
		c, err := flow.Decline(s, trying("a", flow.Card), flow.Notice{Reason: "no"})
		if err != nil || len(c.Facts)+len(c.News) != 0 || len(c.Attempts) != 1 {
			t.Errorf("%s: %+v %v", status, c, err)
		}
		if c, err = flow.Decline(s, leftBy(trying("a", flow.Card)), flow.Notice{Reason: "no"}); err != nil || len(c.Attempts) != 0 {
			t.Errorf("%s, one that ended with it: %+v %v", status, c, err)
		}
	}
}

func TestTheEndsOfASession(t *testing.T) {
	all := []flow.Attempt{trying("a", flow.BankTransfer), trying("b", flow.Card)}
	all[1].Status = flow.AttemptFailed
	expire := func(s flow.Session) (flow.Change, error) { return flow.Expire(s, all, nil, s.ExpiresAt) }
	cancel := func(s flow.Session) (flow.Change, error) { return flow.Cancel(s, all, nil, noon) }
	for _, c := range []struct {
		name    string
		do      func(flow.Session) (flow.Change, error)
		status  flow.SessionStatus
		attempt flow.AttemptStatus
		facts   []flow.EventKind
		news    flow.NewsKind
	}{
		{"its time ends it", expire, flow.SessionExpired, flow.AttemptExpired, []flow.EventKind{flow.SessionExpiredKind, flow.ChargeExpired}, flow.NewsClosed},
		{"it is cancelled", cancel, flow.SessionCancelled, flow.AttemptSuperseded, []flow.EventKind{flow.SessionCancelKind, flow.ChargeCancelled}, flow.NewsCancelled},
	} {
		for _, charged := range []bool{false, true} {
			s := open()
			s.ChargeAsked = charged
			change, err := c.do(s)
			if err != nil || change.Session.Status != c.status || len(change.Attempts) != 1 || change.Attempts[0].Status != c.attempt ||
				len(change.News) != 1 || change.News[0].Kind != c.news || s.Status != flow.SessionPending {
				t.Errorf("%s: %+v %v", c.name, change, err)
			}
			want := c.facts[:1]
			if charged {
				want = c.facts
			}
			var got []flow.EventKind
			for _, f := range change.Facts {
				got = append(got, f.Kind)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: told %v", c.name, got)
			}
		}
	}
	for _, status := range []flow.SessionStatus{flow.SessionPaid, flow.SessionExpired, flow.SessionCancelled} {
		s := open()
		s.Status = status
		if change, err := flow.Expire(s, all, nil, s.ExpiresAt); err != nil || change.Session != nil {
			t.Errorf("%s expired: %+v %v", status, change, err)
		}
		if _, err := cancel(s); flow.CodeOf(err) != flow.CodeNotCancellable {
			t.Errorf("%s was cancelled: %v", status, err)
		}
	}
	waits, soon := heldPart("a"), heldPart("b") // a refused refund waits for the second
	waits.ReturnsAt, soon.ReturnsAt = time.Time{}, open().ExpiresAt.Add(time.Hour)
	change, err := flow.Expire(open(), all, []flow.Payment{waits, soon, came(flow.Matched)}, open().ExpiresAt)
	if err != nil || len(change.Payments) != 1 || change.Payments[0].ID != "a" || !change.Payments[0].ReturnsAt.Equal(open().ExpiresAt.Add(24*time.Hour)) {
		t.Errorf("what is held goes back a day later: %+v %v", change.Payments, err)
	}
	busy := open()
	busy.Status = flow.SessionProcessing
	if _, err := cancel(busy); flow.CodeOf(err) != flow.CodeNotCancellable {
		t.Errorf("money is on its way, and it was cancelled: %v", err)
	}
	if change, err := flow.Expire(open(), all, nil, open().ExpiresAt.Add(-time.Nanosecond)); err != nil || change.Session != nil {
		t.Errorf("expired a moment early: %+v %v", change, err)
	}
}

func TestTheOffersOfASession(t *testing.T) {
	lapsed, done, opening := trying("a", flow.BankTransfer), trying("b", flow.Card), trying("c", flow.BankTransfer)
	lapsed.Status, done.Status, opening.Instructions = flow.AttemptExpired, flow.AttemptSucceeded, nil
	for _, c := range []struct {
		name     string
		session  func(*flow.Session)
		attempts []flow.Attempt
		served   []flow.Method
		want     string
	}{
		{"all can be had", nil, nil, flow.Methods(), "bank_transfer:available ussd:available card:available"},
		{"in their order, whatever order was asked for", func(s *flow.Session) { s.AllowedMethods = []flow.Method{flow.Card, flow.BankTransfer} }, nil, flow.Methods(), "bank_transfer:available card:available"},
		{"live instructions are active", nil, []flow.Attempt{trying("a", flow.BankTransfer)}, flow.Methods(), "bank_transfer:active ussd:available card:available"},
		{"instructions that are not there yet are not", nil, []flow.Attempt{opening}, flow.Methods(), "bank_transfer:available ussd:available card:available"},
		{"nor are those that lapsed", nil, []flow.Attempt{lapsed}, flow.Methods(), "bank_transfer:available ussd:available card:available"},
		{"nor a page that asks for more than is left: there is another to be had", func(s *flow.Session) { s.AmountPaid = 200_000 }, []flow.Attempt{trying("a", flow.Card)}, flow.Methods(), "bank_transfer:available ussd:available card:available"},
		{"nor a code, where no other can be had for what is left", func(s *flow.Session) { s.AmountPaid = 100_050 }, []flow.Attempt{trying("a", flow.USSD)}, flow.Methods(), "bank_transfer:available ussd:unavailable(whole_naira_only) card:available"},
		{"nothing can be asked for once its time is over, though money is on its way", func(s *flow.Session) { s.Status, s.ExpiresAt = flow.SessionProcessing, noon }, []flow.Attempt{lapsed}, flow.Methods(), "bank_transfer:unavailable(session_expired) ussd:unavailable(session_expired) card:unavailable(session_expired)"},
		{"what is dear cannot be dialled", func(s *flow.Session) { s.Amount = flow.MaxUSSD + 100 }, nil, flow.Methods(), "bank_transfer:available ussd:unavailable(amount_above_maximum) card:available"},
		{"nor can kobo", func(s *flow.Session) { s.Amount++ }, nil, flow.Methods(), "bank_transfer:available ussd:unavailable(whole_naira_only) card:available"},
		{"what the bank does not serve cannot be had", nil, nil, []flow.Method{flow.USSD}, "bank_transfer:unavailable(rail_down) ussd:available card:unavailable(rail_down)"},
		{"nothing of a paid session can", func(s *flow.Session) { s.Status = flow.SessionPaid }, []flow.Attempt{done}, flow.Methods(), "bank_transfer:unavailable(session_paid) ussd:unavailable(session_paid) card:completed"},
		{"nothing of an expired one", func(s *flow.Session) { s.Status = flow.SessionExpired }, nil, flow.Methods(), "bank_transfer:unavailable(session_expired) ussd:unavailable(session_expired) card:unavailable(session_expired)"},
	} {
		s := open()
		if c.session != nil {
			c.session(&s)
		}
		got := ""
		for i, o := range flow.Offers(s, c.attempts, c.served, noon) {
			got += " "[:min(i, 1)] + string(o.Method) + ":" + string(o.Status)
			if o.Reason != "" {
				got += "(" + o.Reason + ")"
			}
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}
