package wanet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// waHost is the name clients put into their requests; nothing here resolves it.
const waHost = "web.whatsapp.com"

// ErrNotLoopback says that a network was asked to listen to other machines.
var ErrNotLoopback = errors.New("wanet: the network listens on loopback only")

// Serve answers clients (websocket at /ws/chat) and the control API (under
// /network) on ln until ctx ends or the network is closed. It refuses a listener
// that others could reach, and closes ln in any case.
func (n *Network) Serve(ctx context.Context, ln net.Listener) error {
	tcp, ok := ln.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		_ = ln.Close()
		return fmt.Errorf("%w: %s", ErrNotLoopback, ln.Addr())
	}
	return n.serve(ctx, ln)
}

func (n *Network) serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !n.start(func(life context.Context) {
		select {
		case <-life.Done():
			cancel()
		case <-ctx.Done():
		}
	}) {
		_ = ln.Close()
		return ErrClosed
	}
	slots := make(chan struct{}, maxConns)
	srv := &http.Server{
		Handler:           n.handler(slots),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(ln)
	cancel()
	_ = srv.Close()
	// Handlers of hijacked connections are not the http server's any more; each
	// holds a slot until it has ended.
	for range maxConns {
		slots <- struct{}{}
	}
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serving the network: %w", err)
}

func (n *Network) handler(slots chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws/chat", n.upgrade)
	n.control(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "too many connections", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// upgrade turns a request into a connection of the network and serves it.
func (n *Network) upgrade(w http.ResponseWriter, r *http.Request) {
	// A page in somebody's browser could reach a port of this machine too.
	if origin := r.Header.Get("Origin"); origin != "" && origin != "https://"+waHost {
		http.Error(w, "not from a web page", http.StatusForbidden)
		return
	}
	if host := hostOf(r.Host); host != waHost && !isLoopback(host) {
		http.Error(w, "unknown host", http.StatusForbidden)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // checked above
	if err != nil {
		n.log.InfoContext(r.Context(), "whatsapp network: no websocket", slog.String("error", err.Error()))
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(maxFrame + 1024)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &conn{
		n: n, ws: ws, cancel: cancel, wake: make(chan struct{}, 1),
		timers: map[*time.Timer]struct{}{}, watches: map[*Account]string{},
	}
	err = c.run(ctx)
	n.log.DebugContext(ctx, "whatsapp network: a connection ended", slog.Any("reason", err))
}

// hostOf drops the port of a Host header.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// DialContext connects to the network inside the process, by net.Pipe. It is
// what an in-process client's transport dials instead of WhatsApp.
func (n *Network) DialContext(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case n.pipes <- ours:
		return theirs, nil
	case <-n.done:
	case <-ctx.Done():
	}
	_ = ours.Close()
	_ = theirs.Close()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connecting to the network: %w", err)
	}
	return nil, ErrClosed
}

// HTTPClient is a client whose connections all lead into this network, whatever
// host they are for; only WhatsApp's own name is accepted. Clients take it for
// SetWebsocketHTTPClient and SetPreLoginHTTPClient.
func (n *Network) HTTPClient() *http.Client {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		if hostOf(addr) != waHost {
			return nil, fmt.Errorf("%w: %s is not on this network", ErrInput, addr)
		}
		return n.DialContext(ctx)
	}
	return &http.Client{Transport: &http.Transport{
		DialContext:    dial,
		DialTLSContext: dial, // plain: there is nobody between the two ends
		Proxy:          func(*http.Request) (*url.URL, error) { return nil, nil },
	}}
}

// servePipes serves what DialContext hands over.
func (n *Network) servePipes(ctx context.Context) {
	err := n.serve(ctx, &pipeListener{n: n})
	if err != nil && !errors.Is(err, ErrClosed) {
		n.log.ErrorContext(ctx, "whatsapp network: serving inside the process", slog.String("error", err.Error()))
	}
}

// pipeListener accepts the server's ends of pipes.
type pipeListener struct{ n *Network }

// Accept waits for the next DialContext.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.n.pipes:
		return c, nil
	case <-l.n.done:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the listener ends with the network.
func (l *pipeListener) Close() error { return nil }

// Addr is where pipes lead.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

// Network names the kind of address.
func (pipeAddr) Network() string { return "pipe" }

// String names the address.
func (pipeAddr) String() string { return "pipe" }
