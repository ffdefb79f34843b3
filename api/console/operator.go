package console

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// operatorPages are what operators handle: numbers, switches, KYC and the audit log.
func operatorPages() []Page {
	get, post, may := http.MethodGet, http.MethodPost, flow.MayOperate
	return []Page{
		{Method: get, Path: "/ops", Right: may, do: (*Console).ops},
		{Method: get, Path: "/ops/live", Right: may, do: (*Console).opsLive},
		{Method: post, Path: "/ops/numbers/:slot/switch", Right: may, do: (*Console).switchNumber},
		{Method: post, Path: "/ops/numbers/:slot/bounds", Right: may, do: (*Console).boundNumber},
		{Method: post, Path: "/ops/methods/:method", Right: may, do: (*Console).switchMethod},
		{Method: get, Path: "/ops/merchants", Right: may, do: (*Console).merchants},
		{Method: get, Path: "/ops/merchants/:id", Right: may, do: (*Console).merchant},
		{Method: post, Path: "/ops/merchants/:id/kyc", Right: may, do: (*Console).ruleMerchant},
		{Method: post, Path: "/ops/merchants/:id/switch", Right: may, do: (*Console).switchMerchant},
		{Method: get, Path: "/ops/doctor", Right: may, do: (*Console).doctor},
		{Method: get, Path: "/ops/audit", Right: may, do: (*Console).audit},
		{Method: get, Path: "/ops/audit.csv", Right: may, do: (*Console).auditFile},
		{Method: get, Path: "/ops/people", Right: may, do: (*Console).operators},
		{Method: post, Path: "/ops/people", Right: may, do: (*Console).addOperator},
		{Method: post, Path: "/ops/people/:id/end", Right: may, do: (*Console).endOperator},
	}
}

// Part is what one part of the server answered to "are you ready?".
type Part struct {
	Name   string
	OK     bool
	Needed bool   // nothing is served without it
	Reason string // why it is not OK
}

// State is how the part stands, as its badge says.
func (p Part) State() string {
	switch {
	case p.OK:
		return "ok"
	case p.Needed:
		return "fail"
	}
	return "warn"
}

// movesShown is how many acts of operators the page shows.
const movesShown = 50

// opsView is what the page of operations is given.
type opsView struct {
	Now     opsNow
	Methods []methodView
	Stopped []flow.Project
	Moves   []flow.SwitchMove
	typed
}

// typed is a form that is shown again after a mistake, as it was typed.
type typed struct {
	Wrong  []string
	Form   string // which of the page's forms
	Reason string
}

// Of is the reason that was typed in a form.
func (t typed) Of(form string) string {
	if t.Form == form {
		return t.Reason
	}
	return ""
}

// In says whether the mistake was in a form, which is shown open then.
func (t typed) In(form string) bool { return t.Form == form }

type methodView struct {
	Method flow.Method
	On     bool
}

// opsNow is the live part of the page.
type opsNow struct {
	Parts   []Part
	Numbers []numberView
	QR      template.HTML // what is to be scanned now, "" for nothing
}

// numberView is a number as operators see it.
type numberView struct {
	flow.Number

	State  flow.NumberState
	Began  time.Time // the state; zero where nobody knows
	Advice string
	Full   bool // of new chats, for today
}

// Form names the number's form.
func (n numberView) Form() string { return "number-" + strconv.Itoa(n.Slot) }

// Waits says whether the number takes no new chats, by an operator's will.
func (n numberView) Waits() bool { return n.Switch != flow.NumberGoes }

// ops is GET /ops.
func (c *Console) ops(v *visit) error { return c.showOps(v, typed{}) }

func (c *Console) showOps(v *visit, t typed) error {
	out := opsView{Now: c.opsNow(v.ctx, v.env), typed: t}
	if board := c.cfg.Boards[v.env]; board != nil {
		on := board.Served(flow.Methods(), "")
		for _, m := range flow.Methods() {
			out.Methods = append(out.Methods, methodView{m, slices.Contains(on, m)})
		}
		for _, id := range board.StoppedProjects() {
			out.Stopped = append(out.Stopped, flow.Project{ID: flow.ProjectID(id), Name: v.projectName(flow.ProjectID(id))})
		}
		var err error
		if out.Moves, err = board.Moves(v.ctx, movesShown); err != nil {
			return err
		}
		slices.Reverse(out.Moves)
	}
	return v.show("ops", "Operations", out)
}

// opsNow is how everything stands.
func (c *Console) opsNow(ctx context.Context, env flow.Environment) opsNow {
	out := opsNow{Numbers: c.numbers(env)}
	if c.cfg.Ready != nil {
		out.Parts = c.cfg.Ready(ctx)
	}
	if env == flow.Test && c.cfg.Pairing != nil {
		if text, waits := c.cfg.Pairing(); waits {
			out.QR = qrSVG(text)
		}
	}
	return out
}

// numbers are the numbers of an environment as they stand now, whatever they said last.
func (c *Console) numbers(env flow.Environment) (list []numberView) {
	board := c.cfg.Boards[env]
	if board == nil {
		return nil
	}
	now := c.cfg.Real()
	for _, n := range board.Numbers() {
		state := n.At(now)
		list = append(list, numberView{Number: n, State: state, Began: n.Began(now), Advice: state.Advice(), Full: n.DailyChats > 0 && n.ChatsToday >= n.DailyChats})
	}
	return list
}

// readyEvery is how often the parts are asked while somebody looks on: it costs
// each of them some work.
const readyEvery = 2 * time.Second

