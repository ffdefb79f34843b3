// Package receipt draws what was paid as a picture that can be sent to a payer.
// A picture proves nothing: who asks whether money came reads the session.
package receipt

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"till/flow"
	"till/flow/checkout"
)

// Kind is the media type of a receipt.
const Kind = "image/png"

// The measures of a receipt's picture, in pixels: a phone shows it whole.
const (
	paperWidth = 720
	paperEdge  = 48
	paperBar   = 16
	titleSize  = 40
	amountSize = 56
	lineSize   = 24
	lineStep   = 40
	besideName = 176 // from where a line's name begins to where its words do
)

// Draw draws the receipt of a session in an environment. Money that waits for a
// decision, or came beyond what was asked for, is not receipted. Errors:
// session_not_paid.
func Draw(view checkout.View, env flow.Environment, now time.Time) ([]byte, error) {
	s := view.Session
	if s.Status != flow.SessionPaid || s.AmountPaid <= 0 {
		return nil, flow.Refuse(flow.CodeNotPaid, "There is no receipt: this session is not paid.")
	}
	lines := [][2]string{{"Paid to", s.Merchant}, {"On", s.PaidAt.In(flow.Lagos).Format("2 January 2006, 15:04") + " (Lagos)"}}
	for _, line := range [][2]string{{"For", s.Description}, {"Customer", s.CustomerName}, {"Reference", s.Reference}} {
		if line[1] != "" {
			lines = append(lines, line)
		}
	}
	for _, a := range view.Attempts {
		if a.Status == flow.AttemptSucceeded {
			lines = append(lines, [2]string{"By", strings.ReplaceAll(string(a.Method), "_", " ")}, [2]string{"Till's reference", a.Reference})
		}
	}
	lines = append(lines, gone(s, view.Payments)...)
	if env == flow.Test {
		lines = append(lines, [2]string{"Test", "No real money moved."})
	}
	return draw(money(s.AmountPaid), lines, env, now)
}

// gone is what of the money that a receipt is of went back, or was taken back by the
// bank: without it a picture would say that all is still paid.
func gone(s flow.Session, payments []flow.Payment) [][2]string {
	back, taken := flow.Gone(s, payments)
	var lines [][2]string
	if back > 0 {
		lines = append(lines, [2]string{"Sent back", money(back)})
	}
	if bounced := flow.Bounced(payments); bounced > 0 {
		lines = append(lines, [2]string{"Did not arrive", money(bounced)})
	}
	if taken > 0 {
		lines = append(lines, [2]string{"Bank took back", money(taken)})
	}
	return lines
}

// money is an amount as the typeface can write it.
func money(k flow.Kobo) string { return "NGN " + strings.TrimPrefix(k.Naira(), "₦") }

// Disposition is what a browser does with the receipt of a session, and the name
// of the file where it is kept.
func Disposition(id flow.SessionID) string {
	return `inline; filename="receipt-` + string(id) + `.png"`
}

// typefaces are those of a receipt, read once.
var typefaces = sync.OnceValues(func() (list [2]*opentype.Font, err error) {
	for i, ttf := range [][]byte{goregular.TTF, gobold.TTF} {
		if list[i], err = opentype.Parse(ttf); err != nil {
			return list, fmt.Errorf("read the typeface of receipts: %w", err)
		}
	}
	return list, nil
})

