package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// host is the only one that is ever called.
const host = "web.whatsapp.com"

const (
	connectWithin = 15 * time.Second
	upgradeWithin = 30 * time.Second // connecting, TLS and the websocket's first answer
)

var (
	errHost  = errors.New("whatsapp: only " + host + " is called")
	errMedia = errors.New("whatsapp: no media is fetched")
)

// dialFunc is how http.Transport connects.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// webClient is the HTTP client for the websocket. With a dial function the
// connection it returns is taken as it is, without TLS: whatever listens there
// proves itself by the root key. Each connection is shown to hold.
func webClient(dial func(ctx context.Context) (net.Conn, error), hold func(w *wire)) *http.Client {
	held := func(dial dialFunc) dialFunc {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, fmt.Errorf("dialling the network: %w", err)
			}
			w := newWire(conn)
			hold(w)
			return w, nil
		}
	}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            held((&net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}).DialContext),
		TLSHandshakeTimeout:    connectWithin,
		ResponseHeaderTimeout:  connectWithin,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 32 << 10,
	}
	if dial != nil {
		t.Proxy = nil
		t.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errHost }
		t.DialTLSContext = held(func(ctx context.Context, _, addr string) (net.Conn, error) {
			if addr != net.JoinHostPort(host, "443") {
				return nil, errHost
			}
			return dial(ctx)
		})
	}
	return &http.Client{Transport: oneHost{t}, Timeout: upgradeWithin}
}

// oneHost refuses every request that is not for WhatsApp, redirects included.
type oneHost struct{ next *http.Transport }

// RoundTrip sends a request for WhatsApp.
func (o oneHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" || r.URL.Host != host {
		return nil, fmt.Errorf("%w, not %s", errHost, r.URL.Host)
	}
	return o.next.RoundTrip(r) // the http client wraps it
}

// CloseIdleConnections lets http.Client reach the transport's.
func (o oneHost) CloseIdleConnections() { o.next.CloseIdleConnections() }

// noMedia is for pictures and documents: none is ever fetched or sent.
type noMedia struct{}

// RoundTrip refuses.
func (noMedia) RoundTrip(*http.Request) (*http.Response, error) { return nil, errMedia }
