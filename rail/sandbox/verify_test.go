package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/rail"
	"till/rail/sandbox"
)

func person(t *testing.T, number string) rail.Person {
	t.Helper()
	n, ok := flow.ReadIdentityNumber(number)
	if !ok {
		t.Fatalf("%q is no number", number)
	}
	return rail.Person{Verification: "wsp_ver_1", Type: flow.BVN, Number: n, FirstName: "Ada", LastName: "Obi", DateOfBirth: "1990-04-21"}
}

func TestAccountsAreResolved(t *testing.T) {
	w := openTown(t)
	virtual := w.start(t, flow.BankTransfer, "ref")
	for _, c := range []struct {
		account, bank, name string
		err                 error
	}{
		{"0000000001", "999", "ADA TEST PAYER", nil},
		{"0000000002", "999", "", rail.ErrNotFound},
		{"0000000003", "999", "", rail.ErrUnavailable},
		{"0000000005", "999", "", rail.ErrNotFound},
		{virtual.AccountNumber, "999", "ADA STORES/CHECKOUT", nil},
		{"0000000001", "058", "", rail.ErrNotFound},
		{virtual.AccountNumber, "058", "", rail.ErrNotFound},
		{"0000000003", "058", "", rail.ErrNotFound},
		{"000000001", "999", "", rail.ErrRejected},
		{"0000000001", "99x", "", rail.ErrRejected},
	} {
		name, err := w.rail.ResolveAccount(t.Context(), rail.Account{Number: c.account, BankCode: c.bank})
		if name != c.name || !errors.Is(err, c.err) {
			t.Errorf("%s at %s: %q, %v", c.account, c.bank, name, err)
		}
	}
}

func TestTheSlowAccountIsNotWaitedFor(t *testing.T) {
	w := openTown(t)
	hasty := newRail(t, w.url, w.clock.Now, 200*time.Millisecond)
	if _, err := hasty.ResolveAccount(t.Context(), rail.Account{Number: "0000000004", BankCode: "999"}); !errors.Is(err, rail.ErrUnknown) {
		t.Errorf("slow: %v", err)
	}
	if _, err := w.rail.ResolveAccount(t.Context(), rail.Account{Number: "0000000004", BankCode: "058"}); !errors.Is(err, rail.ErrNotFound) {
		t.Errorf("slow at another bank: %v", err)
	}
}

