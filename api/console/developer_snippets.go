package console

import (
	"strings"

	"till/flow"
)

// snippetsView is what the page of snippets is given.
type snippetsView struct {
	Tasks  []Task
	Setup  string // a shell's settings for all of them
	Secret string // the hint of their secret key, "" where they have none
	Public string
}

// snippetsPage is GET /developers/snippets: whole programs with this server's
// address in them. Keys are known once, so that the secret one is a variable.
func (c *Console) snippetsPage(v *visit) error {
	out := snippetsView{Tasks: c.addressed()}
	if v.project.ID != "" {
		for kind, hint := range map[flow.KeyKind]*string{flow.SecretKey: &out.Secret, flow.PublicKey: &out.Public} {
			k, _, err := c.cfg.Accounts.WorkingKey(v.ctx, v.project.ID, v.env, kind)
			if err != nil {
				return err
			}
			*hint = k.Hint
		}
	}
	hint := out.Secret
	if hint == "" {
		hint = "sk_" + string(v.env) + "_…"
	}
	out.Setup = "export TILL_URL=" + c.cfg.PublicURL + "\nexport TILL_SECRET_KEY='" + hint + "'  # your whole key in its place"
	return v.show("snippets", "Snippets", out)
}

// addressed are the programs with this server's address in the place of the
// variable for it.
func (c *Console) addressed() []Task {
	url := c.cfg.PublicURL
	fill := strings.NewReplacer("${process.env.TILL_URL}", url, `os.Getenv("TILL_URL")`, `"`+url+`"`, `os.environ["TILL_URL"]`, `"`+url+`"`,
		`{os.environ['TILL_URL']}`, url, `getenv('TILL_URL')`, `'`+url+`'`, "$TILL_URL", url)
	out := make([]Task, 0, len(c.cfg.Tasks))
	for _, t := range c.cfg.Tasks {
		programs := make([]Program, 0, len(t.Programs))
		for _, p := range t.Programs {
			p.Code = fill.Replace(p.Code)
			programs = append(programs, p)
		}
		t.Programs = programs
		out = append(out, t)
	}
	return out
}
