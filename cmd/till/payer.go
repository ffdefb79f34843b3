package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// payerCmd is what an operator does about one person who pays.
type payerCmd struct {
	Export  payerExportCmd  `cmd:"" help:"Write all that is kept of a payer into one JSON file."`
	Forget  payerForgetCmd  `cmd:"" help:"Forget who a payer is, everywhere; money stays, under a name that says nothing."`
	Unseen  payerUnseenCmd  `cmd:"" help:"List the payers about whom nothing happened for long, or forget them."`
	Touched payerTouchedCmd `cmd:"" help:"List whose data was written in a time, merchant by merchant: for the report of a breach."`
}

// payerOf says which payer a command is about.
type payerOf struct {
	local

	Payer string `arg:"" help:"The payer's telephone number, as 08031234567 or +2348031234567; or the e-mail address of one who is known by no number."`
	Email string `placeholder:"ADDRESS" help:"Beside a number: also sessions that were made for this e-mail address. Merchants may use one for many payers: look before you use it."`
}

// knownBy is what the payer is known by: a telephone number, and an e-mail address
// where one was given, or an e-mail address alone.
type knownBy struct {
	phone flow.Phone
	email string
}

// name is what the payer is known by, to be read.
func (k knownBy) name() string {
	if k.phone == "" {
		return k.email
	}
	return "+" + string(k.phone)
}

// who reads what the payer is known by.
func (c *payerOf) who() (knownBy, error) {
	if err := c.Check(); err != nil {
		return knownBy{}, usageError{err}
	}
	of := knownBy{email: flow.FoldEmail(c.Email)}
	given := strings.TrimSpace(c.Payer)
	switch {
	case flow.IsAddress(given) && c.Email != "":
		return knownBy{}, usageError{errors.New("--email stands beside a telephone number")}
	case strings.HasSuffix(given, store.ForgottenHost):
		return knownBy{}, usageError{errors.New("that stands for a payer who was forgotten")}
	case flow.IsAddress(given):
		of.email = flow.FoldEmail(given)
	default:
		var ok bool
		if of.phone, ok = flow.ReadPhone(given); !ok {
			return knownBy{}, usageError{errors.New("that is no telephone number: give it as 08031234567 or +2348031234567")}
		}
	}
	if of.email != "" && !address(of.email) {
		return knownBy{}, usageError{fmt.Errorf("%q is no e-mail address", of.email)}
	}
	return of, nil
}

// payerIn is what one environment keeps of a payer.
type payerIn struct {
	env    flow.Environment
	payer  checkout.Payer
	things []string         // ids of what is theirs
	names  []string         // that they go by
	of     []flow.ProjectID // whose customer they are
	open   []store.Unsettled
}

