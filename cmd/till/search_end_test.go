package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/sealing"
	"till/config"
	"till/flow"
	"till/flow/store"
	"till/rail/sandbox"
)

// parrot is a merchant's server that answers webhooks with secrets.
type parrot struct {
	server *httptest.Server
	mu     sync.Mutex
	says   []string
	heard  bytes.Buffer
}

func newParrot(t *testing.T, says []string) *parrot {
	t.Helper()
	p := &parrot{says: says}
	p.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.heard.Write(body)
		_ = r.Header.Write(&p.heard)
		say := p.says[p.heard.Len()%len(p.says)]
		p.mu.Unlock()
		_, _ = io.WriteString(rw, "thank you, "+say+" is noted")
	}))
	t.Cleanup(p.server.Close)
	return p
}

// requests looks at what the console shows of calls that were refused: it is gone with
// the process. Of many in one second it keeps no bodies.
func (r *rummage) requests() {
	r.t.Helper()
	v, all := enter(r.t, r.m.base, "owner"), r.all()
	for i := 0; i < len(all); i += 9 {
		r.m.until("the console shows what was refused", func() bool {
			_, out, err := r.m.try(http.MethodPost, "/v1/whatsapp/checkout/sessions", object{"amount": 500_000, "customerEmail": "bola@example.com", "description": all[i]})
			refused, _ := out["error"].(object)
			if err != nil || refused == nil {
				r.t.Fatalf("%q is not refused: %v %v", all[i], out, err)
			}
			page := v.page("/developers/requests/" + refused["requestId"].(string))
			r.look("what the console shows of a request", []byte(page))
			return strings.Contains(page, "bola@example.com")
		})
	}
	r.look("the requests", []byte(v.page("/developers/requests")))
}

// chat has people write secrets, also one half of a number after the other, in
// texts, names and answers; then pays, so that webhooks and receipts go out.
func (r *rummage) chat() {
	r.t.Helper()
	all := r.all()
	const people = 12
	var writing sync.WaitGroup
	for k := range people {
		number := fmt.Sprintf("23480399910%02d", k)
		if _, err := r.x.o.network.AddPhone(r.t.Context(), number, all[k*25%len(all)]); err != nil { // people are called what they like
			r.t.Fatal(err)
		}
		p := payerNamed(r.m, "+"+number, "Bola")
		_, text := r.m.openChat(500_000, fmt.Sprintf("chat-%d", k))
		writing.Go(func() {
			p.says(text)
			for i := k; i < len(all); i += people {
				p.says(all[i])
				if i%5 == 0 && len(all[i]) > 12 {
					p.says(all[i][:9])
					p.says(all[i][9:])
				}
			}
		})
		r.doors["chat"] += len(all) / people
	}
	writing.Wait()
	p := payerNamed(r.m, "+2348039991099", "Bola")
	_, text := r.m.openChat(500_000, "paid")
	p.says(text)
	p.hears(`1 Bank transfer`)
	p.says("1")
	payByTransfer(r.t, r.m, p, "")
	p.hears(`(?i)receipt`)
	r.m.until("the webhook went out", func() bool {
		r.sink.mu.Lock()
		defer r.sink.mu.Unlock()
		return bytes.Contains(r.sink.heard.Bytes(), []byte("charge.success"))
	})
	r.doors["webhook"]++
}

// notice tells of money as the bank does, from somebody who is called so, signed
// with what only it and Till know.
func (r *rummage) notice(called string) {
	r.t.Helper()
	set := config.Settings{DataDir: filepath.Join(r.x.dir, "data")}
	c := inDir(set, store.Accounts, "accounts")
	var err error
	if c.Keys, err = besideKeys(set); err != nil {
		r.t.Fatal(err)
	}
	var secret string
	err = store.Look(r.t.Context(), c, func(kept store.Reader) (err error) {
		secret, err = kept.Secret(r.t.Context(), sealing.BankSecret)
		return err
	})
	if err != nil || secret == "" {
		r.t.Fatalf("the bank's secret: %v", err)
	}
	now := time.Now()
	body := jsonOf(r.t, object{
		"id": fmt.Sprintf("SEARCH%d", r.doors["notice"]), "kind": flow.Credit, "amount": 100_000, "channel": flow.BankTransfer, "valueTime": now,
		"payerName": called, "payerBank": called, "payerAccount": called, "reason": called,
	})
	header := http.Header{sandbox.SignatureHeader: {sandbox.Sign(secret, now, body)}}
	r.send("notice", http.MethodPost, "/v1/rails/sandbox/notifications", header, body, http.StatusOK)
}

