package flow_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// situation is one way in which money can meet its session.
type situation struct {
	status flow.SessionStatus
	late   bool
	amount flow.Kobo
	held   flow.Kobo // from before
	policy flow.Policy
}

// money is the situation as the rules are asked about it.
func (x situation) money() flow.Money {
	s, a := open(), trying("t", flow.BankTransfer)
	s.ExpiresAt, s.Policy, s.Status, s.AmountPaid = a.ExpiresAt, x.policy, x.status, x.held
	m := flow.Money{Attempt: a, Payment: "new", Charge: "wsp_chg_1", Now: noon.Add(2 * time.Hour)}
	if x.held > 0 {
		part := flow.Payment{ID: "part", Project: s.Project, Session: s.ID, Attempt: "t", Amount: x.held, Unapplied: x.held, Match: flow.Partial}
		s = s.With(flow.PartiallyPaid)
		if !s.Open() {
			part.ReturnsAt = noon.Add(26 * time.Hour)
		}
		m.Payments = []flow.Payment{part}
	}
	switch x.status {
	case flow.SessionPaid:
		s.AmountPaid, m.Attempt.Status = s.Amount, flow.AttemptSucceeded
		m.Payments = []flow.Payment{{ID: "first", Session: s.ID, Amount: s.Amount, Applied: s.Amount, Fee: flow.Fee(s.Amount), Match: flow.Matched}}
	case flow.SessionExpired:
		m.Attempt.Status = flow.AttemptExpired
	case flow.SessionCancelled:
		m.Attempt.Status = flow.AttemptSuperseded
	case flow.SessionPending, flow.SessionProcessing:
	}
	at := noon
	if x.late {
		at = noon.Add(time.Hour)
	}
	m.Session, m.Others, m.Notice = s, []flow.Attempt{m.Attempt}, credit("rail-1", x.amount, at)
	return m
}

// told is a change in a few lines for people; s and p are as they were before.
func told(c flow.Change, s flow.Session, p flow.Payment) string {
	if c.Session != nil {
		s = *c.Session
	}
	if c.Payment != nil {
		p = *c.Payment
	}
	var facts, news, back, released []string
	entries := append([]flow.Entry{}, c.Entries...)
	for _, changed := range c.Payments {
		if changed.ID == p.ID {
			p = changed
			continue
		}
		released = append(released, fmt.Sprintf("%s %s waits %s", changed.ID, cmp.Or(string(changed.Resolution), "-"), changed.Unapplied.Naira()))
	}
	for _, f := range c.Facts {
		facts = append(facts, string(f.Kind))
	}
	for _, n := range c.News {
		news = append(news, string(n.Kind))
	}
	for _, r := range c.Returns {
		refund, err := flow.NewRefund(s, flow.Payment{ID: p.ID, Amount: p.Amount, Match: p.Match}, flow.RefundAsk{ID: "wsp_rfd_1", Amount: r.Amount, Aside: r.Amount}, noon)
		if err != nil {
			panic(err)
		}
		if refund.Session != nil {
			s = *refund.Session
		}
		back = append(back, fmt.Sprintf("%s of %s (%s)", r.Amount.Naira(), r.Payment, r.Origin))
	}
	var b strings.Builder
	waits := "-"
	if !p.ReturnsAt.IsZero() {
		waits = fmt.Sprintf("for %s", p.ReturnsAt.Sub(noon.Add(2*time.Hour)))
	}
	fmt.Fprintf(&b, "      %s %s: taken %s, fee %s, set aside %s, goes back by itself %s\n", p.Match, cmp.Or(string(p.Resolution), "-"), p.Applied.Naira(), p.Fee.Naira(), p.Unapplied.Naira(), waits)
	fmt.Fprintf(&b, "      session %s with %s %v; told %s; chat %s; sent back %s\n", s.Status, s.AmountPaid.Naira(), s.Exceptions, cmp.Or(strings.Join(facts, " "), "-"), cmp.Or(strings.Join(news, " "), "-"), cmp.Or(strings.Join(back, ", "), "-"))
	if c.Postings != nil {
		entries = append([]flow.Entry{{Kind: flow.EntryPayment, Subject: string(p.ID), Postings: c.Postings}}, entries...)
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "      ledger %s %s:", e.Kind, e.Subject)
		for _, line := range e.Postings {
			fmt.Fprintf(&b, " %s %s", line.Account, line.Amount.Naira())
		}
		b.WriteString("\n")
	}
	if len(released) > 0 {
		fmt.Fprintf(&b, "      with it: %s\n", strings.Join(released, ", "))
	}
	return b.String()
}

