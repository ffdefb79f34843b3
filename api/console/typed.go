package console

import (
	"fmt"
	"time"

	"till/flow"
)

// Typed are the rules for what people type.
type Typed struct {
	Email func(string) bool
	Phone func(string) (flow.Phone, bool)
	// Text says what is wrong with a text of so many characters, "" where nothing is.
	Text func(s string, least, most int, multiline bool) (why string)
}

// The bounds of what people type, in characters.
const (
	maxTypedName = 100
	maxTypedNote = 255
	maxTypedURL  = 2048
)

// typing reads a form's fields by the rules, and gathers what is wrong with them.
type typing struct {
	v     *visit
	Wrong []string // sentences
}

func (v *visit) typing() *typing { return &typing{v: v} }

func (t *typing) fail(format string, args ...any) {
	t.Wrong = append(t.Wrong, fmt.Sprintf(format, args...))
}

// ok says that nothing was wrong.
func (t *typing) ok() bool { return len(t.Wrong) == 0 }

// text takes a text; one that may be missing has least 0.
func (t *typing) text(field, label string, least, most int, multiline bool) string {
	return t.judge(t.v.field(field), label, least, most, multiline)
}

// password takes a password as it was typed, white space and all.
func (t *typing) password(field, label string) string {
	return t.judge(t.v.form.Get(field), label, flow.MinPassword, flow.MaxPassword, false)
}

func (t *typing) judge(s, label string, least, most int, multiline bool) string {
	if s == "" && least == 0 {
		return ""
	}
	if why := t.v.console.cfg.Typed.Text(s, least, most, multiline); why != "" {
		t.fail("%s %s.", label, why)
		return ""
	}
	return s
}

// email takes one e-mail address.
func (t *typing) email(field string) string {
	s := t.v.field(field)
	if !t.v.console.cfg.Typed.Email(s) {
		t.fail("The e-mail address must be one address, such as ada@example.com.")
		return ""
	}
	return s
}

// phone takes a telephone number that may be missing.
func (t *typing) phone(field, label string) flow.Phone {
	s := t.v.field(field)
	if s == "" {
		return ""
	}
	p, ok := t.v.console.cfg.Typed.Phone(s)
	if !ok {
		t.fail("%s must be a phone number, such as 08031234567.", label)
	}
	return p
}

// moment takes a time as a browser writes it, in Lagos.
func (t *typing) moment(field, label string) time.Time {
	at, err := time.ParseInLocation("2006-01-02T15:04", t.v.field(field), flow.Lagos)
	if err != nil { // some browsers add the seconds
		at, err = time.ParseInLocation("2006-01-02T15:04:05", t.v.field(field), flow.Lagos)
	}
	if err != nil || at.Year() < 2000 || at.Year() > 2200 {
		t.fail("%s must be a day and a time.", label)
		return time.Time{}
	}
	return at.UTC()
}

// Task is one thing to do with the API, in every language.
type Task struct {
	Slug     string
	Title    string
	Text     string
	Programs []Program
}

// Program is one whole program that does it.
type Program struct {
	Language string
	Run      string // the command that runs it
	Code     string
}
