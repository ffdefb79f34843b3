package meter_test

import (
	"os"
	"testing"
	"time"
)

// No alert comes before what it tells of: something has waited for as long, or is as far
// gone, as operators are told.
func TestNoAlertComesTooEarly(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(r *rig) // nil: that of the alert
		each  func(r *rig)
		quiet time.Duration // from then on
	}{
		"TillExceptionWaits":     {quiet: 10 * time.Minute},
		"TillExceptionForgotten": {fault: func(r *rig) { r.must(r.money()); r.passes(24*time.Hour - time.Minute) }, quiet: time.Minute},
		"TillWebhooksLate":       {quiet: 15 * time.Minute},
		"TillWebhooksHeld":       {quiet: 15 * time.Minute},
		"TillChatNotSent":        {quiet: 15 * time.Minute},
		"TillChatNobodyComes":    {quiet: 30 * time.Minute},
		"TillFiguresStale":       {quiet: 2 * time.Minute},
		"TillBackupOld":          {fault: func(r *rig) { r.old = 36*time.Hour - time.Minute }, quiet: time.Minute},
		"TillDiskFull":           {fault: func(r *rig) { r.free = 10 << 30 }, quiet: time.Minute},
		"TillClockWrong":         {fault: func(r *rig) { r.wrong = -2 * time.Second }, quiet: time.Minute},
		"TillCommitsSlow":        {each: func(r *rig) { r.commits(240 * time.Millisecond) }, quiet: 6 * time.Minute},
		"TillLogNotWrittenBack":  {fault: func(r *rig) { r.must(os.WriteFile(r.log, nil, 0o600)); r.must(os.Truncate(r.log, 192<<20)) }, quiet: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r, e := newRig(t), engine(t)
			f := faults[name]
			if f.before != nil && c.fault == nil {
				f.before(r)
			}
			r.goes(time.Minute, nil)
			switch {
			case c.fault != nil:
				c.fault(r)
			case c.each == nil:
				f.fault(r)
			}
			for range int(c.quiet / (15 * time.Second)) {
				r.goes(15*time.Second, func() {
					if c.each != nil {
						c.each(r)
					}
				})
				if r.kept.fires(t, e, rules(t)[name].Expr, r.clock()) {
					t.Fatalf("it fires at %s", r.clock())
				}
			}
		})
	}
	if waits := time.Duration(rules(t)["TillWhatsAppDown"].For); waits != 2*time.Minute {
		t.Errorf("that no number is connected is told after %s", waits)
	}
}
