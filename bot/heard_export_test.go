package bot

import (
	"strings"

	"till/flow"
)

// ParseLexicon reads word lists that are not built in.
func ParseLexicon(sources map[flow.Lang]string) error {
	_, err := parseLexicon(sources)
	return err
}

// LoadLexicon reads the word lists that are built in.
func LoadLexicon() error {
	_, err := loadLexicon()
	return err
}

// Near says whether two words are one slip apart.
var Near = near

// People counts the people whose last messages are remembered.
func (b *Bot) People() int { return b.last.order.Len() }

// Names says whether a text has the digit, a number's name or a phrase of a
// method in it, with letters that were held down written less often.
func Names(text string, method flow.Method) bool {
	l, words := vocabulary(), plainWords(fold(text))
	for _, words := range append(squeezed(words), words) {
		line := " " + strings.Join(words, " ") + " "
		for phrase, m := range l.is {
			if m.method == method && strings.Contains(line, " "+phrase+" ") {
				return true
			}
		}
		for name, n := range l.numbers {
			if options[n].method == method && strings.Contains(line, " "+name+" ") {
				return true
			}
		}
		for _, w := range words {
			if len(w) == 1 && options[int(w[0]-'0')].method == method {
				return true
			}
		}
	}
	return false
}
