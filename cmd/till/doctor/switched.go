package doctor

import (
	"context"
	"maps"
	"slices"

	"till/flow"
	"till/flow/store"
)

// switched tells what operators, or a restore, switched off and nobody switched on
// again: of money that is held merchants hear nothing but that it does not come.
func (l *look) switched(ctx context.Context) {
	all := true
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		var at map[flow.SwitchKind]map[string]string
		err := l.reads(ctx, env, func(ctx context.Context, r store.Reader) (err error) {
			at, err = r.Switches(ctx)
			return err
		})
		if err != nil {
			return // a database that is away, or was never made, is told already
		}
		live := ""
		if env == flow.Live {
			live = " --live"
		}
		if at[flow.SwitchMoney][flow.MoneyOut] == flow.MoneyHeld {
			all = false
			l.warn("No payout and no refund of the "+string(env)+" environment is newly ordered from the bank: they are held.",
				"till ledger release"+live+"   (after a look at what the bank sent: till ledger release --help)")
		}
		for _, method := range slices.Sorted(maps.Keys(at[flow.SwitchMethod])) {
			all = false
			l.warn("Nobody of the "+string(env)+" environment is offered "+method+": it is switched off.", "till methods on "+method+live)
		}
	}
	if all {
		l.ok("Payouts, refunds and every method are switched on.")
	}
}