// draw draws a receipt. The typeface has no sign for the naira: its code stands
// there instead (ISO 4217).
func draw(amount string, lines [][2]string, env flow.Environment, now time.Time) ([]byte, error) {
	fonts, err := typefaces()
	if err != nil {
		return nil, err
	}
	regular, bold := fonts[0], fonts[1]
	if lines, err = set(regular, lines); err != nil {
		return nil, err
	}
	ink, soft, bar := color.RGBA{0x16, 0x21, 0x1d, 0xff}, color.RGBA{0x55, 0x63, 0x5d, 0xff}, color.RGBA{0x0b, 0x6b, 0x53, 0xff}
	if env == flow.Test {
		bar = color.RGBA{0x1d, 0x4e, 0xd8, 0xff}
	}
	height := paperBar + 3*paperEdge + titleSize + amountSize + (len(lines)+2)*lineStep
	paper := image.NewRGBA(image.Rect(0, 0, paperWidth, height))
	imagedraw.Draw(paper, paper.Bounds(), image.White, image.Point{}, imagedraw.Src)
	imagedraw.Draw(paper, image.Rect(0, 0, paperWidth, paperBar), image.NewUniform(bar), image.Point{}, imagedraw.Src)
	write := func(f *opentype.Font, size float64, at color.Color, x, y int, text string) error { // sizes of letters, no money
		face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return fmt.Errorf("draw a receipt: %w", err)
		}
		pen := font.Drawer{Dst: paper, Src: image.NewUniform(at), Face: face, Dot: fixed.P(x, y)}
		pen.DrawString(text)
		return face.Close()
	}
	y := paperBar + paperEdge + titleSize
	err = write(bold, titleSize, ink, paperEdge, y, "Receipt")
	if y += paperEdge/2 + amountSize; err == nil {
		err = write(bold, amountSize, bar, paperEdge, y, amount)
	}
	y += paperEdge
	for _, line := range lines {
		if err == nil {
			err = write(regular, lineSize, soft, paperEdge, y, line[0])
		}
		if err == nil {
			err = write(regular, lineSize, ink, paperEdge+besideName, y, line[1])
		}
		y += lineStep
	}
	if err == nil {
		err = write(regular, lineSize-6, soft, paperEdge, y+lineStep/2, "Made by Till on "+now.In(flow.Lagos).Format("2 January 2006, 15:04"))
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := png.Encode(&out, paper); err != nil {
		return nil, fmt.Errorf("draw a receipt: %w", err)
	}
	return out.Bytes(), nil
}

// set breaks what does not fit beside its name into lines that do, in letters
// that the typeface has.
func set(f *opentype.Font, lines [][2]string) ([][2]string, error) {
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: lineSize, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("set a receipt: %w", err)
	}
	const width = paperWidth - paperEdge - besideName - paperEdge/2
	var out [][2]string
	for _, line := range lines {
		rest := []rune(written(f, line[1]))
		for name := line[0]; len(rest) > 0; name = "" {
			n := 1
			for ; n < len(rest) && font.MeasureString(face, string(rest[:n+1])) <= fixed.I(width); n++ {
			}
			for at := n; n < len(rest) && at > 0; at-- { // between two words, where there are two
				if rest[at] == ' ' {
					n = at + 1
					break
				}
			}
			out, rest = append(out, [2]string{name, string(rest[:n])}), rest[n:]
		}
	}
	return out, face.Close()
}

// bare are the letters of Nigeria's languages, and its sign, that the typeface
// lacks, as accounts at its banks have them.
var bare = strings.NewReplacer("ẹ", "e", "Ẹ", "E", "ị", "i", "Ị", "I", "ọ", "o", "Ọ", "O", "ụ", "u", "Ụ", "U", "ṣ", "s", "Ṣ", "S", "ǹ", "n", "Ǹ", "N",
	"ṅ", "n", "Ṅ", "N", "ḿ", "m", "Ḿ", "M", "ɓ", "b", "Ɓ", "B", "ɗ", "d", "Ɗ", "D", "ƙ", "k", "Ƙ", "K", "ƴ", "y", "Ƴ", "Y", "₦", "NGN ")

// written is a text in letters that the typeface has. Of other scripts and pictures
// it has none: dots stand where they were.
func written(f *opentype.Font, text string) string {
	var out strings.Builder
	var has sfnt.Buffer
	dots := false
	for _, r := range bare.Replace(text) {
		glyph, err := f.GlyphIndex(&has, r)
		switch {
		case unicode.In(r, unicode.M, unicode.Cf): // on the letter before, or not seen
		case err == nil && glyph != 0:
			out.WriteRune(r)
			dots = dots && r == ' '
		case !dots:
			out.WriteRune('…')
			dots = true
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}
