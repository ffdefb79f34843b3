package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"till/api"
)

// healthPatience is how long a server may take to say how it stands: it gives each
// part two seconds.
const healthPatience = 4 * time.Second

// healthCmd asks the server that runs here whether it can work.
type healthCmd struct{ local }

func (healthCmd) Help() string {
	return "Example:\n\n    till health\n\nIt asks GET /readyz at --http-addr and ends with 0 where requests can be served, degraded or not, and with 1 where they cannot. " +
		"It is what a container's health check runs; till doctor finds out why and says what mends it."
}

// healthLine is how a server stands.
type healthLine struct {
	Ready  bool              `json:"ready"`
	State  string            `json:"state"`
	Away   map[string]string `json:"away"` // parts that do not work, and why
	Server string            `json:"server"`
}

// Run asks once.
func (c *healthCmd) Run(w *world) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	base := "http://" + reached(c.HTTPAddr)
	now, err := healthOf(w.ctx, base)
	if errors.Is(err, context.DeadlineExceeded) && answers(w.ctx, base) {
		return fmt.Errorf("the Till on %s did not say within %s how it stands: till doctor finds out why", base, healthPatience)
	}
	if err != nil {
		return fmt.Errorf("no Till answers on %s: %w (start one with till serve or till dev, or give its --http-addr)", base, err)
	}
	if c.JSON {
		err = printJSON(w, now)
	} else {
		_, err = fmt.Fprintln(w.out, now.State)
		for _, name := range slices.Sorted(maps.Keys(now.Away)) {
			if err == nil {
				_, err = fmt.Fprintf(w.out, "%s: %s\n", name, now.Away[name])
			}
		}
	}
	if err == nil && !now.Ready {
		return codeError(exitFailed)
	}
	return err
}

// healthOf asks a server how it stands.
func healthOf(ctx context.Context, base string) (healthLine, error) {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return healthLine{}, err
	}
	res, err := loopbackClient().Do(req)
	if err != nil {
		return healthLine{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var said struct {
		Data struct {
			Ready  bool        `json:"ready"`
			State  string      `json:"state"`
			Checks []api.Check `json:"checks"`
		} `json:"data"`
		Error struct {
			Details map[string]string `json:"details"`
		} `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&said); err != nil {
		return healthLine{}, fmt.Errorf("it is not a Till: %w", err)
	}
	out := healthLine{Ready: res.StatusCode == http.StatusOK && said.Data.Ready, State: said.Data.State, Away: map[string]string{}, Server: base}
	for _, one := range said.Data.Checks {
		if !one.OK {
			out.Away[one.Name] = one.Reason
		}
	}
	if !out.Ready {
		out.State, out.Away = "not ready", said.Error.Details
	}
	return out, nil
}
