package main

import (
	"context"
	"fmt"

	"till/cmd/till/sealing"
	"till/flow"
	"till/flow/checkout"
)

// openVerifications wires the look-ups of both environments. Their peppers are
// kept with the accounts, away from what they protect.
func (a *app) openVerifications(ctx context.Context) error {
	a.verifications = map[flow.Environment]*checkout.Verifications{}
	for env, s := range map[flow.Environment]*checkout.Service{flow.Test: a.test, flow.Live: a.live} {
		pepper, err := a.kept(ctx, sealing.IdentityPepper(string(env)))
		if err != nil {
			return fmt.Errorf("open the verifications: %w", err)
		}
		if a.verifications[env], err = checkout.NewVerifications(s, pepper); err != nil {
			return err
		}
		a.running = append(a.running, a.verifications[env].Run)
	}
	return nil
}
