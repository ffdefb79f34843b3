package console

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"

	"till/flow"
)

// teamView is what the page of people is given.
type teamView struct {
	People []flow.Person
	Email  string
	Role   string
	Wrong  []string
}

// teamPage is GET /team.
func (c *Console) teamPage(v *visit) error {
	return c.showTeam(v, teamView{Role: string(flow.RoleDeveloper)})
}

func (c *Console) showTeam(v *visit, out teamView) error {
	var err error
	if out.People, err = c.cfg.Accounts.People(v.ctx, v.who.Account); err != nil {
		return err
	}
	return v.show("team", "Team", out)
}

// addPerson is POST /team: they get a password that is shown once. A reload makes
// nobody new: the address is taken then.
func (c *Console) addPerson(v *visit) error {
	t := v.typing()
	email, role := t.email("email"), flow.Role(v.field("role"))
	if role != flow.RoleDeveloper && role != flow.RoleSupport {
		t.fail("Choose what they are there for: developer or support.")
	}
	again := func() error {
		v.refusesFor(http.StatusBadRequest, flow.Refuse(flow.CodeInvalidField, "%s", strings.Join(t.Wrong, " ")))
		return c.showTeam(v, teamView{Email: v.field("email"), Role: string(role), Wrong: t.Wrong})
	}
	if !t.ok() {
		return again()
	}
	if err := v.audit("person.add", email, string(role), false); err != nil {
		return err
	}
	password := rand.Text()
	if _, err := c.cfg.Accounts.AddPerson(v.ctx, v.who.Account, email, password, role, c.cfg.Address(v.http)); err != nil {
		own := flow.CodeOf(err)
		if own == flow.CodeInvalidField {
			t.fail("Somebody logs in with this e-mail address already, or there are too many people.")
			return again()
		}
		return err
	}
	return v.show("secret", "Added", secretView{
		Lead:    email + " may log in now, as " + string(role) + ". The password is shown on this page alone: hand it over by a way that is safe.",
		Secrets: []shownSecret{{"E-mail address", email}, {"Password", password}}, Next: "/team", Words: "I have copied it: back to the team",
	})
}

// endPerson is POST /team/{id}/end.
func (c *Console) endPerson(v *visit) error {
	id := v.http.Params("id")
	if v.field("confirm") == "" {
		return flow.Refuse(flow.CodeMissingField, "Nobody was shut out: tick that you mean it.")
	}
	list, err := c.cfg.Accounts.People(v.ctx, v.who.Account)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(p flow.Person) bool { return p.ID == id })
	if i < 0 {
		return flow.Refuse(flow.CodeNotFound, "There is no such person.")
	}
	if err := v.audit("person.end", id, list[i].Email, false); err != nil {
		return err
	}
	if err := c.shutOut(v.ctx, list[i]); err != nil {
		return err
	}
	done := "Shut out. Whatever they had open ended with it; the bot has their chats again."
	if list[i].Role.May(flow.MayDevelop) { // a key is nobody's in particular, and moves money by itself
		done += " Keys that they copied still work: rotate those under Developers, and the secrets of webhooks."
	}
	return v.to("/team", done)
}
