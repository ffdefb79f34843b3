package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// ErrNumbered refuses to forget a payer by an e-mail address alone while sessions of
// telephone numbers hold it too.
var ErrNumbered = errors.New("sessions of telephone numbers hold this address too")

// ErrUnsettled refuses to forget a payer while something of theirs is not over.
var ErrUnsettled = errors.New("something of this payer's is not over")

// Forgetter forgets payers in one environment: who they are and what they wrote
// goes, and a name that says nothing stands for them. Money, the ledger and how
// each turn was understood and decided stay as they are.
type Forgetter struct {
	db  *store.DB
	ids flow.IDs
}

// NewForgetter makes the commands about payers of an environment.
func NewForgetter(db *store.DB, now func() time.Time, random io.Reader) *Forgetter {
	return &Forgetter{db: db, ids: flow.IDs{Now: now, Rand: random}}
}

// NewName draws what stands for somebody from then on. By it alone nobody finds
// out who they were.
func (f *Forgetter) NewName() (string, error) { return f.ids.New(prefixForgotten) }

// Forgot is what was changed.
type Forgot struct {
	Sessions int   `json:"sessions"`
	Chats    int   `json:"chats"`
	Lines    int   `json:"lines"`
	Events   int   `json:"events"`
	Places   int64 `json:"otherPlaces"` // rows of others in which their phone, e-mail address or WhatsApp id stood
}

// Forget forgets a payer in one transaction; as stands for them, and in each chat
// with the same number of ours beyond the first another such name. Errors:
// ErrUnsettled, ErrNumbered.
func (f *Forgetter) Forget(ctx context.Context, p Payer, as string) (Forgot, error) {
	var out Forgot
	err := f.db.Update(store.Unhurried(ctx), func(tx *store.Tx) (err error) {
		out, err = f.forget(ctx, tx, p, as)
		return err
	})
	return out, wrap("forget a payer", err)
}

func (f *Forgetter) forget(ctx context.Context, tx *store.Tx, p Payer, as string) (out Forgot, err error) {
	if len(p.Numbered) > 0 {
		return out, ErrNumbered
	}
	open, err := p.Unsettled(ctx, tx.Reader, f.ids.Now())
	if err == nil && len(open) > 0 {
		err = ErrUnsettled
	}
	if err != nil {
		return out, err
	}
	words, err := aboutOf(ctx, tx.Reader, p)
	if err != nil {
		return out, err
	}
	e := newEraser(tx, p, words, as, &out)
	for _, s := range p.Sessions {
		if err := e.session(ctx, s); err != nil {
			return out, err
		}
	}
	for _, s := range p.Beside {
		if err := e.beside(ctx, s); err != nil {
			return out, err
		}
	}
	if err := e.purposes(ctx); err != nil {
		return out, err
	}
	named := map[string]bool{} // numbers of ours on which a chat has the name already
	for _, c := range p.Chats {
		// A telephone number can have had several WhatsApp accounts, as after its SIM
		// was given to somebody else, and no two of them may be one person's on one of
		// our numbers: each further one gets a name of its own, that says as little.
		name := as
		if named[c.Number] {
			if name, err = f.NewName(); err != nil {
				return out, err
			}
		}
		named[c.Number] = true
		if err := e.chat(ctx, c, name); err != nil {
			return out, err
		}
	}
	for _, word := range p.everywhere() {
		n, err := tx.Replace(ctx, word, as)
		if err != nil {
			return out, err
		}
		out.Places += n
	}
	return out, tx.OweWipe(ctx)
}

// shortestEverywhere is how long a text is at least that is replaced wherever it
// stands. Of an address only the whole one is.
const shortestEverywhere = 8

// everywhere are the texts that are nobody else's: wherever they stand, they are
// about the payer.
func (p Payer) everywhere() []string {
	list := []string{string(p.Phone), p.Email}
	for _, c := range p.Chats {
		if !Forgotten(c.Person) {
			list = append(list, c.Person)
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return len(s) < shortestEverywhere && !flow.IsAddress(s) })
}

