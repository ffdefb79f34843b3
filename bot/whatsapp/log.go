package whatsapp

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	waLog "go.mau.fi/whatsmeow/util/log"
)

// maxLine bounds what one line of the library may say.
const maxLine = 300

// numbers are phone numbers and LIDs, and whatever else is as long.
var numbers = regexp.MustCompile(`\d{3,}(\d{4})`)

// libraryLog passes on what whatsmeow warns of. Its lower levels print whole
// stanzas and are dropped; numbers of people are cut to their last digits.
type libraryLog struct {
	log    *slog.Logger
	module string
}

func logOf(log *slog.Logger, module string) waLog.Logger { return libraryLog{log: log, module: module} }

// harmless is what the library says each time it is hung up on.
const harmless = "Error sending close to websocket: %v"

// broken is what it says each time a line breaks, which it or we open again.
const broken = "Error reading from websocket: %v"

// Warnf logs a warning.
func (l libraryLog) Warnf(msg string, args ...any) {
	if msg == harmless {
		return
	}
	l.log.Warn("whatsmeow warns", l.attrs(msg, args)...)
}

// Errorf logs an error; what mends itself is a warning.
func (l libraryLog) Errorf(msg string, args ...any) {
	if msg == broken {
		l.Warnf(msg, args...)
		return
	}
	l.log.Error("whatsmeow failed", l.attrs(msg, args)...)
}

// Infof drops a line.
func (libraryLog) Infof(string, ...any) {}

// Debugf drops a line.
func (libraryLog) Debugf(string, ...any) {}

// Sub is the logger of a part.
func (l libraryLog) Sub(module string) waLog.Logger {
	return libraryLog{log: l.log, module: l.module + "/" + module}
}

func (l libraryLog) attrs(msg string, args []any) []any {
	return []any{slog.String("part", l.module), slog.String("text", scrub(fmt.Sprintf(msg, args...)))}
}

// scrub cuts long numbers in a line to their last digits, and the line itself.
func scrub(text string) string {
	text = numbers.ReplaceAllString(text, "…$1")
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	return text
}
