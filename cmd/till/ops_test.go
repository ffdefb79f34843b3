package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"till/api"
	"till/api/console"
	"till/cmd/till/tilltest"
	"till/config"
	"till/flow"
	"till/flow/await"
	"till/flow/store"
)

// opsFile is a file for operators.
func opsFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", ".ops", name))
	must(t, err)
	return string(text)
}

// There is no daemon here to build the image: what its lines name is there, its
// build works, and what it runs is a command.
func TestTheDockerfilesLinesHold(t *testing.T) {
	text := opsFile(t, "Dockerfile")
	copied := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(text, -1) {
		for path := range strings.FieldsSeq(m[1]) {
			copied[path] = true
			if _, err := os.Stat(filepath.Join("..", "..", path)); err != nil {
				t.Errorf("it copies what is not there: %v", err)
			}
		}
	}
	folders, err := filepath.Glob(filepath.Join("..", "..", "*", "*.go"))
	must(t, err)
	for _, file := range folders {
		if top := filepath.Base(filepath.Dir(file)); !copied[top] && !strings.HasPrefix(top, ".") {
			t.Errorf("it does not copy %s", top)
		}
	}
	build := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /till (\S+)$`).FindStringSubmatch(text)
	if build == nil {
		t.Fatal("it builds nothing")
	}
	bin := filepath.Join(t.TempDir(), "till")
	cmd := exec.Command("sh", "-euc", build[1]+" -o "+bin+" "+build[2])
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "RELEASE=v1.2.3-4-gabcdef0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(bin, "version").CombinedOutput(); err != nil || string(out) != "till v1.2.3-4-gabcdef0\n" {
		t.Errorf("of a build without a repository it says %q, %v", out, err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:CMD|.* CMD) \["(?:/till", ")?(\w+)"\]$`).FindAllStringSubmatch(text, -1) {
		if out, err := exec.Command(bin, m[1], "--help").CombinedOutput(); err != nil {
			t.Errorf("it runs till %s: %v\n%s", m[1], err, out)
		}
	}
	for _, want := range []string{"FROM scratch", "USER 65532:65532", "HEALTHCHECK", `["/till", "health"]`, `CMD ["serve"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %s", want)
		}
	}
	settingsIn(t, text)
}

// settingsIn looks whether every variable that a text names is a setting.
func settingsIn(t *testing.T, text string) {
	t.Helper()
	known := map[string]bool{"TILL_NAME": true} // stands for any
	for _, s := range settings() {
		known[s.env] = true
	}
	for _, name := range regexp.MustCompile(`TILL_[A-Z_]+`).FindAllString(text, -1) {
		if !known[name] {
			t.Errorf("there is no setting %s", name)
		}
	}
}

// The unit gives no more than is needed, and the time that an orderly end takes.
func TestTheUnitHolds(t *testing.T) {
	text := opsFile(t, "till.service")
	settingsIn(t, text)
	for _, want := range []string{
		"Type=notify", "DynamicUser=yes", "ProtectSystem=strict", "StateDirectory=till", "NoNewPrivileges=yes", "MemoryMax=", "WatchdogSec=", "LimitNOFILE=",
		"Restart=always", "StartLimitIntervalSec=0", "TimeoutStopSec=30", "ExecStart=/usr/local/bin/till serve", "CapabilityBoundingSet=\n", "SystemCallFilter=@system-service",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %s", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: it did not read the unit")
		return
	}
	bin := tilltest.Program(t)
	unit := filepath.Join(t.TempDir(), "till.service")
	must(t, os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/till", bin)), 0o600))
	if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// The command that the unit tells for other commands gives them the unit's own
// user, folder and settings.
func TestTheUnitsOtherCommandsAreOfItsOwn(t *testing.T) {
	text := opsFile(t, "till.service")
	told := regexp.MustCompile(`(?m)^# +systemd-run .*\n(?:# .*\n)*?# +till doctor$`).FindString(text)
	given := regexp.MustCompile(` -p (\S+)`).FindAllStringSubmatch(told, -1)
	if len(given) < 6 {
		t.Fatalf("it tells %q", told)
	}
	for _, m := range given {
		if m[1] != "User=till" && !strings.Contains(text, "\n"+m[1]+"\n") { // the unit's user has its name
			t.Errorf("%s is not of the unit", m[1])
		}
	}
	for _, name := range []string{"DynamicUser", "User", "StateDirectory", "StateDirectoryMode", "UMask", "EnvironmentFile", "Environment", "WorkingDirectory"} {
		if !strings.Contains(told, " -p "+name+"=") {
			t.Errorf("it gives no %s", name)
		}
	}
}