// dimensions are the parts of a policy and what each can be.
var dimensions = []struct {
	name   string
	values []string
	set    func(p *flow.Policy, v string)
}{
	{"under", []string{"hold", "accept", "refund"}, func(p *flow.Policy, v string) { p.Underpayment = v }},
	{"over", []string{"accept", "refund_excess"}, func(p *flow.Policy, v string) { p.Overpayment = v }},
	{"late", []string{"review", "accept", "refund"}, func(p *flow.Policy, v string) { p.LatePayment = v }},
}

// policies are all policies, by what each part of them says.
func policies() (all []flow.Policy, said [][]string) {
	all, said = []flow.Policy{{}}, [][]string{nil}
	for _, d := range dimensions {
		var nextAll []flow.Policy
		var nextSaid [][]string
		for i, p := range all {
			for _, v := range d.values {
				d.set(&p, v)
				nextAll, nextSaid = append(nextAll, p), append(nextSaid, append(slices.Clone(said[i]), v))
			}
		}
		all, said = nextAll, nextSaid
	}
	return all, said
}

// byPolicy writes what comes of something under each policy, naming only the
// parts of the policy that it depends on.
func byPolicy(outcome func(flow.Policy) string) string {
	all, said := policies()
	var outcomes []string
	for _, p := range all {
		outcomes = append(outcomes, outcome(p))
	}
	matters := make([]bool, len(dimensions))
	for i := range all {
		for j := range all {
			var differ []int
			for d := range dimensions {
				if said[i][d] != said[j][d] {
					differ = append(differ, d)
				}
			}
			if len(differ) == 1 && outcomes[i] != outcomes[j] {
				matters[differ[0]] = true
			}
		}
	}
	var b strings.Builder
	seen := map[string]bool{}
	for i := range all {
		var name []string
		for d, dim := range dimensions {
			if matters[d] {
				name = append(name, dim.name+"="+said[i][d])
			}
		}
		if head := strings.Join(name, " "); !seen[head] {
			seen[head] = true
			if head == "" {
				head = "whatever the policy"
			}
			fmt.Fprintf(&b, "    %s\n%s", head, outcomes[i])
		}
	}
	return b.String()
}

// Every case under every policy, for people to read and to agree with.
func TestGoldenOutcomesOfMoney(t *testing.T) {
	var b strings.Builder
	b.WriteString("Every way in which money can meet a session of ₦5,000, under every policy.\nparts of the policy that make no difference are not named.\n")
	said := map[bool]string{false: "on time", true: "late"}
	for _, status := range []flow.SessionStatus{flow.SessionPending, flow.SessionExpired, flow.SessionCancelled, flow.SessionPaid} {
		for _, late := range []bool{false, true} {
			for _, held := range []flow.Kobo{0, 200_000} {
				if held > 0 && status == flow.SessionPaid {
					continue
				}
				due := 500_000 - held
				for _, amount := range []flow.Kobo{due - 100_000, due, due + 100_000} {
					fmt.Fprintf(&b, "\n%s, %s comes %s", status, amount.Naira(), said[late])
					if held > 0 {
						fmt.Fprintf(&b, ", %s is held", held.Naira())
					}
					b.WriteString("\n" + byPolicy(func(p flow.Policy) string {
						m := situation{status, late, amount, held, p}.money()
						c, err := flow.Settle(m)
						if err != nil {
							t.Fatalf("%+v: %v", m, err)
						}
						if flow.Sum(c.Postings) != 0 {
							t.Errorf("%s %d under %+v: the ledger is off", status, amount, p)
						}
						return told(c, m.Session, flow.Payment{})
					}))
				}
			}
		}
	}
	golden(t, "money_outcomes.txt", b.String())
}

