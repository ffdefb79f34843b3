package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// ear is a webhook endpoint of this process: a listener on this machine, and its
// registration at the Till.
type ear struct {
	ID     string
	Secret string
	till   *client
	server *http.Server
	served chan error
}

// The bounds of what an ear hears.
const (
	maxWebhook = 1 << 20
	earTimeout = 15 * time.Second // as long as the Till waits for an answer
	parting    = 5 * time.Second
	// earHeader is how an ear tells another one that it is alive.
	earHeader = "X-Till-Ear"
)

// heardWebhook is one that came, and whether an implementation of Standard
// Webhooks that is not ours finds its signature right.
type heardWebhook struct {
	Header http.Header
	Body   []byte
	Forged error
}

// answer is what an ear answers the Till with.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// hear opens an ear. An endpoint with the same note that nobody answers at any
// more, because its process was killed, is taken over with what it is owed.
func (c *client) hear(ctx context.Context, note string, kinds []string, take func(context.Context, heardWebhook) answer) (*ear, error) {
	if !c.local() {
		return nil, usageError{fmt.Errorf("webhooks come to this machine from a Till on this machine alone, not from %s", c.base)}
	}
	ln, err := listenHere(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &ear{till: c, served: make(chan error, 1)}
	ready := make(chan struct{})
	e.server = &http.Server{
		ReadHeaderTimeout: earTimeout, ReadTimeout: earTimeout, WriteTimeout: 2 * earTimeout, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(earHeader, "1")
			if r.Method != http.MethodPost {
				return
			}
			<-ready // the secret is known once the registration is answered
			e.serve(w, r, take)
		}),
	}
	go func() { e.served <- e.server.Serve(ln) }()
	if err := e.register(ctx, "http://"+ln.Addr().String(), note, kinds); err != nil {
		close(ready)
		return nil, errors.Join(err, e.server.Close())
	}
	close(ready)
	return e, nil
}

// serve takes one webhook.
func (e *ear) serve(w http.ResponseWriter, r *http.Request, take func(context.Context, heardWebhook) answer) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhook))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	hook := heardWebhook{Header: r.Header, Body: body}
	wh, err := standardwebhooks.NewWebhook(e.Secret)
	if err != nil {
		hook.Forged = err
	} else if hook.Forged = wh.VerifyIgnoringTimestamp(body, r.Header); hook.Forged == nil && len(body) == 0 {
		hook.Forged = errors.New("it is empty")
	}
	given := take(r.Context(), hook)
	maps.Copy(w.Header(), given.Header)
	w.WriteHeader(given.Status)
	_, _ = w.Write(given.Body)
}

// register makes the endpoint, or takes over one that was left behind.
func (e *ear) register(ctx context.Context, address, note string, kinds []string) error {
	items, _, err := e.till.list(ctx, endpointsPath, nil, maxListed)
	if err != nil {
		return err
	}
	left := ""
	err = each(items, func(other anEndpoint) error {
		if orDash(other.Description) == note && !alive(ctx, other.URL) {
			left = other.ID
		}
		return nil
	})
	if err != nil {
		return err
	}
	var made anEndpoint
	if left == "" {
		body := map[string]any{"url": address, "description": note}
		if len(kinds) > 0 {
			body["events"] = kinds
		}
		err = e.till.post(ctx, endpointsPath, body, &made)
	} else {
		body := map[string]any{"url": address, "status": "ENABLED", "events": nil}
		if len(kinds) > 0 {
			body["events"] = kinds
		}
		if err := e.till.call(ctx, http.MethodPatch, at(endpointsPath, left), body, nil); err != nil {
			return err
		}
		err = e.till.post(ctx, at(endpointsPath, left, "rotate-secret"), nil, &made)
	}
	e.ID, e.Secret = made.ID, made.Secret
	return err
}

// alive says whether an ear is alive at an address of this machine.
func alive(ctx context.Context, address string) bool {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" || !net.ParseIP(to.Hostname()).IsLoopback() {
		return true // it is none of ours: leave it alone
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return true
	}
	resp, err := loopbackClient().Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.Header.Get(earHeader) != ""
}

// close takes the endpoint back and stops listening. What is under way is
// answered first.
func (e *ear) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	err := e.till.call(ctx, http.MethodDelete, at(endpointsPath, e.ID), nil, nil)
	if err != nil {
		err = fmt.Errorf("remove the endpoint %s: %w", e.ID, err)
	}
	if stopped := e.server.Shutdown(ctx); stopped != nil {
		err = errors.Join(err, e.server.Close())
	}
	if served := <-e.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