// opsLive is GET /ops/live.
func (c *Console) opsLive(v *visit) error {
	if err := v.ofHere(); err != nil {
		return err
	}
	env := v.env
	var asked time.Time
	var last []byte
	return v.live(func(ctx context.Context) ([]byte, error) {
		if now := c.cfg.Real(); last == nil || now.Sub(asked) >= readyEvery {
			asked = now
			part, err := v.part("ops", "now", c.opsNow(ctx, env))
			if err != nil {
				return nil, err
			}
			last = part
		}
		return last, nil
	})
}

// reason is why, in one line of what is seen.
func (v *visit) reason() string { return flow.OneLine(v.field("reason")) }

// mistaken says whether an error is one of whoever filled the form in: it is
// shown there.
func mistaken(err error) bool {
	code := flow.CodeOf(err)
	return code == flow.CodeInvalidField || code == flow.CodeMissingField
}

// act is what a form of the operators orders.
type act struct {
	form            string // which of the page's forms
	action, subject string // as the audit log keeps it
	sure            bool   // it hurts: a tick says that it is meant
}

// act does what a form orders, once it is kept who did it and why.
func (*Console) act(v *visit, a act, do func(reason string) error, again func(typed) error) error {
	t := typed{Form: a.form, Reason: v.reason()}
	err := error(nil)
	if a.sure && v.field("confirm") != "yes" {
		err = flow.Refuse(flow.CodeMissingField, "Nothing was done: tick that you mean it.")
	}
	if err == nil {
		err = v.audit(a.action, a.subject, t.Reason, true)
	}
	if err == nil {
		err = do(t.Reason)
	}
	if own, ok := errors.AsType[*flow.Error](err); ok && mistaken(err) {
		t.Wrong = []string{own.Message}
		v.refusesFor(http.StatusUnprocessableEntity, own)
		return again(t)
	}
	return err
}

// number finds the number of a form.
func (c *Console) number(v *visit) (*checkout.Board, flow.Number, error) {
	if board := c.cfg.Boards[v.env]; board != nil {
		for _, n := range board.Numbers() {
			if strconv.Itoa(n.Slot) == v.http.Params("slot") {
				return board, n, nil
			}
		}
	}
	return nil, flow.Number{}, flow.Refuse(flow.CodeNotFound, "There is no such number in the %s environment.", v.env)
}

// switchNumber is POST /ops/numbers/{slot}/switch.
func (c *Console) switchNumber(v *visit) error {
	board, n, err := c.number(v)
	if err != nil {
		return err
	}
	orders := map[string]flow.NumberSwitch{"drain": flow.NumberDrains, "kill": flow.NumberKill, "resume": flow.NumberGoes}
	what := v.field("to")
	to, known := orders[what]
	if !known || n.Digits == "" {
		return flow.Refuse(flow.CodeInvalidField, "A number that is linked can be drained, killed or resumed.")
	}
	done := map[string]string{
		"drain": "gets no new chats; those that are open go on.", "kill": "sends nothing and answers nothing now. What payers write is kept.", "resume": "does everything again.",
	}
	return c.act(v, act{"number-" + strconv.Itoa(n.Slot), "number." + what, n.Digits, to == flow.NumberKill}, func(reason string) error {
		if _, err := board.Move(v.ctx, flow.SwitchMove{Kind: flow.SwitchNumber, Name: n.Digits, To: string(to), Reason: reason, By: v.who.Email}); err != nil {
			return err
		}
		return v.to("/ops", "+"+n.Digits+" "+done[what])
	}, func(t typed) error { return c.showOps(v, t) })
}

// The bounds of a number's bounds.
const (
	mostWeight     = 1000
	mostDailyChats = 1_000_000
)

// boundNumber is POST /ops/numbers/{slot}/bounds.
func (c *Console) boundNumber(v *visit) error {
	board, n, err := c.number(v)
	if err != nil {
		return err
	}
	weight, bad := strconv.Atoi(v.field("weight"))
	daily, worse := strconv.Atoi(cmp.Or(v.field("dailyChats"), "0"))
	form := "number-" + strconv.Itoa(n.Slot)
	again := func(t typed) error { return c.showOps(v, t) }
	if bad != nil || worse != nil || weight < 0 || weight > mostWeight || daily < 0 || daily > mostDailyChats {
		v.refuses(http.StatusUnprocessableEntity, flow.CodeInvalidField)
		return again(typed{
			Form: form, Reason: v.reason(),
			Wrong: []string{"The weight is a number from 0 to 1000, and the new chats a day one from 0 (for any number of them) to 1000000."},
		})
	}
	return c.act(v, act{form, "number.bounds", cmp.Or(n.Digits, strconv.Itoa(n.Slot)), false}, func(string) error {
		if err := board.Bound(v.ctx, n.Slot, weight, daily); err != nil {
			return err
		}
		return v.to("/ops", "The number's share of new chats is set.")
	}, again)
}

// switchMethod is POST /ops/methods/{method}.
func (c *Console) switchMethod(v *visit) error {
	board, m := c.cfg.Boards[v.env], flow.Method(v.http.Params("method"))
	if board == nil || !slices.Contains(flow.Methods(), m) {
		return flow.Refuse(flow.CodeNotFound, "There is no such method.")
	}
	to, action, done := flow.MethodOff, "method.off", "is offered nowhere now. What is paid is kept."
	if v.field("to") == "on" {
		to, action, done = "", "method.on", "is offered again."
	}
	return c.act(v, act{"method-" + string(m), action, string(m), to != ""}, func(reason string) error {
		if _, err := board.Move(v.ctx, flow.SwitchMove{Kind: flow.SwitchMethod, Name: string(m), To: to, Reason: reason, By: v.who.Email}); err != nil {
			return err
		}
		return v.to("/ops", plain(m)+" "+done)
	}, func(t typed) error { return c.showOps(v, t) })
}
