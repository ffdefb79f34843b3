package console

import (
	"till/flow"
	"till/flow/checkout"
)

// overviewView is what the first page is given.
type overviewView struct {
	Sessions []flow.SessionRecord // the newest
	Balance  *flow.BalanceRecord
	Next     flow.Kobo // what the next payout has by now; negative where it is owed to us
	Blocked  string    // why there is none, "" where nothing is in the way
	Numbers  []flow.Number
	Stopped  []endpointRow // webhook endpoints that Till disabled, for who may mend them
}

// blockedTold says for people why nobody is paid out.
var blockedTold = map[string]string{
	flow.BlockedNoAccount: "it is not said yet to which account. An owner says it under Go live.",
	flow.BlockedStopped:   "this project is stopped. Ask the operator of this service.",
}

// newest is how many sessions the first page shows.
const newest = 8

// overview is GET /: how things stand, and what to do next.
func (c *Console) overview(v *visit) error {
	var out overviewView
	if board := c.cfg.Boards[v.env]; board != nil {
		out.Numbers = board.Numbers()
	}
	if v.project.ID != "" {
		views, _, err := v.service.List(v.ctx, v.project.ID, checkout.Filter{Limit: newest})
		if err != nil {
			return err
		}
		for _, one := range views {
			out.Sessions = append(out.Sessions, v.service.Record(one))
		}
		balance, err := v.service.Balance(v.ctx, v.project.ID)
		if err != nil {
			return err
		}
		out.Balance = &balance
		for _, minor := range []string{balance.PendingMinor, balance.AvailableMinor} { // what a payout that failed left goes with it
			kobo, err := flow.ParseMinor(minor)
			if err != nil {
				return err
			}
			out.Next += kobo
		}
		if balance.BlockedReason != nil && out.Next > 0 {
			out.Blocked = blockedTold[*balance.BlockedReason]
		}
		if out.Stopped, err = v.stopped(); err != nil {
			return err
		}
	}
	return v.show("overview", "Overview", out)
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
