package whatsapp

import qrcode "github.com/skip2/go-qrcode"

// TerminalQR draws a text as a QR code out of block characters, two rows to a
// line, for a terminal with light letters on dark ground. A text that does not
// fit into a QR code is returned as it is.
func TerminalQR(text string) string {
	code, err := qrcode.New(text, qrcode.Low)
	if err != nil {
		return text
	}
	return code.ToSmallString(false)
}