// refuses answers in place of the bank what that is ordered to send, once there is a
// reason not to.
func (r *rummage) refuses(w http.ResponseWriter, _ string) bool {
	why := r.bank.Load()
	if why == nil {
		return false
	}
	w.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = w.Write(jsonOf(r.t, object{"error": object{"code": "refused", "message": "nothing goes to " + *why}}))
	return true
}

// refusals has the bank refuse refunds, and say why in words that hold secrets.
func (r *rummage) refusals() {
	r.t.Helper()
	payment := items(r.m.call(http.MethodGet, "/v1/payments?matchStatus=MATCHED", nil))[0]["id"]
	all := r.all()
	for i := 0; i < len(all); i += 7 {
		r.bank.Store(&all[i])
		refund := r.m.call(http.MethodPost, "/v1/refunds", object{"paymentId": payment, "amount": 1_000})["id"].(string)
		r.m.until("the bank refuses it", func() bool { return r.m.call(http.MethodGet, "/v1/refunds/"+refund, nil)["status"] == "FAILED" })
		r.doors["bank"]++
	}
}

// killed kills Till while messages with secrets come in, and asks it for the stacks
// of all that it does once it is back.
func (r *rummage) killed() {
	r.t.Helper()
	p := payerNamed(r.m, "+2348039991098", "Kill")
	_, text := r.m.openChat(500_000, "killed")
	p.says(text)
	all := r.all()
	var done sync.WaitGroup
	for i := range 8 {
		body := jsonOf(r.t, object{"text": all[i*11]})
		done.Go(func() {
			req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.m.base+"/v1/test/phones/"+p.phone+"/messages", bytes.NewReader(body))
			if err != nil {
				return
			}
			req.Header.Set("Authorization", "Bearer "+r.m.key)
			req.Header.Set("Content-Type", "application/json")
			if answer, err := http.DefaultClient.Do(req); err == nil {
				_ = answer.Body.Close()
			}
		})
	}
	before := r.x.p
	r.x.p.Kill()
	done.Wait()
	r.look("what it said until it was killed", []byte(before.Said()))
	r.onDisk("after it was killed")
	r.x.start()
	r.x.p.Line(`/phone$|of that network`)
	waitReady(r.m)
}

// nowhere searches everything.
func (r *rummage) nowhere() {
	r.t.Helper()
	for name, at := range map[string]string{
		"metrics": "http://" + r.metrics + "/metrics", "sessions": r.m.base + "/v1/whatsapp/checkout/sessions?limit=100", "events": r.m.base + "/v1/events?limit=100",
	} {
		req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, at, nil)
		must(r.t, err)
		req.Header.Set("Authorization", "Bearer "+r.m.key)
		answer, err := http.DefaultClient.Do(req)
		must(r.t, err)
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || len(text) == 0 {
			r.t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
		r.look(name, text)
	}
	v := enter(r.t, r.m.base, "owner")
	r.look("the table of sessions", []byte(v.page("/sessions.csv")))
	out, err := r.x.p.Beside("payer", "export", "2348039991001")
	if err != nil {
		r.t.Fatalf("export: %v\n%s", err, out)
	}
	r.look("a payer's export", []byte(out))
	copied := filepath.Join(r.t.TempDir(), "copy.tar.gz")
	if out, err := r.x.p.Beside("backup", copied); err != nil {
		r.t.Fatalf("backup: %v\n%s", err, out)
	}
	for _, one := range newFinder(r.s).packed(r.t, copied) {
		r.t.Errorf("a backup: %s", one)
	}
	r.sink.mu.Lock()
	r.look("what a merchant was sent", r.sink.heard.Bytes())
	r.sink.mu.Unlock()
	r.x.p.End(syscall.SIGQUIT)
	r.look("what it said to its end, with all stacks", []byte(r.x.p.Said()))
	r.onDisk("at the end")
}

// onDisk searches the data dir and a dump of Redis.
func (r *rummage) onDisk(when string) {
	r.t.Helper()
	found, size := newFinder(r.s).files(r.t, filepath.Join(r.x.dir, "data"))
	if size < 1<<20 {
		r.t.Errorf("%s: only %d bytes were searched", when, size)
	}
	for _, one := range found[:min(len(found), 20)] {
		r.t.Errorf("%s: %s", when, one)
	}
	if _, err := os.Stat(filepath.Join(r.x.dir, "data", "whatsapp")); err != nil {
		r.t.Errorf("%s: the keys of the numbers are not among what was searched: %v", when, err)
	}
	r.look("Redis, "+when, r.redis.Dump())
}

func (r *rummage) look(where string, text []byte) {
	r.t.Helper()
	if bytes.Contains(text, []byte(searchPassword)) {
		r.t.Errorf("%s: a password", where)
	}
	found := newFinder(r.s).in(text)
	for _, one := range found[:min(len(found), 10)] {
		r.t.Errorf("%s: %s", where, one)
	}
}
