package console

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"strings"
	"time"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"till/flow"
)

// The measures of a receipt's picture, in pixels: a phone shows it whole.
const (
	paperWidth  = 720
	paperEdge   = 48
	paperBar    = 16
	titleSize   = 40
	amountSize  = 56
	lineSize    = 24
	lineStep    = 40
	mostLetters = 44 // in a line; what is longer ends in dots
)

// receipt is GET /sessions/{id}/receipt.png: what was paid, as a picture that a
// payer can be sent. Money that went back again is not receipted.
func (c *Console) receipt(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	if s.Status != flow.SessionPaid || s.AmountPaid <= 0 {
		return flow.Refuse(flow.CodeNotFound, "There is no receipt: this session is not paid.")
	}
	view, err := v.service.View(v.ctx, s.Project, s.ID)
	if err != nil {
		return err
	}
	lines := [][2]string{{"Paid to", s.Merchant}, {"On", s.PaidAt.In(lagos).Format("2 January 2006, 15:04") + " (Lagos)"}}
	if s.Description != "" {
		lines = append(lines, [2]string{"For", s.Description})
	}
	if s.CustomerName != "" {
		lines = append(lines, [2]string{"Customer", s.CustomerName})
	}
	if s.Reference != "" {
		lines = append(lines, [2]string{"Reference", s.Reference})
	}
	for _, a := range view.Attempts {
		if a.Status == flow.AttemptSucceeded {
			lines = append(lines, [2]string{"By", strings.ReplaceAll(string(a.Method), "_", " ")}, [2]string{"Till's reference", a.Reference})
		}
	}
	if v.env == flow.Test {
		lines = append(lines, [2]string{"Test", "No real money moved."})
	}
	picture, err := drawReceipt("NGN "+strings.TrimPrefix(naira(s.AmountPaid), "₦"), lines, v.env, c.cfg.Now())
	if err != nil {
		return err
	}
	v.http.Set("Content-Type", "image/png")
	v.http.Set("Content-Disposition", `inline; filename="receipt-`+string(s.ID)+`.png"`)
	return v.http.Status(http.StatusOK).Send(picture)
}

// drawReceipt draws a receipt. The typeface has no sign for the naira: its code
// stands there instead (ISO 4217).
func drawReceipt(amount string, lines [][2]string, env flow.Environment, now time.Time) ([]byte, error) {
	regular, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("read the typeface of receipts: %w", err)
	}
	bold, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, fmt.Errorf("read the typeface of receipts: %w", err)
	}
	ink, soft, bar := color.RGBA{0x16, 0x21, 0x1d, 0xff}, color.RGBA{0x55, 0x63, 0x5d, 0xff}, color.RGBA{0x0b, 0x6b, 0x53, 0xff}
	if env == flow.Test {
		bar = color.RGBA{0x1d, 0x4e, 0xd8, 0xff}
	}
	height := paperBar + 3*paperEdge + titleSize + amountSize + (len(lines)+2)*lineStep
	paper := image.NewRGBA(image.Rect(0, 0, paperWidth, height))
	draw.Draw(paper, paper.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(paper, image.Rect(0, 0, paperWidth, paperBar), image.NewUniform(bar), image.Point{}, draw.Src)
	write := func(f *opentype.Font, size float64, at color.Color, x, y int, text string) error { // sizes of letters, no money
		face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return fmt.Errorf("draw a receipt: %w", err)
		}
		pen := font.Drawer{Dst: paper, Src: image.NewUniform(at), Face: face, Dot: fixed.P(x, y)}
		pen.DrawString(shorten(text))
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
			err = write(regular, lineSize, ink, paperEdge+200, y, line[1])
		}
		y += lineStep
	}
	if err == nil {
		err = write(regular, lineSize-6, soft, paperEdge, y+lineStep/2, "Made by Till on "+now.In(lagos).Format("2 January 2006, 15:04"))
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

// shorten cuts what does not fit into a line.
func shorten(text string) string {
	letters := []rune(text)
	if len(letters) <= mostLetters {
		return text
	}
	return string(letters[:mostLetters-1]) + "…"
}
