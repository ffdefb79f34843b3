package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// stranger is a rail whose look-ups do what a test wants.
type stranger struct {
	rail.Rail
	look func(ctx context.Context, p rail.Person) (flow.Matches, error)
}

func (*stranger) ResolveAccount(context.Context, rail.Account) (string, error) {
	return "", rail.ErrNotFound
}

func (v *stranger) LookUpIdentity(ctx context.Context, p rail.Person) (flow.Matches, error) {
	return v.look(ctx, p)
}

// openEnvironment adds an environment to a desk, or puts another in its place,
// and returns a secret key of it and what ends its look-ups.
func (d *desk) openEnvironment(env flow.Environment, r rail.Rail) (secret string, stop func()) {
	d.t.Helper()
	db := storetest.Open(d.t, storetest.SQLite(d.t, store.Checkout))
	cfg := d.parts
	cfg.DB, cfg.Rail, cfg.Log, cfg.Around.Live = db, r, d.server.cfg.Log, env == flow.Live
	service, err := checkout.New(cfg)
	must(d.t, err)
	verify, err := checkout.NewVerifications(service, "another pepper of ours")
	must(d.t, err)
	stop = d.runs(verify.Run)
	front := d.server.cfg
	front.Services, front.Verifications = maps.Clone(front.Services), maps.Clone(front.Verifications)
	front.Services[env], front.Verifications[env] = service, verify
	if d.server, err = New(front); err != nil {
		d.t.Fatal(err)
	}
	d.base = "http://" + d.listen()
	secret = d.newKey(env, flow.SecretKey)
	made := key(secret, env, 0, 0)
	made.ID, made.Project, made.CreatedAt = "wsp_key_"+string(env), d.project.ID, d.now()
	approved := flow.KYCMove{Project: d.project.ID, From: flow.KYCNone, To: flow.KYCApproved, At: d.now()}
	err = d.accounts.Update(d.t.Context(), func(tx *store.Tx) error {
		if _, err := tx.MoveKYC(d.t.Context(), approved); err != nil {
			return err
		}
		return tx.AddKey(d.t.Context(), made)
	})
	must(d.t, err)
	return secret, stop
}

func TestVerificationKnowsTestFromLive(t *testing.T) {
	d := openDesk(t)
	live, _ := d.openEnvironment(flow.Live, d.wire)
	id := d.call("POST", identitiesURL, d.key, person("22222222221", "")).text("data.id")
	d.want(d.call("GET", identitiesURL+"/"+id, live, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.call("POST", identitiesURL, live, person("22222222221", "")), http.StatusAccepted, map[string]string{"data.livemode": "true"})
	d.want(d.call("POST", resolveURL, live, `{"accountNumber":"0000000001","bankCode":"999"}`), http.StatusBadRequest, map[string]string{"error.code": "bank_not_supported"})
	test, other := d.call("GET", banksURL, d.public, ""), d.call("GET", banksURL, live, "")
	if strings.Contains(other.body, `"999"`) || !strings.Contains(test.body, `"999"`) || other.header.Get("ETag") == test.header.Get("ETag") {
		t.Errorf("live lists %s", other.body)
	}
}

// A provider's own words may repeat the number, and so may a bug's.
func TestAProvidersWordsAreNotRepeated(t *testing.T) {
	d := openDesk(t)
	v := &stranger{Rail: d.bank}
	secret, stop := d.openEnvironment(flow.Test, v)
	looks := map[string]func(p rail.Person) error{
		"rail_rejected": func(p rail.Person) error {
			return fmt.Errorf("%w: BVN %s is on hold", rail.ErrRejected, p.Number.Reveal())
		},
		"rail_timeout":   func(p rail.Person) error { return fmt.Errorf("%w: of %s", rail.ErrUnknown, p.Number.Reveal()) },
		"internal_error": func(p rail.Person) error { return fmt.Errorf("of %s", p.Number.Reveal()) },
		"a panic":        func(p rail.Person) error { panic("of " + p.Number.Reveal()) },
	}
	for reason, look := range looks {
		v.look = func(_ context.Context, p rail.Person) (flow.Matches, error) { return flow.Matches{}, look(p) }
		id := d.call("POST", identitiesURL, secret, person("22345678901", "")).text("data.id")
		var r reply
		await.Until(t, id+" is not PENDING any more", func() bool {
			r = d.call("GET", identitiesURL+"/"+id, secret, "")
			return r.text("data.status") != "PENDING"
		})
		if reason == "a panic" {
			reason = "internal_error"
		}
		d.want(r, http.StatusOK, map[string]string{"data.status": "FAILED", "data.reason": reason})
	}
	stop()
	if strings.Contains(d.log.String(), "22345678901") {
		t.Errorf("the number is in the log:\n%s", d.log.String())
	}
}

// There are so many look-ups at once and no more, and an end that is not waited
// for cuts them off.
func TestLookUpsAreBounded(t *testing.T) {
	d := openDesk(t)
	at := make(chan struct{}, 1000)
	secret, stop := d.openEnvironment(flow.Test, &stranger{Rail: d.bank, look: func(ctx context.Context, _ rail.Person) (flow.Matches, error) {
		at <- struct{}{}
		<-ctx.Done()
		return flow.Matches{}, ctx.Err()
	}})
	other := d.newKey(flow.Test, flow.SecretKey)
	d.keep("another", key(other, flow.Test, 0, 0))
	last, begun := "", 0
	for {
		r := d.call("POST", identitiesURL, secret, person("22222222221", ""))
		if r.status != http.StatusAccepted {
			d.want(r, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited", "error.retryable": "true"})
			break
		}
		last = r.text("data.id")
		if begun++; begun > 200 {
			t.Fatal("there is no end to them")
		}
	}
	// One merchant's leave room for those of others.
	d.want(d.call("POST", identitiesURL, other, person("22222222221", "")), http.StatusAccepted, nil)
	for range begun + 1 {
		<-at
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("ending took %s", took)
	}
	d.want(d.call("GET", identitiesURL+"/"+last, secret, ""), http.StatusOK, map[string]string{"data.status": "FAILED", "data.reason": "interrupted"})
}
