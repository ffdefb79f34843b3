package meter

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// The bounds of the door for scrapes.
const (
	scrapesAtOnce  = 4
	scrapeConns    = 32
	scrapeTimeout  = 10 * time.Second
	scrapeHeader   = 8 << 10
	scrapeIdle     = time.Minute
	scrapeShutdown = time.Second
	metricsPath    = "/metrics"
)

// Handler answers scrapes. Where there is a token, only to those who bring it.
func (m *Meter) Handler(token string) http.Handler {
	shown := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout})
	mux := http.NewServeMux()
	mux.HandleFunc(metricsPath, func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="till metrics"`)
			http.Error(w, "send the value of TILL_METRICS_TOKEN as a bearer token", http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only read it", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		shown.ServeHTTP(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is nothing but "+metricsPath+" here", http.StatusNotFound)
	})
	return mux
}

// Serve answers scrapes on a listener until ctx ends.
func (m *Meter) Serve(ctx context.Context, ln net.Listener, token string, faults *log.Logger) error {
	server := &http.Server{
		Handler: m.Handler(token), ReadTimeout: scrapeTimeout, ReadHeaderTimeout: scrapeTimeout, WriteTimeout: 2 * scrapeTimeout, IdleTimeout: scrapeIdle,
		MaxHeaderBytes: scrapeHeader, ErrorLog: faults,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(ln, scrapeConns)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the metrics: %w", err)
	case <-ctx.Done():
	}
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), scrapeShutdown)
	defer cancel()
	err := server.Shutdown(short)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the metrics: %w", err)
	}
	return err
}
