package meter_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"till/api"
	"till/flow"
	"till/flow/checkout"
)

// works has a rig show everything that it can.
func works(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.run()
	r.owe(func(d checkout.Deliveries) int64 { return d.Delivered })
	r.must(r.money())
	r.asksBank()
	r.answers(http.StatusCreated)
	r.must(os.WriteFile(r.log, nil, 0o600))
	for _, kind := range []flow.IntentKind{flow.MeansMethod, flow.MeansMedia, flow.MeansCall, flow.MeansNote, flow.MeansTakeover, flow.MeansSecret} {
		r.meter.Of(flow.Live).Heard(flow.Intent{Kind: kind})
	}
	r.meter.Of(flow.Live).Said("receipt")
	r.meter.Of(flow.Live).Replied(time.Second)
	r.meter.Of(flow.Live).Session(flow.SessionPending, flow.SessionPaid)
	r.goes(15*time.Second, nil)
	return r
}

// shown is what a scrape brings.
func shown(t *testing.T, h http.Handler) string {
	t.Helper()
	out := httptest.NewRecorder()
	h.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if out.Code != http.StatusOK {
		t.Fatalf("the scrape is answered %d", out.Code)
	}
	return out.Body.String()
}

// promised are the names and labels that dashboards of others may rest on.
var promised = map[string][]string{
	"till_http_requests_total": {"route", "method", "code", "env", "why"}, "till_http_request_duration_seconds": nil,
	"till_sessions_total": {"env", "status"}, "till_session_transitions_total": {"from", "to"},
	"till_charges_total": {"env", "outcome"}, "till_charge_amount_kobo_total": {"env"},
	"till_rail_request_duration_seconds": {"op", "result"}, "till_rail_breaker_state": {"env"}, "till_bank_notifications_total": {"outcome"},
	"till_exceptions_open": {"env", "kind"}, "till_exceptions_oldest_seconds": {"env", "kind"},
	"till_webhook_attempts_total": {"env", "result"}, "till_webhook_backlog": {"env"}, "till_webhook_oldest_seconds": {"env"}, "till_webhook_held_oldest_seconds": {"env"}, "till_webhook_dead_total": {"env"},
	"till_chat_messages_total": {"direction", "kind"}, "till_chat_intent_total": {"intent", "understood"}, "till_chat_reply_duration_seconds": nil,
	"till_chat_unsent_total": {"env", "reason"}, "till_chat_outbox_oldest_seconds": {"env"}, "till_chat_waiting_oldest_seconds": {"env"},
	"till_chat_undecryptable_total": nil, "till_whatsapp_number_state": {"slot", "state"}, "till_whatsapp_phone_away_seconds": {"slot"},
	"till_whatsapp_connected": nil, "till_whatsapp_logged_out": nil, "till_db_commit_duration_seconds": nil, "till_db_wal_bytes": nil,
	"till_ledger_imbalance_kobo": nil, "till_redactions_total": {"kind"},
}