// find looks a payer up in both environments, each as it is at one moment; more, where it
// is not nil, reads at the same.
func (c *payerOf) find(w *world, of knownBy, more func(payerIn, store.Reader) error) ([]payerIn, error) {
	var list []payerIn
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		look := func(r store.Reader) error {
			found := payerIn{env: env}
			var err error
			if found.payer, err = checkout.FindPayer(w.ctx, r, of.phone, of.email); err != nil {
				return err
			}
			if found.things, err = found.payer.Things(w.ctx, r); err != nil {
				return err
			}
			if found.names, found.of, err = found.payer.Names(w.ctx, r); err != nil {
				return err
			}
			if found.open, err = found.payer.Unsettled(w.ctx, r, clockOf(c.Settings, env)()); err != nil {
				return err
			}
			if list = append(list, found); more == nil {
				return nil
			}
			return more(found, r)
		}
		if err := c.in(w, env, func(db *store.DB) error { return db.View(w.ctx, look) }); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// in opens one environment; one that was never used has nothing of anybody.
func (c *payerOf) in(w *world, env flow.Environment, do func(*store.DB) error) error {
	err := beside(w, c.Settings, store.Checkout, string(env), "there is nothing kept", do)
	if env == flow.Live && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// besides counts what is not of an e-mail address alone: sessions that telephone
// numbers stand for too, and chats of people who speak of other sessions.
func besides(found []payerIn) (numbered, left int) {
	for _, f := range found {
		numbered, left = numbered+len(f.payer.Numbered), left+len(f.payer.Left)
	}
	return numbered, left
}

// ids are what WhatsApp knows a payer by, as far as the environments know.
func ids(found []payerIn) []string {
	var list []string
	for _, f := range found {
		if f.payer.Phone != "" {
			list = append(list, string(f.payer.Phone))
		}
		for _, chat := range f.payer.Chats {
			if !checkout.Forgotten(chat.Person) {
				list = append(list, chat.Person)
			}
		}
	}
	return list
}

// payerExportCmd writes all that is kept of a payer.
type payerExportCmd struct {
	payerOf

	Output string `short:"o" aliases:"out" default:"-" placeholder:"FILE" help:"The file, which must not be there yet; - for standard output."`
}

// Help is the command's example and what is in the file.
func (payerExportCmd) Help() string {
	return "Example:\n\n    till payer export 08031234567 --output ada.json\n\n" +
		"For a payer who asks what is kept of them: sessions, payments, what their merchants were told, every line of their chats, what supporters wrote down, and who looked at it or did something about it, by their role, and why, of both environments. " +
		"It runs beside a server. A session that was made for somebody else is in it as far as it was spoken of in their own chat, and who else paid is not told. It stands in the audit log that it was written."
}

// payerExport is what the file holds.
type payerExport struct {
	Phone    string                                    `json:"phone,omitempty"`
	Email    string                                    `json:"email,omitempty"` // of one who is known by it
	At       string                                    `json:"at"`
	Kept     map[flow.Environment]checkout.PayerRecord `json:"kept"`
	Acts     []payerAct                                `json:"acts"`
	WhatsApp []keyFile                                 `json:"whatsapp"` // how many rows of keys each of our numbers keeps to write to them
}

// payerAct is what somebody did about what is the payer's, or that they looked at it.
// Who they are is none of the payer's business, but for what they are there for.
type payerAct struct {
	At      string    `json:"at"`
	Role    flow.Role `json:"role"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"`
	Reason  string    `json:"reason"` // in their words
}

// mostActs is how many acts about one thing are told.
const mostActs = 1000

// actsAbout are what people did about things, oldest first.
func actsAbout(ctx context.Context, a *checkout.Accounts, things []string) ([]payerAct, error) {
	list := []flow.Audited{}
	for _, id := range things {
		for _, action := range []string{"", "look"} { // who looked is told apart
			some, _, err := a.Audits(ctx, store.AuditFilter{Subject: id, Action: action, Limit: mostActs})
			if err != nil {
				return nil, err
			}
			list = append(list, some...)
		}
	}
	slices.SortFunc(list, func(x, y flow.Audited) int { return strings.Compare(x.ID, y.ID) })
	out := make([]payerAct, 0, len(list))
	for _, one := range list {
		why, _, _ := strings.Cut(one.Reason, checkout.AskedBy)
		out = append(out, payerAct{flow.Stamp(one.At), one.Role, one.Action, one.Subject, why})
	}
	return out, nil
}

// Run writes the file.
func (c *payerExportCmd) Run(w *world) error {
	of, err := c.who()
	if err != nil {
		return err
	}
	out := payerExport{Email: of.email, At: flow.Stamp(time.Now()), Kept: map[flow.Environment]checkout.PayerRecord{}}
	if of.phone != "" {
		out.Phone = of.name()
	}
	found, err := c.find(w, of, func(f payerIn, r store.Reader) (err error) {
		out.Kept[f.env], err = f.payer.Record(w.ctx, r, flow.Surroundings{Live: f.env == flow.Live})
		return err
	})
	if err != nil {
		return err
	}
	if out.WhatsApp, err = keyFiles(w.ctx, c.Settings, ids(found)); err != nil {
		return err
	}
	var things []string
	for _, f := range found {
		things = append(things, f.things...)
	}
	if err := withAccounts(w, c.Settings, func(a *checkout.Accounts) (err error) {
		if out.Acts, err = actsAbout(w.ctx, a, things); err != nil {
			return err
		}
		return keepAct(w, a, "payer.export", found[0].payer.Who(), "")
	}); err != nil {
		return err
	}
	if numbered, left := besides(found); numbered+left > 0 {
		if _, err := fmt.Fprintf(w.err, "%s this address, and telephone numbers stand for them: those payers are looked for by their numbers. Not in it, for what else is spoken of there: %s.\n",
			flow.Counted(numbered, "more session", "holds", "hold"), flow.Count(left, "chat")); err != nil {
			return err
		}
	}
	if err := c.write(w, out); err != nil || out.holds() != (held{}) {
		return err
	}
	_, err = fmt.Fprintf(w.err, "No session and no chat of %s is kept, in test or live: is it right, and --data-dir?\n", of.name())
	return err
}

// held is how much of a payer a file holds.
type held struct{ sessions, chats int }

func (e payerExport) holds() (n held) {
	for _, kept := range e.Kept {
		n = held{n.sessions + len(kept.Sessions), n.chats + len(kept.Chats)}
	}
	return n
}

func (c *payerExportCmd) write(w *world, out payerExport) (err error) {
	if c.Output == "-" {
		return printJSON(w, out)
	}
	file, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write what is kept: %w (give another --output)", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := printJSON(&world{out: file}, out); err != nil {
		return err
	}
	n := out.holds()
	return printDone(w, c.JSON, map[string]any{"file": c.Output, "sessions": n.sessions, "chats": n.chats}, "%s  %s and %s\n", c.Output, flow.Count(n.sessions, "session"), flow.Count(n.chats, "chat"))
}
