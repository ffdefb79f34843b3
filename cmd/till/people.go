package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"till/flow"
	"till/flow/checkout"
)

// peopleCmd is who may log in to the console.
type peopleCmd struct {
	List peopleListCmd `cmd:"" default:"withargs" help:"List operators, or the people of an account."`
	Add  peopleAddCmd  `cmd:"" help:"Let somebody log in; the password is shown once."`
	End  peopleEndCmd  `cmd:"" help:"Shut somebody out, and end whatever they have open."`

	Password peoplePasswordCmd `cmd:"" help:"Give somebody who lost theirs another password; it is shown once."`
}

// whose says whose people a command is about.
type whose struct {
	local

	Account string `help:"E-mail address of the account's owner; without it, operators." placeholder:"EMAIL"`
}

// of opens the accounts and finds whose people are meant, "" for operators.
func (c whose) of(w *world, do func(a *checkout.Accounts, account string) error) error {
	return withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		if c.Account == "" {
			return do(a, "")
		}
		account, err := a.AccountOf(w.ctx, c.Account)
		if flow.CodeOf(err) == flow.CodeNotFound {
			return fmt.Errorf("there is no account of %q (see: till merchants list)", c.Account)
		}
		if err != nil {
			return err
		}
		return do(a, account.ID)
	})
}

// peopleListCmd lists people.
type peopleListCmd struct{ whose }

func (peopleListCmd) Help() string {
	return "Example:\n\n    till people\n    till people list --account owner@example.com --json"
}

// personLine is somebody as they are listed.
type personLine struct {
	ID        string    `json:"id"`
	Email     string    `json:"email"`
	Role      flow.Role `json:"role"`
	CreatedAt string    `json:"createdAt"`
	EndedAt   string    `json:"endedAt"` // "" while they may log in
	// Password is shown once, when somebody is added.
	Password string `json:"password,omitempty"`
}

func lineOf(p flow.Person) personLine {
	line := personLine{ID: p.ID, Email: p.Email, Role: p.Role, CreatedAt: flow.Stamp(p.CreatedAt)}
	if !p.EndedAt.IsZero() {
		line.EndedAt = flow.Stamp(p.EndedAt)
	}
	return line
}

// Run prints one line for each.
func (c *peopleListCmd) Run(w *world) error {
	return c.of(w, func(a *checkout.Accounts, account string) error {
		list, err := a.People(w.ctx, account)
		if err != nil {
			return err
		}
		lines := []personLine{}
		for _, p := range list {
			lines = append(lines, lineOf(p))
		}
		if c.JSON {
			return printJSON(w, lines)
		}
		err = printTable(w, "E-MAIL\tROLE\tSINCE\tSHUT OUT", lines, func(l personLine) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", l.Email, l.Role, l.CreatedAt, cmp.Or(l.EndedAt, "-"))
		})
		if err != nil || len(lines) > 0 {
			return err
		}
		_, err = fmt.Fprintln(w.err, "Nobody yet. Add the first:  till people add EMAIL --role operator")
		return err
	})
}

// peopleAddCmd adds somebody.
type peopleAddCmd struct {
	whose

	Email string `arg:"" help:"What they log in with."`
	Role  string `required:"" enum:"operator,developer,support" help:"operator, who runs Till; or developer or support, of an account."`
}

func (peopleAddCmd) Help() string {
	return "Example:\n\n    till people add ada@example.com --role operator\n    till people add obi@example.com --role support --account owner@example.com\n\n" +
		"The password is printed once, and kept nowhere but as a hash. It stands in the audit log who added whom."
}

