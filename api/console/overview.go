package console

import (
	"slices"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// overviewView is what the first page is given.
type overviewView struct {
	owned

	Sessions []newSession // the newest
	Numbers  []numberView
	Stopped  []endpointRow // webhook endpoints that Till disabled, for who may mend them
	Waits    []queueTab    // in which something waits for somebody
	Inbox    inboxView     // for who may answer
	Came     *cameView
}

// newSession is a session, and what is said of its money that went back.
type newSession struct {
	flow.SessionRecord

	Back string
}

// cameView is the money that came in the last hours, this one among them, however it was matched.
type cameView struct {
	From     time.Time
	Payments int
	More     bool // came than were counted
	Amount   flow.Kobo
	Bars     []cameBar
	Top      cameBar // the highest
}

// cameBar is one hour of them, as a bar of the picture.
type cameBar struct {
	From         time.Time
	Amount       flow.Kobo
	X, Y, Height int
}

// The picture of money that came: its hours, how wide each is and how high the highest.
const (
	cameHours = 24
	barWide   = 10
	barHigh   = 40
)

// newest is how many sessions the first page shows.
const newest = 8

// overview is GET /: how things stand, and what to do next.
func (c *Console) overview(v *visit) error {
	out := overviewView{Numbers: c.numbers(v.env)}
	if v.project.ID != "" {
		views, _, err := v.service.List(v.ctx, v.project.ID, checkout.Filter{Limit: newest})
		if err != nil {
			return err
		}
		for _, one := range views {
			out.Sessions = append(out.Sessions, newSession{v.service.Record(one), wentBack(one.Session, one.Payments)})
		}
		if out.owned, err = v.owned(); err != nil {
			return err
		}
		if out.Stopped, err = v.stopped(); err != nil {
			return err
		}
		if out.Came, err = v.came(); err != nil {
			return err
		}
	}
	queues, err := v.queues(v.service.Now())
	if err == nil && v.who.Role.May(flow.MayAnswer) {
		out.Inbox, err = queueOf(v.ctx, v.service, v.project.ID)
	}
	if err != nil {
		return err
	}
	out.Waits = slices.DeleteFunc(queues, func(q queueTab) bool { return q.Count == 0 })
	return v.show("overview", "Overview", out)
}

// came is the money that came to a project by hour, up to now.
func (v *visit) came() (*cameView, error) {
	out := &cameView{From: v.service.Now().Truncate(time.Hour).Add(-(cameHours - 1) * time.Hour)}
	hours, err := v.service.Reader().CameByHour(v.ctx, v.project.ID, out.From)
	if err != nil {
		return nil, err
	}
	for _, h := range hours {
		bar := cameBar{From: h.From, Amount: h.Amount, X: int(h.From.Sub(out.From)/time.Hour) * barWide}
		out.Bars = append(out.Bars, bar)
		out.Payments, out.Amount = out.Payments+h.Payments, out.Amount+h.Amount
		if bar.Amount > out.Top.Amount {
			out.Top = bar
		}
	}
	for i := range out.Bars {
		b := &out.Bars[i]
		b.Height = max(int(barHigh*b.Amount/out.Top.Amount), 1)
		b.Y = barHigh - b.Height
	}
	out.More = out.Payments >= store.CameRead
	return out, nil
}

// stopped are the webhook endpoints that Till disabled; none for who may not mend them.
func (v *visit) stopped() (list []endpointRow, err error) {
	if !v.who.Role.May(flow.MayDevelop) {
		return nil, nil
	}
	endpoints, err := v.service.Endpoints(v.ctx, v.project.ID)
	for _, e := range endpoints {
		if e.Status == flow.EndpointDisabled && e.DisabledReason != flow.DisabledRequested {
			list = append(list, endpointRow{Endpoint: e})
		}
	}
	return list, err
}
