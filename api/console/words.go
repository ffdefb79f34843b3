package console

import (
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"

	"till/flow"
)

// times are the functions of templates that depend on what time it is.
func times(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"when": func(at any) (template.HTML, error) { return whenever(at, now()) },
		"ago":  func(at time.Time) string { return ago(now().Sub(at)) },
	}
}

// words are the other functions that templates have.
func words() template.FuncMap {
	return template.FuncMap{
		"naira": naira, "quoted": quoted,
		"took":  took,
		"count": flow.Count,
		"day":   func(d flow.Date) string { return d.Start().In(flow.Lagos).Format("Mon 2 Jan 2006") },
		"clock": func(at time.Time) string { return at.In(flow.Lagos).Format("15:04") }, // where no marks of a page may stand
		"lower": func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"plain": plain,
		"dict":  dict,
		"command": func(env flow.Environment) string { // what a command of the live environment ends with
			if env == flow.Live {
				return " --live"
			}
			return ""
		},
		"mask": func(p flow.Phone) string { return p.String() },
		// phone shows a whole number: only what was asked for with a reason.
		"phone": func(p flow.Phone) string { return string(p) },
		"code":  flow.ShowCode,
		"host":  flow.HostOf,
		// told is what others answered, with whole numbers masked.
		"told": func(text []byte) string { return masked(strings.ToValidUTF8(string(text), "\ufffd")) },
	}
}

// wholeNumber is a telephone number somewhere in a text: one of Nigeria, or with
// what another country's begins with.
var wholeNumber = regexp.MustCompile(`\+[1-9](?:[ -]?[0-9]){7,14}\b|\b234(?:[ -]?[0-9]){10}\b|\b0[789][01](?:[ -]?[0-9]){8}\b`)

// masked is a text in which the middle of each telephone number is hidden.
func masked(text string) string {
	return wholeNumber.ReplaceAllStringFunc(text, func(s string) string {
		return flow.Phone(strings.NewReplacer("+", "", " ", "", "-", "").Replace(s)).String()
	})
}

// dict makes one value of several for a template that is given only one: names
// and values in turn.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict has %d names and values", len(pairs))
	}
	out := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is no name", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}

// plain shows a word that programs speak as people write it: bank_transfer is
// bank transfer, USSD stays USSD.
func plain(v any) string {
	if s := strings.ReplaceAll(strings.ToLower(fmt.Sprint(v)), "_", " "); s != "ussd" {
		return s
	}
	return "USSD"
}

// naira shows kobo with the sign, thousands and two decimals: ₦4,500.00.
func naira(amount any) string {
	var kobo int64
	switch a := amount.(type) {
	case flow.Kobo:
		kobo = int64(a)
	case int64:
		kobo = a
	case string: // as records hold it
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil {
			return a
		}
		kobo = n
	default:
		return fmt.Sprint(amount)
	}
	sign := ""
	if kobo < 0 {
		sign, kobo = "−", -kobo
	}
	whole := strconv.FormatInt(kobo/100, 10)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return fmt.Sprintf("%s₦%s.%02d", sign, whole, kobo%100)
}

// whenever shows a time, or one as records write it.
func whenever(at any, now time.Time) (template.HTML, error) {
	switch t := at.(type) {
	case time.Time:
		return when(t, now), nil
	case string:
		parsed, err := time.Parse(time.RFC3339, t)
		if err != nil {
			return "", fmt.Errorf("show a time: %w", err)
		}
		return when(parsed, now), nil
	}
	return "", fmt.Errorf("%v is no time", at)
}

// when shows a time as Lagos has it, with the UTC time on hover. One of today has no
// day on a screen; on paper, which is read another day, it has.
func when(at, now time.Time) template.HTML {
	if at.IsZero() || at.UnixMilli() == 0 {
		return "–"
	}
	local := at.In(flow.Lagos)
	form, day := "2 Jan 2006, 15:04", ""
	if y, m, d := local.Date(); func() bool { ny, nm, nd := now.In(flow.Lagos).Date(); return y == ny && m == nm && d == nd }() {
		form, day = "15:04:05", local.Format(` data-day="2 Jan 2006, "`)
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s Lagos, %s UTC"%s>%s</time>`, //nolint:gosec // times alone
		flow.Stamp(at), local.Format("2 Jan 2006 15:04:05.000"), at.UTC().Format("2 Jan 2006 15:04:05.000"), day, local.Format(form)))
}

// ago says how old something is, in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + ago(-d)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// took shows how long something lasted.
func took(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%d µs", d.Microseconds())
	}
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(time.Second).String()
}