// Prometheus finds metrics where Till shows them, and the alerts beside its file.
func TestPrometheusFindsTheMetrics(t *testing.T) {
	text := opsFile(t, "prometheus.yml")
	for _, want := range []string{config.DefaultMetricsAddr, "rule_files: [alerts.yml]"} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %s", want)
		}
	}
}

// What an alert says is to be done next can be done: its commands are understood,
// and its paths are the console's or the API's.
func TestWhatAlertsAdviseCanBeDone(t *testing.T) {
	text := opsFile(t, "alerts.yml")
	served := map[string]bool{}
	for _, r := range api.Routes() {
		served[r.Path] = served[r.Path] || r.Method == http.MethodGet
	}
	for _, p := range console.Pages() {
		served[p.Path] = served[p.Path] || p.Method == http.MethodGet && (p.Right == "" || flow.RoleOperator.May(p.Right))
	}
	command, path := regexp.MustCompile("`till ([^`]+)`"), regexp.MustCompile(`(?:[\s(]|//[\w.:]+)(/[a-z][\w/-]*)`)
	advice := regexp.MustCompile(`(?m)^ +next: '(.*)'$`).FindAllStringSubmatch(text, -1)
	commands, paths := 0, 0
	for _, m := range advice {
		for _, call := range command.FindAllStringSubmatch(m[1], -1) {
			commands++
			understood(t, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(call[1], "1"))
			if file, ok := strings.CutPrefix(call[1], "backup "); ok && !regexp.MustCompile(`\d{4}-\d\d-\d\d`).MatchString(file) { // the next day it is there already
				t.Errorf("a second day %s fails", call[0])
			}
		}
		prose := regexp.MustCompile("`[^`]*`").ReplaceAllString(m[1], "")
		if regexp.MustCompile(`\btill [a-z]+[ .,:;]`).MatchString(prose) {
			t.Errorf("a command is not marked as one: %s", m[1])
		}
		for _, p := range path.FindAllStringSubmatch(prose, -1) {
			if paths++; !served[p[1]] {
				t.Errorf("an operator cannot open %s: %s", p[1], m[1])
			}
		}
	}
	if len(advice) != strings.Count(text, "- alert:") || commands < 10 || paths < 4 {
		t.Errorf("of %d alerts only %d pieces of advice with %d commands and %d paths were found", strings.Count(text, "- alert:"), len(advice), commands, paths)
	}
}

// What the alert about late webhooks says is to be run shows the endpoint that
// fails, and why, with the settings that there are by default.
func TestTheAdviceAboutLateWebhooksShowsWhichFails(t *testing.T) {
	level := ""
	for _, s := range settings() {
		if s.env == "TILL_LOG_LEVEL" {
			level = s.standard
		}
	}
	advice := regexp.MustCompile(`(?s)alert: TillWebhooksLate.*?till (logs [^` + "`]+)`").FindStringSubmatch(opsFile(t, "alerts.yml"))
	if level == "" || advice == nil {
		t.Fatalf("the default level is %q and the advice %q", level, advice)
	}
	m, p, _ := devServerWith(t, []string{"TILL_LOG_LEVEL=" + level})
	nobody := "http://" + tilltest.FreePort(t) + "/hook"
	endpoint := m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": nobody, "events": []string{"session.created"}})["id"].(string)
	session, _ := m.openChat(300_000, "nobody-is-told")
	await.Until(t, "the log says which endpoint fails", func() bool {
		out, err := p.Beside(strings.Fields(advice[1])...)
		return err == nil && strings.Contains(out, endpoint) && strings.Contains(out, session) && strings.Contains(out, "refused")
	})
}

// So can what is to be done before a payer is forgotten.
func TestWhatIsDoneFirstCanBeDone(t *testing.T) {
	n := 0
	for _, what := range []string{"session", "refund", "payment", "chat"} {
		says := firstDo(store.Unsettled{What: what, ID: "{id}"})
		for _, m := range regexp.MustCompile(`(POST) (/[\w/{}-]+)`).FindAllStringSubmatch(says, -1) {
			n++
			routed(t, m[1], m[2])
		}
		for _, m := range regexp.MustCompile(`^till (.*)$`).FindAllStringSubmatch(says, -1) {
			n++
			understood(t, strings.NewReplacer("{id}", "x", "<you>", "x").Replace(m[1]))
		}
	}
	if n < 3 {
		t.Errorf("only %d calls and commands were found", n)
	}
}
