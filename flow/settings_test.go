package flow_test

import (
	"strings"
	"testing"

	"till/flow"
)

func TestSettingsThatCouldMisleadPayersAreRefused(t *testing.T) {
	t.Parallel()
	good := flow.Settings{
		DisplayName: "Ọja \"Àda\" 🛒", Brand: "Lagos fashion – since 1999", Lang: flow.Yoruba, Underpayment: "accept", Overpayment: "refund_excess", LatePayment: "refund", SessionMinutes: 5,
	}
	for _, s := range []flow.Settings{{}, good, {SessionMinutes: 10_080}} {
		if wrong := s.Check(); len(wrong) != 0 {
			t.Errorf("%+v is refused: %v", s, wrong)
		}
	}
	for name, change := range map[string]func(*flow.Settings){
		"a long name":           func(s *flow.Settings) { s.DisplayName = strings.Repeat("ọ", 61) },
		"a name of two lines":   func(s *flow.Settings) { s.DisplayName = "Ada\nStores" },
		"a name that hides":     func(s *flow.Settings) { s.DisplayName = "Ada\u202eStores" },
		"long words":            func(s *flow.Settings) { s.Brand = strings.Repeat("x", 41) },
		"words of two lines":    func(s *flow.Settings) { s.Brand = "a\nb" },
		"a link":                func(s *flow.Settings) { s.Brand = "see https://evil.example" },
		"a host":                func(s *flow.Settings) { s.Brand = "see evil.example" },
		"an e-mail address":     func(s *flow.Settings) { s.Brand = "ask me@evil" },
		"an account number":     func(s *flow.Settings) { s.Brand = "pay to 0123456789" },
		"one that is spread":    func(s *flow.Settings) { s.Brand = "pay to 01 23 45 67 89" },
		"bold letters":          func(s *flow.Settings) { s.Brand = "*PAID*" },
		"an unknown language":   func(s *flow.Settings) { s.Lang = "xx" },
		"an unknown policy":     func(s *flow.Settings) { s.Underpayment = "refund_excess" },
		"another one":           func(s *flow.Settings) { s.Overpayment = "hold" },
		"a third":               func(s *flow.Settings) { s.LatePayment = "hold" },
		"too short a session":   func(s *flow.Settings) { s.SessionMinutes = 4 },
		"too long a session":    func(s *flow.Settings) { s.SessionMinutes = 10_081 },
		"one that ends at once": func(s *flow.Settings) { s.SessionMinutes = -1 },
	} {
		s := good
		change(&s)
		if wrong := s.Check(); len(wrong) != 1 || !strings.HasSuffix(wrong[0], ".") {
			t.Errorf("%s: %v", name, wrong)
		}
	}
}

func TestSettingsFillWhatNobodySays(t *testing.T) {
	t.Parallel()
	if got := (flow.Settings{}).Policy(); got != flow.DefaultPolicy() {
		t.Errorf("without settings it is %+v", got)
	}
	set := flow.Settings{LatePayment: "accept", Lang: flow.Hausa, Brand: "since 1999", SessionMinutes: 60}
	want := flow.Policy{Underpayment: "hold", Overpayment: "accept", LatePayment: "accept", Lang: flow.Hausa, Brand: "since 1999"}
	if got := set.Policy(); got != want || set.Minutes() != 60 || (flow.Settings{}).Minutes() != 1440 {
		t.Errorf("%+v, %d minutes", got, set.Minutes())
	}
	p := flow.Project{Name: "Ada Ltd"}
	if p.Shown() != "Ada Ltd" {
		t.Error(p.Shown())
	}
	if p.Settings.DisplayName = "Ada"; p.Shown() != "Ada" {
		t.Error(p.Shown())
	}
}

func TestAChatBeginsAsItsProjectIsSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chosen, set, speaks flow.Lang
	}{{"", flow.Hausa, flow.Hausa}, {flow.Igbo, flow.Hausa, flow.Igbo}, {"", "", ""}} {
		turn := standing(flow.Choosing)
		turn.Chat = flow.Chat{ID: "chat_1", Lang: c.chosen}
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.Policy.Lang = c.set
		if c.set != "" {
			co.Session.Policy.Brand = "since 1999"
		}
		turn.Checkouts["wsp_sess_1"] = co
		d := flow.Decide(heard(turn, flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}))
		if len(d.Says) != 1 || d.Says[0].Lang != c.speaks || d.Chat.Lang != c.speaks {
			t.Errorf("%+v: %+v", c, d.Says)
		}
		if brand, there := d.Says[0].Args["brand"]; there != (c.set != "") || brand != co.Session.Policy.Brand {
			t.Errorf("%+v: the words are %q, %v", c, brand, there)
		}
	}
}
