package console

import (
	"log/slog"

	"till/flow"
)

// refused says what status answers something that was refused, as the log has it. Where
// it was kept as done beforehand, it is kept that it was not.
func (v *visit) refused(err error) int {
	status := v.console.cfg.Refused(v.http, err)
	row := v.kept
	v.kept = flow.Audited{}
	if err := v.console.cfg.Accounts.NotDone(v.ctx, row, err); err != nil {
		v.console.cfg.Log.LogAttrs(v.ctx, slog.LevelError, "it is not kept that something was refused", slog.String("person", v.who.Person), slog.String("action", row.Action),
			slog.String("subject", row.Subject), slog.String("error", err.Error()))
	}
	return status
}

// refuses gives a page that tells what was wrong with its form a status, and the log the
// code of that, as every refusal has one.
func (v *visit) refuses(status int, code flow.Code) {
	v.refusesFor(status, flow.Refuse(code, "the page of the form tells it"))
}

// refusesFor is refuses where it may be kept as done what is refused.
func (v *visit) refusesFor(status int, refusal *flow.Error) {
	v.refused(refusal)
	v.http.Status(status)
}