// Run adds somebody and prints what they log in with.
func (c *peopleAddCmd) Run(w *world) error {
	role := flow.Role(c.Role)
	if (role == flow.RoleOperator) != (c.Account == "") {
		return usageError{fmt.Errorf("an operator belongs to no account, and a %s to one: give --account with its owner's e-mail address for those alone", cmp.Or(c.Role, "person"))}
	}
	if !address(c.Email) {
		return usageError{fmt.Errorf("%q is no e-mail address", c.Email)}
	}
	return c.of(w, func(a *checkout.Accounts, account string) error {
		password := rand.Text()
		var p flow.Person
		row := flow.Audited{Account: account, Action: "person.add", Subject: flow.FoldEmail(c.Email), Reason: string(role)}
		err := audited(w, a, row, func() (err error) {
			p, err = a.AddPerson(w.ctx, account, c.Email, password, role, "")
			return err
		})
		if own, ok := errors.AsType[*flow.Error](err); ok && own.Code == flow.CodeInvalidField {
			return fmt.Errorf("%s was not added: %s", c.Email, own.Message)
		}
		if err != nil {
			return err
		}
		line := lineOf(p)
		line.Password = password
		if c.JSON {
			return printJSON(w, line)
		}
		if _, err := fmt.Fprintf(w.out, "e-mail    %s\npassword  %s\n", line.Email, password); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w.err, "The password is shown this once. Log in:  till console")
		return err
	})
}

// peopleEndCmd shuts somebody out.
type peopleEndCmd struct {
	whose

	Email string `arg:"" help:"What they log in with."`
}

func (peopleEndCmd) Help() string { return "Example:\n\n    till people end ada@example.com" }

// Run shuts somebody out.
func (c *peopleEndCmd) Run(w *world) error {
	return c.of(w, func(a *checkout.Accounts, account string) error {
		list, err := a.People(w.ctx, account)
		if err != nil {
			return err
		}
		email := flow.FoldEmail(c.Email)
		i := slices.IndexFunc(list, func(p flow.Person) bool { return p.Email == email && p.EndedAt.IsZero() })
		if i < 0 {
			return fmt.Errorf("there is nobody with %q who may log in (see: till people list)", c.Email)
		}
		err = audited(w, a, flow.Audited{Account: account, Action: "person.end", Subject: email}, func() error {
			return a.ShutOut(w.ctx, list[i], func() error { return givenBack(w, c.Settings, email) })
		})
		if err != nil {
			return err
		}
		return printDone(w, c.JSON, map[string]string{"email": email, "state": "shut out"}, "%s is shut out\n", email)
	})
}

// peoplePasswordCmd gives somebody another password.
type peoplePasswordCmd struct {
	local

	Email string `arg:"" help:"What they log in with: an operator's, a person's of an account, or its owner's."`
}

func (peoplePasswordCmd) Help() string {
	return "Example:\n\n    till people password owner@example.com\n\nEvery login with the old one ends. Make sure that whoever asks is who they say."
}

// Run changes the password and prints it.
func (c *peoplePasswordCmd) Run(w *world) error {
	return withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		email := flow.FoldEmail(c.Email)
		account, err := a.AccountWith(w.ctx, email)
		if flow.CodeOf(err) == flow.CodeNotFound {
			return fmt.Errorf("there is nobody with %q who may log in (see: till people list, till merchants list)", c.Email)
		}
		if err != nil {
			return err
		}
		password := rand.Text()
		err = audited(w, a, flow.Audited{Account: account, Action: "person.password", Subject: email}, func() error {
			return a.ResetPassword(w.ctx, email, password)
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(w, map[string]string{"email": email, "password": password})
		}
		if _, err := fmt.Fprintf(w.out, "e-mail    %s\npassword  %s\n", email, password); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w.err, "The password is shown this once. Every login with the old one has ended.")
		return err
	})
}

// audited keeps in the audit log what is about to be done here, does it, and keeps where it
// is refused that it was.
func audited(w *world, a *checkout.Accounts, row flow.Audited, do func() error) error {
	row.Actor, row.Role = whoIs(), flow.RoleOperator
	if err := a.Audit(w.ctx, row, false); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, a.NotDone(w.ctx, row, err))
}

// keepAct keeps in the audit log what nobody refuses: that somebody looks.
func keepAct(w *world, a *checkout.Accounts, action, subject, reason string) error {
	return audited(w, a, flow.Audited{Action: action, Subject: subject, Reason: reason}, func() error { return nil })
}
