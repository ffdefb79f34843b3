package console

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// queueWords are how people read a queue.
type queueWords struct {
	Name  string
	What  string
	Next  string
	Empty string
	Old   time.Duration // from when on something in it has waited too long
}

// soonEnough, withinADay and hoursLeft are from when on a wait is too long: of what machines should
// have done, and of what people decide.
const (
	soonEnough = 10 * time.Minute
	withinADay = 24 * time.Hour
	hoursLeft  = 20 * time.Hour // what waits for a second person is over after 24
)

var wordsOf = map[store.Queue]queueWords{
	store.QueueUnderpaid: {"Underpaid", "Some of the money came.", "While the session is open, wait for the rest. Once it is over, or where its policy sends too little back, decide on its page, or it goes back by itself a day later.", "Nobody has paid too little.", withinADay},
	store.QueueOverpaid:  {"Overpaid", "More came than was asked for.", "Accept what is too much, or send it back.", "Nobody has paid too much.", withinADay},
	store.QueueLate:      {"Late", "Money came after its session was over.", "Accept it, or send it back; after 24 hours it goes back by itself.", "Nothing came too late.", withinADay},
	store.QueueTwice:     {"Paid twice", "Money came after all was paid.", "Send it back, or accept it; after 24 hours it goes back by itself.", "Nobody has paid twice.", withinADay},
	store.QueueUnmatched: {"Unmatched", "Money came that belongs to no session.", "Find out whose it is, then accept it or send it back.", "All money is known.", withinADay},
	store.QueueSecond:    {"Second person", "Somebody asked for what becomes of much money.", "Somebody else who may move money agrees or refuses; after 24 hours nothing of it stands.", "Nothing waits for a second person.", hoursLeft},
	store.QueueRefunds:   {"Refunds", "Nobody knows what became of a refund, it came back, or the bank refused it again and again.", "Look at what the bank said, then send it once more, or say that it was paid by hand: on the session’s page, or here where it is of none.", "No refund needs a look.", withinADay},
	store.QueueWebhooks:  {"Dead webhooks", "A merchant could not be told; nothing tries any more.", "Mend the endpoint, then send the event again.", "Every event arrived or is still tried.", soonEnough},
	store.QueueStuck:     {"Stuck", "Money on its way, also to a merchant or back to a payer, a message or work that should have gone on by now.", "Ask the bank: on the session's page, or itself about a payout or refund; look whether WhatsApp is linked.", "Nothing is stuck.", soonEnough},
}

// queueTab is one queue in the list of them.
type queueTab struct {
	Queue store.Queue
	Words queueWords
	Count int
	More  bool // than are counted
	Since time.Time
	Old   bool
	Here  bool
}

// Held is what the sums of a queue are.
func (t queueTab) Held() string {
	if t.Queue == store.QueueUnderpaid {
		return "Left"
	}
	if t.Queue == store.QueueRefunds || t.Queue == store.QueueSecond { // of the merchant's money, too
		return "About"
	}
	return "Set aside"
}

// waitingRow is one thing in a queue.
type waitingRow struct {
	store.Waiting

	Of     string // the project's name
	Old    bool
	For    string // whose session it is about
	Payer  string // of money
	Asked  *asking
	Barred bool         // from being accepted: its project is stopped
	Refund *flow.Refund // of money that no session is of, which can be sent once more
}

// formed says whether the form of a queue stands beside a row of it: there is none where
// nothing can be decided, and what somebody asked for meanwhile has another.
func (r waitingRow) formed(queue store.Queue) bool {
	if queue == store.QueueSecond || r.Asked != nil {
		return queue == store.QueueSecond
	}
	return r.Refund != nil || queue == store.QueueUnmatched && r.Project != ""
}

// exceptionsView is what the page of what waits is given.
type exceptionsView struct {
	Tabs []queueTab
	Tab  queueTab
	Rows []waitingRow
	Next string
	All  bool
	CSRF string

	After string      // where this page of the queue begins
	Form  sessionView // a form that was refused, as it was filled in
	About string      // what that one is about
	Wrong string      // why it was refused, where the form stands here no more
}

// Typed is what was typed about a row in a form that was refused.
func (e exceptionsView) Typed(subject string) sessionView {
	if subject != e.About {
		return sessionView{}
	}
	return e.Form
}

// exceptions is GET /exceptions: what waits for somebody, the oldest first.
func (c *Console) exceptions(v *visit) error {
	return c.showExceptions(v, store.Queue(v.query("queue")), exceptionsView{})
}

// refusedThere shows the queue again beside which a form was refused, as it was filled
// in. subject is the row of the form.
func (c *Console) refusedThere(v *visit, err error, queue store.Queue, subject string) error {
	if err == nil {
		return nil
	}
	out := exceptionsView{About: subject, Form: sessionView{Reason: v.field("reason"), Transfer: v.field("transfer"), SentAt: v.field("sent")}}
	if !v.told(err, &out.Form) {
		return err
	}
	return c.showExceptions(v, queue, out)
}

