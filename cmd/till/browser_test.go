package main

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	cdpnet "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

var pictures = flag.Bool("pictures", false, "take the README's pictures anew")

// browser opens Chromium and reports what its pages complain of and ask for.
func browser(t *testing.T, width, height int) (context.Context, *complaints) {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		path = tilltest.Need(t, "chromium", "chromium")
	}
	// Not t.TempDir: what Chromium still writes while it ends must not fail a test.
	dir, err := os.MkdirTemp("", "till-chromium-") //nolint:usetesting // see above
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(width, height),
		chromedp.UserDataDir(dir), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"))
	alloc, stopAlloc := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stop := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {})) // it does not know every event of a newer browser
	ctx, stopTime := context.WithTimeout(ctx, 2*tilltest.Patience)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		stopTime()
		stop()
		stopAlloc()
	})
	c := &complaints{}
	chromedp.ListenTarget(ctx, c.listen)
	must(t, chromedp.Run(ctx, cdpnet.Enable(), log.Enable(), runtime.Enable()))
	return ctx, c
}

// complaints is what a page's console said and where the page reached out to.
type complaints struct {
	said    []string
	foreign []string
}

func (c *complaints) listen(e any) {
	switch e := e.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			c.said = append(c.said, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		c.said = append(c.said, e.ExceptionDetails.Error())
	case *cdpnet.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "http://127.0.0.1:") && !strings.HasPrefix(url, "data:") {
			c.foreign = append(c.foreign, url)
		}
	}
}

// says is the text of a page's element, waited for.
func textOf(selector string, into *string) chromedp.Action {
	return chromedp.Text(selector, into, chromedp.ByQuery, chromedp.NodeVisible)
}

// A person opens the link of a session in a browser, plays the payer on the
// phone page and pays there.
func TestThePhonePagePlaysAPayer(t *testing.T) {
	ctx, complained := browser(t, 1180, 1080)
	m, _, _ := devServer(t)
	s := newSink(m)
	data := m.call(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{
		"amount": 500_000, "customerEmail": "bola@example.com", "mode": "chat", "reference": "order-1182", "description": "Order 1182",
	})
	link := data["checkoutUrl"].(string)
	var typed, receipt string
	err := chromedp.Run(ctx,
		chromedp.Navigate(link),
		chromedp.WaitVisible("#text", chromedp.ByQuery),
		chromedp.Click("#add", chromedp.ByQuery),
		chromedp.WaitVisible("#create button[type=submit]", chromedp.ByQuery),
		chromedp.Click("#create button[type=submit]", chromedp.ByQuery),
		chromedp.Poll(`document.querySelector('#phones').options.length > 0 && !document.querySelector('dialog').open`, nil),
		chromedp.Value("#text", &typed, chromedp.ByQuery),
	)
	must(t, err)
	if !strings.HasPrefix(typed, "Pay ") {
		t.Fatalf("the link led to a phone whose message field holds %q", typed)
	}
	shows := func(text string) chromedp.Action {
		return chromedp.Poll(`document.querySelector('#log').innerText.includes(`+"`"+text+"`"+`)`, nil, chromedp.WithPollingTimeout(tilltest.Patience))
	}
	send := chromedp.Click("#compose button[type=submit]", chromedp.ByQuery)
	err = chromedp.Run(ctx,
		send, shows("1 Bank transfer"),
		chromedp.SendKeys("#text", "1", chromedp.ByQuery), send, shows("I confirm here by myself"),
		chromedp.WaitVisible("#pay", chromedp.ByQuery), chromedp.Click("#pay", chromedp.ByQuery),
		shows("Receipt: ₦5,000 to Ada Stores"),
		textOf("#log", &receipt),
	)
	if err != nil {
		t.Fatalf("%v; the page complains of %v", err, complained.said)
	}
	if e := s.success(); e["reference"] != "order-1182" {
		t.Errorf("the webhook is about %v", e["reference"])
	}
	if len(complained.said) > 0 || len(complained.foreign) > 0 {
		t.Errorf("the page complains of %v and reaches for %v", complained.said, complained.foreign)
	}
	if *pictures {
		picture(t, ctx, filepath.Join("..", "..", ".github", "phone.png"))
	}
	// The next payment of the same phone begins with nothing to pay.
	_, next := m.openChat(250_000, "order-1183")
	err = chromedp.Run(ctx,
		chromedp.SendKeys("#text", next, chromedp.ByQuery), send, shows("₦2,500"),
		chromedp.WaitNotVisible("#pay", chromedp.ByQuery),
	)
	if err != nil {
		t.Errorf("the page still offers to pay what is paid: %v", err)
	}
}

