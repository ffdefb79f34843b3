package sandbox_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// shown is a page as a browser got it.
type shown struct {
	status int
	header http.Header
	page   string
}

// open asks for a page.
func open(t *testing.T, at string) shown {
	t.Helper()
	return browse(t, http.MethodGet, at, nil)
}

// press posts what a button of a page sends.
func press(t *testing.T, at string, values url.Values) shown {
	t.Helper()
	return browse(t, http.MethodPost, at, values)
}

func browse(t *testing.T, method, at string, values url.Values) shown {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(values.Encode()))
	must(t, err)
	if values != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	return shown{res.StatusCode, res.Header, string(text)}
}

// form finds where the page's form goes and what its buttons send.
func form(t *testing.T, page string) (action string, buttons map[string]string) {
	t.Helper()
	found := regexp.MustCompile(`<form method="post" action="([^"]+)">`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no form in %s", page)
	}
	buttons = map[string]string{}
	for _, b := range regexp.MustCompile(`<button[^>]* name="(\w+)" value="(\w+)">(\w+)</button>`).FindAllStringSubmatch(page, -1) {
		buttons[b[3]] = b[1] + "=" + b[2]
	}
	return found[1], buttons
}

func TestCardPage(t *testing.T) {
	for button, want := range map[string]flow.NoticeKind{"Approve": flow.Credit, "Decline": flow.Declined} {
		t.Run(button, func(t *testing.T) {
			w := openTown(t)
			o := w.order(flow.Card, "ref")
			o.AccountName = `Ada & <script>alert("x")</script>`
			ins, err := w.rail.Start(t.Context(), o)
			must(t, err)
			link, err := url.Parse(ins.CheckoutURL)
			if err != nil || len(link.Path) != len("/card/")+43 { // 256 bits in base64
				t.Fatalf("checkout URL %q, %v", ins.CheckoutURL, err)
			}
			first := open(t, ins.CheckoutURL)
			page := first.page
			if first.status != http.StatusOK || strings.Contains(page, "<script>") {
				t.Fatalf("%+v", first)
			}
			for _, text := range []string{"Ada &amp; &lt;script&gt;", "₦5,000", "Test bank.", "no card number is asked for", o.ExpiresAt.In(flow.Lagos).Format("2 January 2006, 15:04<"), `<html lang="en">`, "<main>", "<h1>"} {
				if !strings.Contains(page, text) {
					t.Errorf("the page lacks %q", text)
				}
			}
			if n := strings.Count(page, "<input"); n != 0 {
				t.Errorf("the page has %d fields to type in", n)
			}
			csp := first.header.Get("Content-Security-Policy")
			if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || first.header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", first.header)
			}
			if got := open(t, w.url+"/card/style.css"); got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/css") || got.page == "" {
				t.Errorf("style %+v", got)
			}
			action, buttons := form(t, page)
			values, err := url.ParseQuery(buttons[button])
			if err != nil || len(values) == 0 {
				t.Fatalf("buttons %v", buttons)
			}
			if got := press(t, w.url+action, values); got.status != http.StatusOK ||
				!strings.Contains(got.page, "Payment "+strings.ToLower(button)) || strings.Contains(got.page, "<form") {
				t.Errorf("%+v", got)
			}
			if n := w.hear(t); n.Kind != want || n.Channel != flow.Card || n.Reference != "ref" || n.Amount != 500_000 {
				t.Errorf("notice %+v", n)
			}
			// The link is used up: by the page, by the buttons and by the test door.
			if got := press(t, w.url+action, values); got.status != http.StatusGone || strings.Contains(got.page, "<form") {
				t.Errorf("pressed twice: %+v", got)
			}
			if got := open(t, ins.CheckoutURL); got.status != http.StatusGone || strings.Contains(got.page, "<form") {
				t.Errorf("opened again: %+v", got)
			}
			if err := w.rail.CompleteCard(t.Context(), "ref", "approved"); !errors.Is(err, rail.ErrRejected) {
				t.Errorf("CompleteCard = %v", err)
			}
			w.settled(t)
			w.silent(t)
			if got, err := w.rail.Check(t.Context(), "ref"); err != nil || len(got) != 1 || got[0].Kind != want {
				t.Errorf("Check = %+v, %v", got, err)
			}
		})
	}
}

// However many press at once, one outcome is booked.
func TestCardPageOnce(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.Card, "ref")
	var group sync.WaitGroup
	status := make([]int, 10)
	for i := range status {
		answer := []string{"approve", "decline"}[i%2]
		group.Go(func() {
			status[i], _ = send(t, http.MethodPost, ins.CheckoutURL, "answer="+answer, "Content-Type", "application/x-www-form-urlencoded")
		})
	}
	group.Wait()
	good := 0
	for _, s := range status {
		if s == 200 {
			good++
		} else if s != 410 {
			t.Errorf("status %d", s)
		}
	}
	got, err := w.rail.Check(t.Context(), "ref")
	if err != nil || good != 1 || len(got) != 1 {
		t.Errorf("%d were told it was done, booked %+v, %v", good, got, err)
	}
}

func TestCardPageRefuses(t *testing.T) {
	w := openTown(t)
	ins := w.start(t, flow.Card, "ref")
	const formType = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		at, body string
		want     int
		header   []string
	}{
		"no answer":       {ins.CheckoutURL, "x=y", 400, nil},
		"other answer":    {ins.CheckoutURL, "answer=perhaps", 400, nil},
		"card number":     {ins.CheckoutURL, "answer=&number=4111", 400, nil},
		"huge form":       {ins.CheckoutURL, "x=" + strings.Repeat("y", 4000) + "&answer=approve", 400, nil},
		"another link":    {ins.CheckoutURL[:len(ins.CheckoutURL)-1] + "_", "answer=approve", 404, nil},
		"reference":       {w.url + "/card/ref", "answer=approve", 404, nil},
		"from other site": {ins.CheckoutURL, "answer=approve", 403, []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		if status, text := send(t, "POST", c.at, c.body, append([]string{"Content-Type", formType}, c.header...)...); status != c.want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if got := open(t, w.url+"/card/none"); got.status != http.StatusNotFound {
		t.Errorf("no such page: %+v", got)
	}
	w.clock.advance(31 * time.Minute)
	if got := open(t, ins.CheckoutURL); got.status != http.StatusGone || !strings.Contains(got.page, "expired") {
		t.Errorf("expired: %+v", got)
	}
	if status, _ := send(t, "POST", ins.CheckoutURL, "answer=approve", "Content-Type", formType); status != 410 {
		t.Errorf("approved after its end: %d", status)
	}
	if got, err := w.rail.Check(t.Context(), "ref"); err != nil || len(got) != 0 {
		t.Errorf("Check = %+v, %v", got, err)
	}
}
