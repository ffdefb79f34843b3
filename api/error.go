package api

import (
	"context"
	"errors"
	"net/http"

	"till/flow"
	"till/rail"
)

// Codes that only HTTP has a use for.
const (
	codeMalformedRequest flow.Code = "malformed_request" // not HTTP that can be read in one way only
	codeInvalidSignature flow.Code = "invalid_signature" // a notice that is not the bank's
	codeNotReady         flow.Code = "not_ready"         // GET /readyz
)

// class is how a code looks over HTTP.
type class struct {
	status    int
	kind      string // "type" in the envelope
	retryable bool
}

// classOf is the only place where a code meets its HTTP status.
func classOf(code flow.Code) (class, bool) {
	switch code {
	case flow.CodeMalformedJSON, flow.CodeMissingField, flow.CodeInvalidField, flow.CodeUnknownField, flow.CodeAmountNotInteger,
		flow.CodeAmountBelowMinimum, flow.CodeAmountAboveMaximum, flow.CodeCurrency, flow.CodeInvalidMode, flow.CodeInvalidEmail,
		flow.CodeInvalidPhone, flow.CodeBankNotSupported, flow.CodeMethodNotAllowed, flow.CodeCardData, flow.CodeInvalidCursor,
		codeMalformedRequest:
		return class{http.StatusBadRequest, "invalid_request", false}, true
	case flow.CodeMissingKey, flow.CodeInvalidKey, flow.CodeExpiredKey, flow.CodeRevokedKey, flow.CodeCredentials, codeInvalidSignature:
		return class{http.StatusUnauthorized, "authentication", false}, true
	case flow.CodeSecretKeyRequired, flow.CodeKYCRequired, flow.CodeProjectSuspended, flow.CodeTestOnly:
		return class{http.StatusForbidden, "permission", false}, true
	case flow.CodeNotFound, flow.CodeRouteNotFound:
		return class{http.StatusNotFound, "not_found", false}, true
	case flow.CodeHTTPMethod:
		return class{http.StatusMethodNotAllowed, "not_found", false}, true
	case flow.CodeDuplicateReference, flow.CodeSessionExpired, flow.CodeSessionPaid, flow.CodeSessionCancelled, flow.CodeNotCancellable, flow.CodeNotPaid,
		flow.CodeRefundExceeds, flow.CodeRefundOverBalance, flow.CodeRefundNotRetryable, flow.CodeNotResolvable, flow.CodeKYCDecided, flow.CodeEndpointDisabled:
		return class{http.StatusConflict, "conflict", false}, true
	case flow.CodeIdempotencyRunning, flow.CodeRotationLimit:
		return class{http.StatusConflict, "conflict", true}, true
	case flow.CodeTooLarge:
		return class{http.StatusRequestEntityTooLarge, "invalid_request", false}, true
	case flow.CodeMediaType:
		return class{http.StatusUnsupportedMediaType, "invalid_request", false}, true
	case flow.CodeAccountNotResolved:
		return class{http.StatusUnprocessableEntity, "verification", false}, true
	case flow.CodeIdempotencyReused:
		return class{http.StatusUnprocessableEntity, "idempotency", false}, true
	case flow.CodeRateLimited:
		return class{http.StatusTooManyRequests, "rate_limit", true}, true
	case flow.CodeInternal:
		return class{http.StatusInternalServerError, "api", true}, true
	case flow.CodeStorage, flow.CodeWhatsAppUnavailable, codeNotReady:
		return class{http.StatusServiceUnavailable, "api", true}, true
	case flow.CodeRailRejected:
		return class{http.StatusBadGateway, "rail", false}, true
	case flow.CodeRailUnavailable, flow.CodeRailTimeout:
		return class{http.StatusServiceUnavailable, "rail", true}, true
	}
	return class{http.StatusInternalServerError, "api", true}, false
}

// failure is the error of an envelope.
type failure struct {
	Type      string            `json:"type"`
	Code      flow.Code         `json:"code"`
	Message   string            `json:"message"`
	Fields    []flow.FieldError `json:"fields"`
	Details   map[string]string `json:"details"`
	Retryable bool              `json:"retryable"`
	RequestID string            `json:"requestId"`
	DocURL    string            `json:"docUrl"`
}

// refusal turns any error into the one a merchant may read. What has no code
// becomes internal_error, and its text stays in the log.
func refusal(err error) *flow.Error {
	if known, ok := errors.AsType[*flow.Error](err); ok {
		if _, listed := classOf(known.Code); listed && known.Code != flow.CodeInternal {
			return known
		}
		return &flow.Error{Code: flow.CodeInternal, Message: internalMessage, Err: err}
	}
	made := func(code flow.Code, message string) *flow.Error {
		return &flow.Error{Code: code, Message: message, Err: err}
	}
	switch {
	case errors.Is(err, rail.ErrForged):
		return made(codeInvalidSignature, "The signature of this notice does not hold.")
	case errors.Is(err, rail.ErrRejected):
		return made(flow.CodeRailRejected, "The bank refused this.")
	case errors.Is(err, rail.ErrUnavailable):
		return made(flow.CodeRailUnavailable, "The bank cannot be reached right now. Try again.")
	case errors.Is(err, rail.ErrUnknown):
		return made(flow.CodeRailTimeout, "The bank did not answer in time. Try again: nothing is done twice.")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return made(flow.CodeStorage, "This took too long. Try again with the same Idempotency-Key.")
	}
	return made(flow.CodeInternal, internalMessage)
}

const internalMessage = "Something went wrong on our side. Quote the requestId when you ask about it."
