package console

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/skip2/go-qrcode"
)

// qrSVG draws a text as a QR code, dark on light whatever the page's colours
// are: cameras want it so. A text that does not fit into one is drawn as none.
func qrSVG(text string) template.HTML {
	code, err := qrcode.New(text, qrcode.Low)
	if err != nil {
		return ""
	}
	dots := code.Bitmap() // with its quiet zone
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="qr" viewBox="0 0 %d %d" role="img" aria-label="QR code to link a phone with" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h%dv%dH0z"/><path fill="#000" d="`,
		len(dots), len(dots), len(dots), len(dots))
	for y, row := range dots {
		for x := 0; x < len(row); x++ {
			from := x
			for x < len(row) && row[x] {
				x++
			}
			if x > from {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", from, y, x-from, x-from)
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers alone
}
