package sandbox

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"time"

	"till/flow"
)

//go:embed card.html
var cardHTML string

//go:embed card.css
var cardCSS []byte

// cardTemplate is read once; nothing changes it afterwards.
var cardTemplate = template.Must(template.New("card").Parse(cardHTML))

// maxForm bounds what the page's two buttons send, in bytes.
const maxForm = 1 << 10

// card is what the page shows. Heading and Text tell how it ended, when it has.
type card struct {
	Merchant, Amount, Reference, Expires string
	Heading, Text                        string
	Path                                 string // where the buttons go; "" shows none
}

// errUsed marks a link whose payment has ended.
var errUsed = errors.New("the link was used")

// cardPage shows a payer what there is to approve.
func (b *Bank) cardPage(w http.ResponseWriter, r *http.Request) {
	var m made
	var found bool
	err := b.file.view(func(f books) (err error) {
		m, found, err = f.instrumentBy("token", r.PathValue("token"))
		return err
	})
	switch {
	case err != nil:
		b.fail(r.Context(), w, err)
	case !found:
		b.page(w, r, http.StatusNotFound, card{Heading: "There is no such page", Text: "Check the link, or ask for a new one."})
	default:
		status, c := b.describe(m)
		b.page(w, r, status, c)
	}
}

// describe is the page of a payment as it stands: to be answered, ended or over.
func (b *Bank) describe(m made) (int, card) {
	c := card{
		Merchant: m.AccountName, Amount: flow.Kobo(m.Amount).Naira(), Reference: m.Reference,
		Expires: m.ExpiresAt.In(flow.Lagos).Format("2 January 2006, 15:04"), // as payers' own clocks say it
	}
	switch {
	case m.Outcome == cardApproved:
		c.Heading, c.Text = "This payment was approved", "The link works once and has been used."
		return http.StatusGone, c
	case m.Outcome == cardDeclined:
		c.Heading, c.Text = "This payment was declined", "The link works once and has been used. Ask for a new one to try again."
		return http.StatusGone, c
	case !b.now().Before(m.ExpiresAt):
		c.Heading, c.Text = "This page has expired", "Nothing was paid. Ask for a new link."
		return http.StatusGone, c
	}
	c.Path = "/card/" + m.Token
	return http.StatusOK, c
}

// cardAnswer takes in the button a payer pressed. The link is used up by it.
func (b *Bank) cardAnswer(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	outcome := map[string]string{"approve": cardApproved, "decline": cardDeclined}[r.PostFormValue("answer")]
	if outcome == "" {
		b.page(w, r, http.StatusBadRequest, card{Heading: "Nothing was chosen", Text: "Go back and choose Approve or Decline."})
		return
	}
	var status int
	var c card
	err := b.file.update(func(f books) error {
		m, found, err := f.instrumentBy("token", r.PathValue("token"))
		if err != nil {
			return err
		}
		if !found {
			status, c = http.StatusNotFound, card{Heading: "There is no such page", Text: "Check the link, or ask for a new one."}
			return nil
		}
		if status, c = b.describe(m); status != http.StatusOK {
			return errUsed
		}
		return b.end(f, m, outcome, b.now())
	})
	if err != nil && !errors.Is(err, errUsed) {
		b.fail(r.Context(), w, err)
		return
	}
	if err == nil && status == http.StatusOK {
		b.nudge()
		c.Path = ""
		c.Heading, c.Text = "Payment approved", "You can close this page and go back to the chat."
		if outcome == cardDeclined {
			c.Heading, c.Text = "Payment declined", "Nothing was paid. You can close this page and go back to the chat."
		}
	}
	b.page(w, r, status, c)
}

// page writes a page that loads nothing but its own style, runs no script and
// is kept nowhere. The referrer stays on this site, because the path is the key.
func (b *Bank) page(w http.ResponseWriter, r *http.Request, status int, c card) {
	var out bytes.Buffer
	if err := cardTemplate.Execute(&out, c); err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

// cardStyle serves the page's style.
func cardStyle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "max-age=3600")
	http.ServeContent(w, r, "card.css", time.Time{}, bytes.NewReader(cardCSS))
}