// Everywhere is everywhere, with the number as Nigerians write it: for files and
// tables in which no longer number can hold it.
func (p Payer) Everywhere() []string {
	list := p.everywhere()
	if rest, ok := strings.CutPrefix(string(p.Phone), "234"); ok {
		list = append(list, "0"+rest)
	}
	return list
}

// aboutOf are the texts that say who a payer is, in what is theirs.
func aboutOf(ctx context.Context, r store.Reader, p Payer) (about, error) {
	a := about{who: p.Everywhere()}
	for _, c := range p.Chats {
		a.names = append(a.names, c.Name)
	}
	for _, s := range p.Sessions {
		a.who = append(a.who, string(s.CustomerPhone), s.CustomerEmail)
		a.names = append(a.names, s.CustomerName)
		a.written = append(a.written, s.Description, s.CallbackURL)
		for _, v := range s.Metadata {
			a.written = append(a.written, v)
		}
		payments, err := r.Payments(ctx, s.ID)
		if err != nil {
			return a, err
		}
		a.paid(payments)
	}
	for _, s := range p.Beside {
		payments, _, _, err := p.paid(ctx, r, s.ID, false)
		if err != nil {
			return a, err
		}
		a.paid(payments)
	}
	return a, nil
}

// withoutCustomer is JSON in which a name that says nothing stands for a customer
// and for who paid, and in which what their merchant wrote about them is left out.
func withoutCustomer(body []byte, as string) ([]byte, error) {
	return rewritten(body, func(whole any) bool {
		nameless(whole, as)
		return true
	})
}

// withoutReasons is JSON in which it is left out why money of payments was decided about
// and went back.
func withoutReasons(body []byte, of []flow.Payment) ([]byte, error) {
	return rewritten(body, func(whole any) bool { return unexplained(whole, of) })
}

// rewritten is JSON after change changed what it says; it stays as it is where nothing was.
func rewritten(body []byte, change func(any) bool) ([]byte, error) {
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	var whole any
	if err := dec.Decode(&whole); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if !change(whole) {
		return body, nil
	}
	return json.Marshal(whole)
}

// unexplained changes the objects about payments in a value, and says whether it did.
func unexplained(v any, of []flow.Payment) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			changed = unexplained(one, of) || changed
		}
	case map[string]any:
		for about, why := range map[string]string{"paymentId": "reason", "id": "resolveReason"} { // of a refund, and of a payment
			if v[why] != nil && slices.ContainsFunc(of, func(p flow.Payment) bool { return v[about] == string(p.ID) }) {
				v[why], changed = nil, true
			}
		}
		for _, one := range v {
			changed = unexplained(one, of) || changed
		}
	}
	return changed
}

// nameless changes the objects in a value.
func nameless(v any, as string) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			nameless(one, as)
		}
	case map[string]any:
		if _, refund := v["origin"]; refund && v["reason"] != nil { // why it goes back is of who paid; other reasons are the program's
			v["reason"] = nil
		}
		for name, value := range v {
			if by, is := instead(name, value, as); is {
				v[name] = by
				continue
			}
			nameless(value, as)
		}
	}
}

// instead is what stands in the place of a member that says who somebody is; is
// false for any other.
func instead(name string, value any, as string) (by any, is bool) {
	if value == nil {
		return nil, false
	}
	switch name {
	case "customerEmail":
		return as + store.ForgottenHost, true
	case "customerPhone", "description", "callbackUrl", "resolveReason":
		return nil, true
	case "customerName":
		return as, true
	case "metadata":
		return map[string]any{}, true
	case "customer":
		return map[string]any{"email": as + store.ForgottenHost, "phone": nil, "name": as}, true
	case "payer":
		return flow.PaidBy{Name: as}, true
	}
	return nil, false
}