func TestTheNamesAreThoseThatArePromised(t *testing.T) {
	r := works(t)
	families, err := r.meter.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string][]string{}
	for _, f := range families {
		var names []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			names = append(names, l.GetName())
		}
		have[f.GetName()] = names
	}
	for name, names := range promised {
		got, there := have[name]
		slices.Sort(got)
		want := slices.Sorted(slices.Values(names))
		if !there || !slices.Equal(got, want) {
			t.Errorf("%s has the labels %q, want %q", name, got, want)
		}
	}
	problems, err := testutil.GatherAndLint(r.meter.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// metricsIn are the metrics that an expression reads; it must be one.
func metricsIn(t *testing.T, expr string) []string {
	t.Helper()
	tree, err := parser.ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var names []string
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// known are the metrics that there are, under all the names by which they are read.
func known(t *testing.T) map[string]bool {
	t.Helper()
	r := works(t)
	out := map[string]bool{}
	for _, one := range r.kept.series {
		out[one.labels.Get(model.MetricNameLabel)] = true
	}
	return out
}

func TestAlertsReadWhatIsThereAndSayWhatToDo(t *testing.T) {
	there := known(t)
	for name, rule := range rules(t) {
		for _, metric := range metricsIn(t, rule.Expr) {
			if !there[metric] {
				t.Errorf("%s reads %s, which is not there", name, metric)
			}
		}
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", name, s)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["next"] == "" {
			t.Errorf("%s does not say what is wrong and what to do", name)
		}
	}
}

// A dashboard's panels, as far as they are looked at.
type dashboard struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		Title       string `json:"title"`
		Type        string `json:"type"`
		Description string `json:"description"`
		Targets     []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestTheDashboardReadsWhatIsThere(t *testing.T) {
	there := known(t)
	raw, err := os.ReadFile(filepath.Join(ops, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Title == "" || p.Description == "" {
			t.Errorf("the panel %q has no title, no words or no expression", p.Title)
		}
		for _, target := range p.Targets {
			for _, metric := range metricsIn(t, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")) {
				if read[metric] = true; !there[metric] {
					t.Errorf("%q reads %s, which is not there", p.Title, metric)
				}
			}
		}
	}
	for name := range promised {
		if !read[name] && !read[name+"_bucket"] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// However many merchants there are, and whatever they do, what is shown has a
// bound, and names none of them.
func TestSeriesHaveABoundAndNameNobody(t *testing.T) {
	r := works(t)
	for n := range 1000 {
		project := flow.ProjectID(fmt.Sprintf("wsp_prj_merchant%d", n))
		if n%20 == 0 { // each takes a commit
			r.session(project)
		}
		for i, route := range api.Routes() {
			codes := []int{200, 201, 400, 401, 404, 409, 422, 429, 500, 503}
			r.meter.Answering()(route.Path, route.Method, codes[(n+i)%len(codes)], flow.Live, n%2 == 0)
		}
	}
	said := map[string]any{} // every sentence that the bot has
	if _, err := toml.DecodeFile(filepath.Join("..", "..", "..", "bot", "text", "en.toml"), &said); err != nil {
		t.Fatal(err)
	}
	statuses := flow.SessionStatuses()
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		m := r.meter.Of(env)
		for n := range 40 { // more than there are meanings
			m.Heard(flow.Intent{Kind: flow.IntentKind(fmt.Sprintf("meaning%d", n))})
		}
		for key := range said {
			m.Said(key)
		}
		for _, from := range statuses {
			for _, to := range statuses {
				m.Session(from, to)
			}
		}
	}
	r.goes(15*time.Second, nil)
	page := shown(t, r.meter.Handler(""))
	lines := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			lines++
		}
		if strings.Contains(line, "merchant") || regexp.MustCompile(`wsp_(prj|sess|chat|pay)|\b\d{10,13}"|@|whsec_|\bsk_`).MatchString(line) {
			t.Errorf("a line may name somebody: %s", line)
		}
	}
	if lines > 2000 {
		t.Errorf("%d series at 1000 merchants", lines)
	}
	t.Logf("%d series", lines)
}

func TestOnlyWhoHasTheTokenReads(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, path, given string
		want                int
	}{
		{http.MethodGet, "/metrics", "Bearer the token of Prometheus", http.StatusOK},
		{http.MethodGet, "/metrics", "Bearer the token of prometheus", http.StatusUnauthorized},
		{http.MethodGet, "/metrics", "the token of Prometheuses", http.StatusUnauthorized},
		{http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		{http.MethodPost, "/metrics", "Bearer the token of Prometheus", http.StatusMethodNotAllowed},
		{http.MethodGet, "/", "Bearer the token of Prometheus", http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", "Bearer the token of Prometheus", http.StatusNotFound},
	} {
		req := httptest.NewRequest(c.method, c.path, nil)
		if c.given != "" {
			req.Header.Set("Authorization", c.given)
		}
		out := httptest.NewRecorder()
		r.meter.Handler("the token of Prometheus").ServeHTTP(out, req)
		body, _ := io.ReadAll(out.Body)
		if out.Code != c.want || c.want != http.StatusOK && strings.Contains(string(body), "till_") {
			t.Errorf("%s %s with %q is answered %d, want %d", c.method, c.path, c.given, out.Code, c.want)
		}
	}
}
