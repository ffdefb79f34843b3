package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"till/flow"
)

// clockCmd is about the clock of the test environment.
type clockCmd struct {
	Advance clockAdvanceCmd `cmd:"" help:"Move the test clock forward; it never goes back."`
	Now     clockNowCmd     `cmd:"" default:"withargs" help:"Say what time it is in the test environment."`
}

type (
	clockAdvanceCmd struct {
		calling

		By time.Duration `arg:"" help:"How far, as 31m or 24h."`
	}
	clockNowCmd struct{ calling }
)

func (clockAdvanceCmd) Help() string {
	return "Example:\n\n    till clock advance 31m\n\nThe clock is that of the whole test environment, of every project. Test keys only; a server on the real WhatsApp, which many share, refuses."
}

func (clockNowCmd) Help() string { return "Example:\n\n    till clock" }

// Run moves the clock.
func (c *clockAdvanceCmd) Run(w *world) error {
	if c.By < time.Second {
		return usageError{errors.New("the clock moves by a second or more, and only forward")}
	}
	return c.move(w, c.By)
}

// Run says what time it is.
func (c *clockNowCmd) Run(w *world) error { return c.move(w, 0) }

// move moves the clock and says what time it is then.
func (r *calling) move(w *world, by time.Duration) error {
	to, err := r.pretend()
	if err != nil {
		return err
	}
	now, err := to.clock(w.ctx, by)
	if err != nil {
		return err
	}
	return printDone(w, r.JSON, map[string]string{"now": flow.Stamp(now)}, "%s  (%s)\n", flow.Stamp(now), stamp(now))
}

// clock moves the test clock forward, by nothing too, and returns its time.
func (c *client) clock(ctx context.Context, by time.Duration) (time.Time, error) {
	var told struct{ Now time.Time }
	err := c.post(ctx, "/v1/test/clock", map[string]int64{"advanceSeconds": int64(by / time.Second)}, &told)
	return told.Now, err
}

// chaosCmd is about what goes wrong.
type chaosCmd struct {
	Rail chaosRailCmd `cmd:"" help:"Have the sandbox bank behave badly, until it is told otherwise."`
}

// chaosRailCmd sets what the bank does.
type chaosRailCmd struct {
	calling

	Down                bool          `help:"It does not answer."`
	TimeoutAfterSuccess bool          `help:"It does what it is asked, and then never answers."`
	Latency             time.Duration `help:"It answers so much later, at most 30s." placeholder:"2s"`
	Loss                int           `help:"So many percent of its notices are lost." placeholder:"PERCENT"`
	Duplicates          int           `help:"So many percent of its notices come twice." placeholder:"PERCENT"`
	Refunds             string        `help:"What becomes of refunds: ok, fail, reject, pending or bounce." enum:"ok,fail,reject,pending,bounce" default:"ok"`
	Payouts             string        `help:"What becomes of settlements: ok, fail, reject, pending or bounce." enum:"ok,fail,reject,pending,bounce" default:"ok"`
	Off                 bool          `help:"All is well again."`
}

func (chaosRailCmd) Help() string {
	return "Example:\n\n    till chaos rail --timeout-after-success --loss 20\n    till chaos rail --refunds fail\n    till chaos rail --off\n\n" +
		"What is not named is well again. The bank is that of the whole test environment, of every project. Test keys only; till serve on the real WhatsApp, which many share, heals it alone."
}

const conditionsPath = "/v1/test/bank/conditions"

// Run sets the bank's conditions.
func (c *chaosRailCmd) Run(w *world) error {
	wanted := map[string]any{}
	if c.Down {
		wanted["up"] = false
	}
	if c.TimeoutAfterSuccess {
		wanted["timeoutAfterCommit"] = true
	}
	if c.Latency != 0 {
		wanted["latencyMs"] = c.Latency.Milliseconds()
	}
	for name, percent := range map[string]int{"notifyLossPercent": c.Loss, "duplicatePercent": c.Duplicates} {
		if percent != 0 {
			wanted[name] = percent
		}
	}
	for name, fate := range map[string]string{"refunds": c.Refunds, "payouts": c.Payouts} {
		if fate != "ok" {
			wanted[name] = fate
		}
	}
	if c.Off == (len(wanted) > 0) {
		return usageError{errors.New("say what the bank does wrong, or --off, and not both")}
	}
	to, err := c.pretend()
	if err != nil {
		return err
	}
	var now json.RawMessage
	if err := to.call(w.ctx, http.MethodPut, conditionsPath, wanted, &now); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, now)
	}
	if c.Off {
		_, err = fmt.Fprintln(w.out, "the bank is well")
		return err
	}
	_, err = fmt.Fprintf(w.out, "the bank now has %s\nit is well again after:  till chaos rail --off\n", now)
	return err
}
