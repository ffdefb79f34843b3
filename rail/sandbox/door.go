package sandbox

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"till/flow"
	"till/rail"
)

// routes is everything that the bank answers.
func (b *Bank) routes() http.Handler {
	mux := http.NewServeMux()
	door := func(pattern string, places chan struct{}, h http.HandlerFunc) {
		mux.Handle(pattern, b.bounded(places, h))
	}
	railDoor, testDoor := make(chan struct{}, railPlaces), make(chan struct{}, testPlaces)

	door("POST /bank/v1/virtual-accounts", railDoor, b.railCall("create_virtual_account", readOrder, b.create(flow.BankTransfer)))
	door("POST /bank/v1/ussd", railDoor, b.railCall("create_ussd", readOrder, b.create(flow.USSD)))
	door("POST /bank/v1/card-pages", railDoor, b.railCall("create_card_page", readOrder, b.create(flow.Card)))
	door("GET /bank/v1/instruments/{reference}", railDoor, b.railCall("find", readReference, b.find))
	door("GET /bank/v1/instruments/{reference}/transactions", railDoor, b.railCall("check", readReference, b.check))
	door("POST /bank/v1/accounts/resolve", railDoor, b.resolveAccount)
	door("POST /bank/v1/identities/look-up", railDoor, b.lookUpIdentity)
	door("POST /bank/v1/disbursements", railDoor, b.disburse)
	door("GET /bank/v1/disbursements/{reference}", railDoor, b.railCall("find_disbursement", readReference, b.disbursed))
	door("GET /bank/v1/statement", railDoor, b.statement)

	for pattern, h := range map[string]http.HandlerFunc{
		"PUT /bank/test/client":                       b.putClient,
		"POST /bank/test/transfers":                   b.postTransfer,
		"POST /bank/test/reversals":                   b.postReversal,
		"POST /bank/test/ussd/{paymentCode}/complete": b.completeUSSD,
		"POST /bank/test/cards/{reference}/complete":  b.completeCard,
		"GET /bank/test/conditions":                   b.getConditions,
		"PUT /bank/test/conditions":                   b.putConditions,
		"GET /bank/test/calls":                        b.getCalls,
	} {
		door(pattern, testDoor, localOnly(h))
	}
	door("GET /card/{token}", testDoor, b.cardPage)
	door("POST /card/{token}", testDoor, b.cardAnswer)
	door("GET /card/style.css", testDoor, cardStyle)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, errorBody{refuse(http.StatusNotFound, "no_such_route", "the bank has no such route")})
	})
	// Another site's page in the same browser must play neither payer nor bank.
	return http.NewCrossOriginProtection().Handler(mux)
}

// bounded keeps a door from holding more requests than it has places.
func (b *Bank) bounded(places chan struct{}, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			h(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			writeJSON(w, http.StatusServiceUnavailable, errorBody{refuse(http.StatusServiceUnavailable, "busy", "too many requests at once")})
		}
	})
}

// localOnly refuses a test-door request that came by another name than
// loopback's: a name that was made to point here (DNS rebinding).
func localOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) {
			writeJSON(w, http.StatusForbidden, errorBody{refuse(http.StatusForbidden, "not_loopback", "call the bank by its loopback address")})
			return
		}
		h(w, r)
	}
}

// loopbackHost says whether a host, with or without port, is this machine.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// answered is what a rail call comes to.
type answered struct {
	status int
	body   any
	wait   time.Duration // how long the answer takes, beside the bank's slowness
}

// railCall is one call of the rail door: who calls, what it asks, the weather,
// the deed, and a line in the call log, all in one transaction; then the answer.
func (b *Bank) railCall(operation string, read func(http.ResponseWriter, *http.Request) (order, error),
	do func(books, order, *http.Request) (answered, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !b.authorized(w, r) {
			return
		}
		o, refused := read(w, r)
		var weather rail.Conditions
		var out answered
		err := b.file.update(func(f books) error {
			var err error
			if weather, err = f.conditions(); err != nil {
				return err
			}
			if err = f.about(&o); err != nil {
				return err
			}
			call := rail.Call{At: b.now(), Operation: operation, Reference: o.Reference, Session: o.Session, Project: o.project, Outcome: "ok"}
			switch {
			case !weather.Up:
				call.Outcome = "down"
				refused = refuse(http.StatusServiceUnavailable, "down", "the bank is closed for the moment")
			case refused == nil:
				if out, err = do(f, o, r); err != nil {
					refused = err
				}
			}
			var p *problem
			switch {
			case refused != nil && !errors.As(refused, &p):
				return refused // nothing is kept of what could not be done
			case refused != nil && weather.Up:
				call.Outcome = "refused"
			case weather.Up && weather.TimeoutAfterCommit:
				call.Outcome = "timeout"
			}
			return f.call(call)
		})
		if err != nil {
			b.fail(r.Context(), w, err)
			return
		}
		if weather.Up && !b.delayed(w, r, weather, out.wait) {
			return
		}
		if refused != nil {
			b.fail(r.Context(), w, refused)
			return
		}
		writeJSON(w, out.status, out.body)
	}
}

// delayed lets the bank's slowness pass and says whether it answers at all.
func (b *Bank) delayed(w http.ResponseWriter, r *http.Request, weather rail.Conditions, wait time.Duration) bool {
	wait += time.Duration(weather.LatencyMs) * time.Millisecond
	if weather.TimeoutAfterCommit {
		wait = hangsFor
	}
	if wait > 0 {
		b.dawdle(r, wait)
	}
	if !weather.TimeoutAfterCommit {
		return true
	}
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close() // no answer at all, not even an empty one
	}
	return false
}

// authorized checks the client secret; nothing is read or kept before.
func (b *Bank) authorized(w http.ResponseWriter, r *http.Request) bool {
	var c registered
	err := b.file.view(func(f books) (err error) {
		c, err = f.client()
		return err
	})
	if err != nil {
		b.fail(r.Context(), w, err)
		return false
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	want, got := sha256.Sum256([]byte(c.Secret)), sha256.Sum256([]byte(given))
	if c.Secret == "" || !ok || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		writeJSON(w, http.StatusUnauthorized, errorBody{refuse(http.StatusUnauthorized, "unauthorized", "the client secret is wrong, or no client is registered")})
		return false
	}
	return true
}

// fail answers with a problem; any other error is ours and is not told.
func (b *Bank) fail(ctx context.Context, w http.ResponseWriter, err error) {
	var p *problem
	if !errors.As(err, &p) {
		b.log.LogAttrs(ctx, slog.LevelError, "the pretend bank failed", slog.String("error", err.Error()))
		p = refuse(http.StatusInternalServerError, "internal", "the bank has a fault")
	}
	writeJSON(w, p.status, errorBody{p})
}

// referenceForm is what a reference may be.
var referenceForm = regexp.MustCompile(`^[A-Za-z0-9._=-]{1,100}$`)

func readReference(_ http.ResponseWriter, r *http.Request) (order, error) {
	reference := r.PathValue("reference")
	if !referenceForm.MatchString(reference) {
		return order{}, refuse(http.StatusBadRequest, "invalid_reference", "a reference has 1 to 100 of A-Z a-z 0-9 . _ = -")
	}
	return order{Reference: reference}, nil
}
