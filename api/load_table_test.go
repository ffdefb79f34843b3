//go:build unix

package api

import (
	"fmt"

	"till/flow/benchtest"
)

// What opening and reading a session have to reach at 64 connections: of the
// echo's rate, and of its p99.
var loadGoals = map[string][2]float64{"create": {0.35, 3}, "read": {0.45, 0}}

// loadTable is what was measured of each call, at each number of connections.
func loadTable(kinds []*load) *benchtest.Table {
	t := &benchtest.Table{}
	for _, conns := range loadConns() {
		echo := kinds[0].median(conns)
		for i, k := range kinds {
			m := k.median(conns)
			what := fmt.Sprintf("%s, %d connections", k.name, conns)
			figure := fmt.Sprintf("%.0f/s, p50 %.2f ms, p99 %.2f ms, %.0f µs of CPU", m.Rate, m.P50, m.P99, m.CPU)
			if i == 0 {
				t.Add(what, figure, "the limit")
				continue
			}
			share, slower := m.Rate/echo.Rate, m.P99/echo.P99
			limit := fmt.Sprintf("%.2f of the echo's rate, p99 %.1f of its", share, slower)
			goal, has := loadGoals[k.name]
			switch {
			case !has || conns != 64:
				t.Add(what, figure, limit)
			case goal[1] == 0:
				t.Judge(what, figure, limit, fmt.Sprintf("≥ %.2f", goal[0]), share >= goal[0])
			default:
				t.Judge(what, figure, limit, fmt.Sprintf("≥ %.2f, p99 ≤ %.0f", goal[0], goal[1]), share >= goal[0] && slower <= goal[1])
			}
		}
	}
	return t
}
