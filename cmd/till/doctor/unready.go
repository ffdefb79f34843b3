package doctor

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// readiness is what the Till that answers here says of how it stands: its checks where it
// serves, and where it can serve nobody what keeps it from that, by name.
type readiness struct {
	Data struct {
		Checks []struct{ Name, Reason string } `json:"checks"`
	} `json:"data"`
	Error struct {
		Details map[string]string `json:"details"`
	} `json:"error"`
}

// readiness asks for it.
func (l *look) readiness(ctx context.Context) (said readiness, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.here()+"/readyz", nil)
	if err != nil {
		return said, err
	}
	res, err := l.client.Do(req)
	if err != nil {
		return said, err
	}
	defer func() { _ = res.Body.Close() }()
	err = json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&said)
	return said, err
}

// unready is what keeps the Till that answers here from serving anybody, as it says
// itself; "" where nothing does.
func (l *look) unready(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, err := l.readiness(ctx)
	if err != nil {
		return "it does not say in time how it stands"
	}
	parts := make([]string, 0, len(said.Error.Details))
	for _, name := range slices.Sorted(maps.Keys(said.Error.Details)) {
		parts = append(parts, name+": "+strings.TrimSuffix(said.Error.Details[name], "."))
	}
	return strings.Join(parts, "; ")
}

// unreadyFix finds who holds a database of a Till that keeps nothing; what else it may
// be is told of disks and databases.
func (l *look) unreadyFix() string {
	if l.DatabaseURL != "" {
		return "till logs --level error   (or journalctl -u till: it says what the database answers)"
	}
	return "fuser -v " + quoted(l.DataDir) + "/*.db   (where nothing else is wrong, another program than Till holds one: end it. The log of Till says why: till logs --level error --data-dir " + quoted(l.DataDir) + ")"
}