func TestPeopleAreCompared(t *testing.T) {
	w := openTown(t)
	e, p, no := flow.MatchExact, flow.MatchPartial, flow.MatchNone
	for _, c := range []struct {
		number string
		with   flow.Matches
		err    error
	}{
		{"22222222221", flow.Matches{FirstName: e, LastName: e, DateOfBirth: e}, nil},
		{"22222222222", flow.Matches{FirstName: e, LastName: p, DateOfBirth: e}, nil},
		{"22222222223", flow.Matches{FirstName: no, LastName: no, DateOfBirth: no}, nil},
		{"22222222224", flow.Matches{}, rail.ErrNotFound},
	} {
		for _, kind := range []flow.IdentityType{flow.BVN, flow.NIN} {
			who := person(t, c.number)
			who.Type = kind
			if got, err := w.rail.LookUpIdentity(t.Context(), who); got != c.with || !errors.Is(err, c.err) {
				t.Errorf("%s %s: %+v, %v", kind, c.number, got, err)
			}
			without := c.with
			who.DateOfBirth, without.DateOfBirth = "", ""
			if got, err := w.rail.LookUpIdentity(t.Context(), who); got != without || !errors.Is(err, c.err) {
				t.Errorf("%s %s without a date: %+v, %v", kind, c.number, got, err)
			}
		}
	}
	for what, spoil := range map[string]func(*rail.Person){
		"no name":               func(p *rail.Person) { p.FirstName = "" },
		"another register":      func(p *rail.Person) { p.Type = "ssn" },
		"no number":             func(p *rail.Person) { p.Number = flow.IdentityNumber{} },
		"no reference":          func(p *rail.Person) { p.Verification = "" },
		"a number as reference": func(p *rail.Person) { p.Verification = "22222222221" },
	} {
		who := person(t, "22222222221")
		spoil(&who)
		if _, err := w.rail.LookUpIdentity(t.Context(), who); !errors.Is(err, rail.ErrRejected) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.rail.LookUpIdentity(t.Context(), person(t, "22222222221")); !errors.Is(err, rail.ErrUnavailable) {
		t.Errorf("while the bank is down: %v", err)
	}
}

// What a hostile provider answers is not believed, and no error of ours repeats
// the number.
func TestAnswersAboutPeopleAndAccountsAreJudged(t *testing.T) {
	const whole = `{"reference":"wsp_ver_1","found":true,"firstName":"EXACT","lastName":"NONE","dateOfBirth":"PARTIAL"}`
	const held = `{"accountNumber":"0000000001","bankCode":"999","found":true,"accountName":"ADA"}`
	for name, c := range map[string]struct {
		status         int
		person, holder string
		want           error
	}{
		"whole":           {200, whole, held, nil},
		"nobody":          {200, `{"reference":"wsp_ver_1"}`, `{"accountNumber":"0000000001","bankCode":"999"}`, rail.ErrNotFound},
		"another":         {200, strings.Replace(whole, "ver_1", "ver_2", 1), strings.Replace(held, "01", "02", 1), rail.ErrUnknown},
		"not said":        {200, strings.Replace(whole, "NONE", "", 1), strings.Replace(held, "ADA", "", 1), rail.ErrUnknown},
		"another word":    {200, strings.Replace(whole, "EXACT", "exact", 1), strings.Replace(held, "ADA", `\u202eADA`, 1), rail.ErrUnknown},
		"too long":        {200, strings.Replace(whole, "PARTIAL", "", 1), strings.Replace(held, "ADA", strings.Repeat("A", 101), 1), rail.ErrUnknown},
		"empty":           {200, `{}`, `{}`, rail.ErrUnknown},
		"no such route":   {404, `{"error":{"code":"no_such_route","message":"no"}}`, `{}`, rail.ErrRejected},
		"refused":         {400, `{"error":{"code":"x","message":"no"}}`, `{}`, rail.ErrRejected},
		"busy":            {503, ``, ``, rail.ErrUnavailable},
		"a fault":         {500, ``, ``, rail.ErrUnknown},
		"another account": {200, strings.Replace(whole, "wsp_ver_1", "", 1), strings.Replace(held, "999", "058", 1), rail.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				if strings.HasSuffix(r.URL.String(), "/identities/look-up") {
					fmt.Fprint(w, c.person)
				} else {
					fmt.Fprint(w, c.holder)
				}
			}))
			defer server.Close()
			r := newRail(t, server.URL, time.Now, 0)
			_, err := r.LookUpIdentity(t.Context(), person(t, "22345678901"))
			if !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), "22345678901") {
				t.Errorf("person: %v", err)
			}
			if _, err := r.ResolveAccount(t.Context(), rail.Account{Number: "0000000001", BankCode: "999"}); !errors.Is(err, c.want) {
				t.Errorf("account: %v", err)
			}
		})
	}
}

// The bank writes down that it was asked, and by which reference; of the person
// it keeps nothing.
func TestTheBankKeepsNoPerson(t *testing.T) {
	dir := t.TempDir()
	bank, err := sandbox.Open(sandbox.Config{File: filepath.Join(dir, "bank.db"), Now: time.Now})
	must(t, err)
	url := serve(t, bank)
	r := newRail(t, url, time.Now, 0)
	must(t, r.Register(t.Context(), "http://127.0.0.1:1/notices"))
	for _, number := range []string{"22222222221", "22345678901"} {
		_, _ = r.LookUpIdentity(t.Context(), person(t, number))
		bad := strings.NewReader(`{"reference":"wsp_ver_1","type":"bvn","number":"` + number + `1","` + number + `":1}`)
		req, err := http.NewRequest(http.MethodPost, url+"/bank/v1/identities/look-up", bad)
		must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		var said bytes.Buffer
		_, _ = said.ReadFrom(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusBadRequest || strings.Contains(said.String(), number) {
			t.Errorf("refused with %d %s", res.StatusCode, said.String())
		}
	}
	calls, err := r.Calls(t.Context(), 0, 10)
	if err != nil || len(calls) != 4 {
		t.Fatalf("calls %+v, %v", calls, err)
	}
	for i, want := range []string{"ok", "refused", "ok", "refused"} {
		if c := calls[i]; c.Operation != "look_up_identity" || c.Outcome != want || want == "ok" && c.Reference != "wsp_ver_1" {
			t.Errorf("call %+v", c)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		for _, secret := range []string{"22222222221", "22345678901", "Obi", "1990-04-21"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds %s", f.Name(), secret)
			}
		}
	}
}
