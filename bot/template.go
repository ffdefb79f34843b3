package bot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// template is a message: lines, and the parts of each.
type template [][]part

// part is a literal text (no name), a placeholder (a name), or a stretch that
// is left out when the name is empty, or all of several (a name, with | between
// several, and what is inside).
type part struct {
	text   string
	name   string
	format string
	inner  []part
}

// The formats of a placeholder.
const (
	formatNone  = ""
	formatClock = "clock" // 4:35 pm
	formatLeft  = "left"  // 30 minutes
	formatFull  = "full"  // 21 Nov 2026, 4:12 pm WAT
	formatLabel = "label" // the value's name in this language
	formatLines = "lines" // all of it, line by line
)

var formats = []string{formatNone, formatClock, formatLeft, formatFull, formatLabel, formatLines}

var errTemplate = errors.New("not a template")

// parseTemplate reads a message once, so that nothing that a merchant or a
// payer wrote is ever read as a template.
func parseTemplate(source string) (template, error) {
	var t template
	for row := range strings.SplitSeq(source, "\n") {
		parts, err := parseParts(row, true)
		if err != nil {
			return nil, err
		}
		t = append(t, parts)
	}
	return t, nil
}

func parseParts(source string, optional bool) ([]part, error) {
	var parts []part
	for source != "" {
		i := strings.IndexAny(source, "{}[]")
		if i < 0 {
			return append(parts, part{text: source}), nil
		}
		if i > 0 {
			parts = append(parts, part{text: source[:i]})
		}
		end := map[byte]string{'{': "}", '[': "]"}[source[i]]
		inside, rest, closed := strings.Cut(source[i+1:], end)
		if end == "" || !closed || end == "]" && !optional {
			return nil, fmt.Errorf("%w: %q", errTemplate, source)
		}
		p, err := parsePart(inside, end == "]")
		if err != nil {
			return nil, err
		}
		parts, source = append(parts, p), rest
	}
	return parts, nil
}

func parsePart(inside string, optional bool) (part, error) {
	if optional {
		name, text, cut := strings.Cut(inside, "?")
		if !cut || name == "" || text == "" {
			return part{}, fmt.Errorf("%w: [%s] has no name or no text", errTemplate, inside)
		}
		inner, err := parseParts(text, false)
		return part{name: name, inner: inner}, err
	}
	name, format, _ := strings.Cut(inside, ".")
	if name == "" || !slices.Contains(formats, format) {
		return part{}, fmt.Errorf("%w: {%s}", errTemplate, inside)
	}
	return part{name: name, format: format}, nil
}