// picture keeps what a page looks like.
func picture(t *testing.T, ctx context.Context, file string) { //nolint:revive // the test comes first in tests
	t.Helper()
	var png []byte
	must(t, chromedp.Run(ctx, chromedp.Sleep(300*time.Millisecond), chromedp.CaptureScreenshot(&png)))
	must(t, os.WriteFile(file, png, 0o600))
}

// A person tries a payment out in the sandbox of the console, and has it played
// again.
func TestTheSandboxAndTheReplayInABrowser(t *testing.T) {
	ctx, complained := browser(t, 1300, 1000)
	m, _, _ := devServer(t)
	within := `document.querySelector('iframe').contentDocument`
	poll := func(what string) chromedp.Action { // also while another page is loaded
		return chromedp.ActionFunc(func(ctx context.Context) error {
			await.Until(t, what, func() bool {
				var is bool
				return chromedp.Evaluate(what, &is).Do(ctx) == nil && is
			})
			return nil
		})
	}
	do := func(what string) chromedp.Action { return chromedp.Evaluate(what+`; true`, nil) }
	told := func(text string) chromedp.Action {
		return poll(within + `.querySelector('#log').innerText.includes(` + "`" + text + "`" + `)`)
	}
	write := func(text string) chromedp.Action {
		return do(within + `.querySelector('#text').value = '` + text + `'; ` + within + `.querySelector('#compose').requestSubmit()`)
	}
	for i, step := range []chromedp.Action{
		chromedp.Navigate(m.base + "/login?next=/try"), chromedp.Click(`button[value=owner]`, chromedp.ByQuery),
		chromedp.WaitVisible("#amount", chromedp.ByQuery), chromedp.Click(`form[action="/try/catch"] button`, chromedp.ByQuery),
		chromedp.WaitVisible(".said", chromedp.ByQuery),
		chromedp.Click(`form[action="/try/open"] button`, chromedp.ByQuery),
		chromedp.WaitVisible(`iframe[src*="text="]`, chromedp.ByQuery),
		poll(`document.querySelector('iframe')?.contentDocument?.querySelector('dialog')?.open`),
		do(within + `.querySelector('#create button[type=submit]').click()`),
		poll(within + `.querySelector('#phones').options.length > 0 && !` + within + `.querySelector('dialog').open`),
		poll(within + `.querySelector('#text').value.startsWith('Pay ')`),
		do(within + `.querySelector('#compose').requestSubmit()`), told("1 Bank transfer"),
		write("1"), told("I confirm here by myself"),
		chromedp.WaitVisible("#exact", chromedp.ByQuery), chromedp.Click("#exact", chromedp.ByQuery),
		poll(`document.querySelector('[data-live]')?.innerText.includes('signature verifies')`),
		told("Receipt: ₦5,000"), poll(within + `.querySelector('.tick.read') !== null`),
		chromedp.Click(`[data-live] a[href$="/replay"]`, chromedp.ByQuery),
	} {
		if err := chromedp.Run(ctx, step); err != nil {
			t.Fatalf("step %d: %v; the page complains of %v", i, err, complained.said)
		}
	}
	shown := `[...document.querySelectorAll('.turns > li')].filter((t) => !t.hidden).length`
	err := chromedp.Run(ctx,
		chromedp.WaitVisible("[data-player]", chromedp.ByQuery),
		poll(`document.querySelector('#verdict').innerText.startsWith('Replay matches log')`),
		poll(`document.querySelector('[data-steps]').hidden && `+shown+` >= 4`),
		do(`document.querySelector('#speed').value = '16'`),
		chromedp.Click("[data-do=play]", chromedp.ByQuery), poll(shown+` === 1 || document.querySelector('[data-do=play]').textContent === 'Pause'`),
		poll(`document.querySelector('[data-do=play]').textContent === 'Play' && `+shown+` === document.querySelectorAll('.turns > li').length`),
		do(`document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }))`),
		poll(shown+` === document.querySelectorAll('.turns > li').length - 1`),
	)
	if err != nil {
		t.Fatalf("%v; the page complains of %v", err, complained.said)
	}
	if len(complained.said) > 0 || len(complained.foreign) > 0 {
		t.Errorf("the page complains of %v and reaches for %v", complained.said, complained.foreign)
	}
}
