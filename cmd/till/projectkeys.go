package main

import (
	"errors"
	"fmt"
	"time"

	"till/api"
	"till/flow"
	"till/flow/checkout"
)

// keysCmd is what an owner does with a project's keys.
type keysCmd struct {
	List   keysListCmd   `cmd:"" default:"withargs" help:"List a project's keys, without their secrets."`
	Create keysCreateCmd `cmd:"" help:"Make a key; it is shown once."`
	Rotate keysRotateCmd `cmd:"" help:"Make a key's successor; the old one works on for a while."`
	Revoke keysRevokeCmd `cmd:"" help:"End a key at once."`
}

// keyed is what every command about keys is told.
type keyed struct {
	owning

	Project string `help:"Id of the project: wsp_prj_…; without it, that of the key at hand." placeholder:"ID"`
}

// changing is what a command that makes or ends keys is told: those of one
// environment.
type changing struct {
	keyed

	Live bool `help:"A live key instead of a test one."`
}

// env is the environment of the key.
func (c *changing) env() flow.Environment { return envOf(c.Live) }

// makeKey makes a key.
func makeKey(w *world, a *checkout.Accounts, p flow.Project, env flow.Environment, kind flow.KeyKind) (made api.KeyRecord, err error) {
	_, err = a.MakeKey(w.ctx, p, env, kind, keeping(func(m checkout.Made) { made = api.RecordKey(a, m.Key.Key, m.Key.Text) }))
	return made, err
}

// keysListCmd lists keys.
type keysListCmd struct{ keyed }

func (keysListCmd) Help() string {
	return "Example:\n\n    till keys list --project wsp_prj_01jd…\n\nIt lists the keys of both environments." + besideHelp
}

// keysPage is how many keys are read at a time.
const keysPage = 100

// Run prints one line for each, newest first.
func (c *keysListCmd) Run(w *world) error {
	return c.owned(w, func(a *checkout.Accounts) error {
		p, err := c.project(w, a, c.Project)
		if err != nil {
			return err
		}
		list := []api.KeyRecord{}
		for before, more := "", true; more; {
			var some []flow.Key
			if some, more, err = a.Keys(w.ctx, p, before, keysPage); err != nil {
				return err
			}
			for _, k := range some {
				before = k.ID
				list = append(list, api.RecordKey(a, k, ""))
			}
		}
		if c.JSON {
			return printJSON(w, list)
		}
		return printTable(w, "KEY\tENVIRONMENT\tKIND\tSTATUS\tHINT\tCREATED\tLAST USED\tEXPIRES", list, func(k api.KeyRecord) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", k.ID, k.Environment, k.Kind, k.Status, k.Hint, k.CreatedAt, orDash(k.LastUsedAt), orDash(k.ExpiresAt))
		})
	})
}

// keysCreateCmd makes a key.
type keysCreateCmd struct {
	changing

	Kind string `required:"" enum:"secret,public" help:"secret or public."`
}

func (keysCreateCmd) Help() string {
	return "Example:\n\n    till keys create --kind secret\n    till keys create --kind secret --live --project wsp_prj_01jd…\n\nA live key needs an approved business." + besideHelp
}

// Run makes it.
func (c *keysCreateCmd) Run(w *world) error {
	return c.owned(w, func(a *checkout.Accounts) error {
		p, err := c.meant(w, a)
		if err != nil {
			return err
		}
		var made api.KeyRecord
		err = c.audited(w, a, p, flow.Audited{Action: "key.make", Subject: string(p.ID), Reason: c.Kind}, func() (err error) {
			made, err = makeKey(w, a, p, c.env(), flow.KeyKind(c.Kind))
			return err
		})
		if err != nil {
			return withinRules(err)
		}
		return c.once(w, made)
	})
}

// meant is the project that is meant. What is live is said, by name.
func (c *changing) meant(w *world, a *checkout.Accounts) (flow.Project, error) {
	p, err := c.project(w, a, c.Project)
	if err == nil && c.Live {
		_, err = fmt.Fprintf(w.err, "till: live, project %s (%s)\n", plain(p.Name), p.ID)
	}
	return p, err
}