// resolvable are payments that some money became, and what is known of each.
func resolvable() map[string]func(flow.Policy) (flow.Money, flow.Payment) {
	settled := func(x situation) func(flow.Policy) (flow.Money, flow.Payment) {
		return func(p flow.Policy) (flow.Money, flow.Payment) {
			over := p.Overpayment
			x.policy = flow.DefaultPolicy()
			m := x.money()
			c, err := flow.Settle(m)
			if err != nil {
				panic(err)
			}
			if c.Session != nil {
				m.Session = *c.Session
			}
			m.Session.Policy.Overpayment = over
			m.Attempt, m.Others = trying("t", flow.BankTransfer), nil
			for _, changed := range c.Payments {
				m.Payments[slices.IndexFunc(m.Payments, func(x flow.Payment) bool { return x.ID == changed.ID })] = changed
			}
			m.Payments = append(m.Payments, *c.Payment)
			return m, *c.Payment
		}
	}
	part := func(status flow.SessionStatus) func(flow.Policy) (flow.Money, flow.Payment) {
		return func(flow.Policy) (flow.Money, flow.Payment) {
			m := situation{status, false, 1, 200_000, flow.DefaultPolicy()}.money()
			return m, m.Payments[0]
		}
	}
	return map[string]func(flow.Policy) (flow.Money, flow.Payment){
		"LATE, less than is due":                    settled(situation{flow.SessionExpired, true, 300_000, 0, flow.Policy{}}),
		"LATE, all that is due":                     settled(situation{flow.SessionExpired, true, 500_000, 0, flow.Policy{}}),
		"LATE, more than is due":                    settled(situation{flow.SessionExpired, true, 600_000, 0, flow.Policy{}}),
		"LATE, all that is due beside a held part":  settled(situation{flow.SessionExpired, true, 300_000, 200_000, flow.Policy{}}),
		"LATE, less than is due beside a held part": settled(situation{flow.SessionExpired, true, 100_000, 200_000, flow.Policy{}}),
		"LATE for what is cancelled":                settled(situation{flow.SessionCancelled, false, 500_000, 0, flow.Policy{}}),
		"EXCESS":                                    settled(situation{flow.SessionPending, false, 600_000, 0, flow.Policy{}}),
		"DUPLICATE":                                 settled(situation{flow.SessionPaid, false, 500_000, 0, flow.Policy{}}),
		"MATCHED":                                   settled(situation{flow.SessionPending, false, 500_000, 0, flow.Policy{}}),
		"PARTIAL, the session is open":              part(flow.SessionPending),
		"PARTIAL, the session expired":              part(flow.SessionExpired),
		"PARTIAL, the session was cancelled":        part(flow.SessionCancelled),
		"UNMATCHED": func(flow.Policy) (flow.Money, flow.Payment) {
			p := flow.Payment{ID: "new", Project: "wsp_prj_1", Amount: 500_000, Unapplied: 500_000, Match: flow.Unmatched}
			return flow.Money{Now: noon.Add(2 * time.Hour)}, p
		},
	}
}

// What becomes of set-aside money once its merchant, or the clock, decides.
func TestGoldenResolutionsOfMoney(t *testing.T) {
	var b strings.Builder
	all := resolvable()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, how := range []string{"accepted", "refunded", "a day later", "once more"} {
			fmt.Fprintf(&b, "%s: %s\n%s\n", name, how, byPolicy(func(policy flow.Policy) string {
				m, p := all[name](policy)
				r := flow.Ruled{By: "wsp_key_1", At: m.Now, Reason: "As agreed"}
				var c flow.Change
				var err error
				switch how {
				case "a day later":
					c = flow.Overdue(m.Session, p, p.ReturnsAt)
					if early := flow.Overdue(m.Session, p, p.ReturnsAt.Add(-time.Millisecond)); len(early.Payments) > 0 {
						t.Errorf("%s goes back too early: %+v", name, early)
					}
					if len(c.Payments) == 0 {
						return "      nothing happens\n"
					}
				case "once more":
					p.Resolution = flow.ResolvedAccepted
					c, err = flow.Resolve(m, p, true, r)
				default:
					c, err = flow.Resolve(m, p, how == "accepted", r)
				}
				if err != nil {
					return "      refused: " + err.Error() + "\n"
				}
				for _, e := range c.Entries {
					if flow.Sum(e.Postings) != 0 {
						t.Errorf("%s %s: the ledger is off", name, how)
					}
				}
				return told(c, m.Session, p)
			}))
		}
	}
	golden(t, "money_resolutions.txt", b.String())
}