func (c *Console) showExceptions(v *visit, asked store.Queue, out exceptionsView) error {
	now := v.service.Now()
	out.All, out.CSRF, out.After = v.project.ID == "", v.csrf(), v.query("after")
	var err error
	if out.Tabs, err = v.queues(now); err != nil {
		return err
	}
	here := -1
	for i, tab := range out.Tabs { // the first one that somebody waits in, unless one was asked for
		if tab.Queue == asked || here < 0 && tab.Count > 0 && wordsOf[asked].Name == "" {
			here = i
		}
	}
	here = max(here, 0)
	out.Tabs[here].Here = true
	out.Tab = out.Tabs[here]
	list, err := v.service.Reader().Waits(v.ctx, store.QueueFilter{Queue: out.Tab.Queue, Project: v.project.ID, After: out.After, Now: now, Limit: perPage + 1})
	if err != nil {
		return err
	}
	if len(list) > perPage {
		list = list[:perPage]
		out.Next = "/exceptions?" + url.Values{"queue": {string(out.Tab.Queue)}, "after": {list[perPage-1].Place}}.Encode()
	}
	for _, w := range list {
		row := waiting(v, out.Tab, w, now)
		if w.Session != "" {
			s, err := v.service.Reader().Session(v.ctx, w.Session)
			if err != nil {
				return err
			}
			row.For = strings.TrimSuffix(cmp.Or(s.CustomerName, s.CustomerEmail)+", "+s.Reference, ", ")
		}
		if out.Tab.Queue == store.QueueSecond {
			p, err := v.service.Reader().Proposal(v.ctx, flow.ProposalID(w.Subject))
			if err != nil {
				return err
			}
			if row.Asked, err = v.asking(p); err != nil {
				return err
			}
			row.Detail = ""
		}
		if w.Session == "" {
			if err := v.decided(&row, out.Tab.Queue); err != nil {
				return err
			}
		}
		out.Rows = append(out.Rows, row)
	}
	form := func(r waitingRow) bool { return r.Subject == out.About && r.formed(out.Tab.Queue) }
	if out.About != "" && !slices.ContainsFunc(out.Rows, form) {
		out.Wrong, out.About = out.Form.Wrong, ""
		v.keepsWords()
	}
	return v.show("exceptions", "Exceptions", out)
}

// decided reads what can be decided here about a row that no session's page is of, and
// what of that waits for a second person.
func (v *visit) decided(row *waitingRow, queue store.Queue) (err error) {
	if queue == store.QueueRefunds {
		if row.Refund, err = v.sendable(row.Waiting); err != nil {
			return err
		}
	}
	if queue != store.QueueRefunds && queue != store.QueueUnmatched {
		return nil
	}
	list, err := v.service.Reader().OpenProposals(v.ctx, row.Subject)
	if err != nil {
		return err
	}
	asked, err := v.askings(list)
	row.Asked = asked[row.Subject]
	return err
}

// sendable is a refund of money that no session is of, nil where nothing more is to be
// sent of it.
func (v *visit) sendable(w store.Waiting) (*flow.Refund, error) {
	r, err := v.service.Reader().Refund(v.ctx, flow.RefundID(w.Subject))
	if err != nil {
		return nil, err
	}
	p, err := v.service.Reader().Payment(v.ctx, r.Payment)
	if err != nil {
		return nil, err
	}
	if _, err := r.Retry(flow.Session{}, p, flow.Ruled{}); err != nil {
		return nil, nil //nolint:nilerr // that it cannot be sent is the answer
	}
	return &r, nil
}

// queues are all of them, and how much waits in each.
func (v *visit) queues(now time.Time) (list []queueTab, err error) {
	for _, queue := range store.Queues() {
		count, since, err := v.service.Reader().QueueSize(v.ctx, store.QueueFilter{Queue: queue, Project: v.project.ID, Now: now})
		if err != nil {
			return nil, err
		}
		list = append(list, queueTab{
			Queue: queue, Words: wordsOf[queue], Count: count, More: count >= manyWait, Since: since,
			Old: count > 0 && now.Sub(since) > wordsOf[queue].Old,
		})
	}
	return list, nil
}

// manyWait is how far queues are counted.
const manyWait = 1000

// waiting is a row for people.
func waiting(v *visit, tab queueTab, w store.Waiting, now time.Time) waitingRow {
	row := waitingRow{Waiting: w, Of: v.projectName(w.Project), Old: now.Sub(w.Since) > tab.Words.Old, Barred: v.barred(w.Project)}
	var payer flow.PaidBy
	if strings.HasPrefix(w.Detail, "{") && json.Unmarshal([]byte(w.Detail), &payer) == nil {
		row.Payer, row.Detail = strings.Join(strings.Fields(payer.Name+" "+payer.BankName+" "+payer.AccountNumberMasked), " "), ""
	}
	return row
}