// audited does something to a project's keys, and keeps it in the audit log as the
// console and the API do.
func (c *changing) audited(w *world, a *checkout.Accounts, p flow.Project, row flow.Audited, do func() error) error {
	row.Account, row.Project, row.Environment = p.Account, p.ID, c.env()
	return audited(w, a, row, do)
}

// once shows a key that is shown once.
func (k *keyed) once(w *world, made api.KeyRecord) error {
	if k.JSON {
		return printJSON(w, made)
	}
	_, err := fmt.Fprintf(w.out, "id   %s\nkey  %s\n", made.ID, made.Key)
	_, also := fmt.Fprintln(w.err, "till: the key is shown this once")
	return errors.Join(err, also)
}

// withinRules marks what the rules about live keys refuse.
func withinRules(err error) error {
	if code := flow.CodeOf(err); code == flow.CodeKYCRequired || code == flow.CodeProjectSuspended {
		return refusedError{err}
	}
	return err
}

// oneKey is a command about one key.
type oneKey struct {
	changing

	Key string `arg:"" help:"Id of the key: wsp_key_…"`
}

type (
	keysRotateCmd struct {
		oneKey

		Overlap time.Duration `default:"24h" help:"How long the old one works on: 0s to 168h."`
	}
	keysRevokeCmd struct {
		oneKey

		Yes bool `help:"Really: it cannot be undone."`
	}
)

func (keysRotateCmd) Help() string {
	return "Example:\n\n    till keys rotate wsp_key_01jd… --overlap 1h" + besideHelp
}

func (keysRevokeCmd) Help() string {
	return "Example:\n\n    till keys revoke wsp_key_01jd… --yes" + besideHelp
}

// known finds the key, and refuses a live one that was not meant.
func (k *oneKey) known(w *world, a *checkout.Accounts) (flow.Project, error) {
	p, err := k.meant(w, a)
	if err != nil {
		return p, err
	}
	key, err := a.Key(w.ctx, p, k.Key)
	switch {
	case flow.CodeOf(err) == flow.CodeNotFound:
		return p, fmt.Errorf("project %s has no key %q (see: till keys list)", p.ID, k.Key)
	case err != nil:
		return p, err
	case key.Environment == flow.Live && !k.Live:
		return p, refusedError{errors.New("this is a live key: say --live")}
	case key.Environment == flow.Test && k.Live:
		return p, usageError{errors.New("this is a test key: leave --live out")}
	}
	return p, nil
}

// Run makes the successor.
func (c *keysRotateCmd) Run(w *world) error {
	if c.Overlap < 0 || c.Overlap > flow.MaxOverlap {
		return usageError{fmt.Errorf("--overlap is 0s to %s", flow.MaxOverlap)}
	}
	return c.owned(w, func(a *checkout.Accounts) error {
		p, err := c.known(w, a)
		if err != nil {
			return err
		}
		var made api.KeyRecord
		err = c.audited(w, a, p, flow.Audited{Action: "key.rotate", Subject: c.Key, Reason: "the old one works for " + c.Overlap.String() + " more"}, func() error {
			_, err := a.RotateKey(w.ctx, p, c.Key, c.Overlap, keeping(func(m checkout.Made) { made = api.RecordKey(a, m.Key.Key, m.Key.Text) }))
			return err
		})
		if err != nil {
			return withinRules(err)
		}
		heard(w)
		return c.once(w, made)
	})
}

// Run ends the key.
func (c *keysRevokeCmd) Run(w *world) error {
	if !c.Yes {
		return errNeedsYes("to revoke a key")
	}
	return c.owned(w, func(a *checkout.Accounts) error {
		p, err := c.known(w, a)
		if err != nil {
			return err
		}
		var ended flow.Key
		err = c.audited(w, a, p, flow.Audited{Action: "key.revoke", Subject: c.Key}, func() (err error) {
			ended, err = a.RevokeKey(w.ctx, p, c.Key)
			return err
		})
		if err != nil {
			return err
		}
		heard(w)
		return printDone(w, c.JSON, api.RecordKey(a, ended, ""), "%s is revoked\n", ended.ID)
	})
}
