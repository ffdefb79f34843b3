package flow

import (
	"errors"
	"fmt"
	"time"
)

// Code says what went wrong, in words that do not change: merchants branch on
// them. api/error.go maps each to its HTTP status.
type Code string

// The codes a merchant can meet.
const (
	CodeMalformedJSON       Code = "malformed_json"
	CodeMissingField        Code = "missing_field"
	CodeInvalidField        Code = "invalid_field"
	CodeUnknownField        Code = "unknown_field"
	CodeAmountNotInteger    Code = "amount_must_be_integer"
	CodeAmountBelowMinimum  Code = "amount_below_minimum"
	CodeAmountAboveMaximum  Code = "amount_above_maximum"
	CodeCurrency            Code = "currency_not_supported"
	CodeInvalidMode         Code = "invalid_mode"
	CodeInvalidEmail        Code = "invalid_email"
	CodeInvalidPhone        Code = "invalid_phone"
	CodeBankNotSupported    Code = "bank_not_supported"
	CodeMethodNotAllowed    Code = "method_not_allowed_for_session"
	CodeCardData            Code = "card_data_not_accepted"
	CodeInvalidCursor       Code = "invalid_cursor"
	CodeMissingKey          Code = "missing_api_key"
	CodeInvalidKey          Code = "invalid_api_key"
	CodeExpiredKey          Code = "expired_api_key"
	CodeRevokedKey          Code = "revoked_api_key"
	CodeCredentials         Code = "invalid_credentials" //nolint:gosec // the name of a refusal
	CodeSecretKeyRequired   Code = "secret_key_required" //nolint:gosec // the name of a refusal
	CodeKYCRequired         Code = "kyc_required"
	CodeProjectSuspended    Code = "project_suspended"
	CodeTestOnly            Code = "test_only"
	CodeNotFound            Code = "resource_not_found"
	CodeRouteNotFound       Code = "route_not_found"
	CodeHTTPMethod          Code = "method_not_allowed"
	CodeDuplicateReference  Code = "duplicate_reference"
	CodeSessionExpired      Code = "session_expired"
	CodeSessionPaid         Code = "session_paid"
	CodeSessionCancelled    Code = "session_cancelled"
	CodeNotPaid             Code = "session_not_paid"
	CodeNotCancellable      Code = "session_not_cancellable"
	CodeRefundExceeds       Code = "refund_exceeds_payment"
	CodeRefundOverBalance   Code = "refund_exceeds_balance"
	CodeRefundNotRetryable  Code = "refund_not_retryable"
	CodeEndpointDisabled    Code = "endpoint_disabled"
	CodeRotationLimit       Code = "secret_rotation_limit"
	CodeNotResolvable       Code = "payment_not_resolvable"
	CodeKYCDecided          Code = "kyc_not_submittable"
	CodeIdempotencyRunning  Code = "idempotency_in_progress"
	CodeIdempotencyReused   Code = "idempotency_key_reused"
	CodeTooLarge            Code = "payload_too_large"
	CodeMediaType           Code = "unsupported_media_type"
	CodeAccountNotResolved  Code = "account_not_resolved"
	CodeRateLimited         Code = "rate_limited"
	CodeInternal            Code = "internal_error"
	CodeStorage             Code = "storage_unavailable"
	CodeRailRejected        Code = "rail_rejected"
	CodeRailUnavailable     Code = "rail_unavailable"
	CodeRailTimeout         Code = "rail_timeout"
	CodeWhatsAppUnavailable Code = "whatsapp_unavailable"
)

// Error is a refusal with a code. Message is for the person who reads it and
// may change; Fields name what was wrong with a request, all of it at once.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError
	Details map[string]string
	// RetryAfter is how long to wait before the next try, 0 where that is not known.
	RetryAfter time.Duration
	Err        error
}

// FieldError is what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// ErrNotServed says of a refusal that what was asked for is not offered, as an operator
// wants it or because no bank is connected: nothing failed.
var ErrNotServed = errors.New("it is not offered here")

// NotServed refuses what is not offered, in words for who asked: rail_unavailable.
func NotServed(message string) *Error {
	return &Error{Code: CodeRailUnavailable, Message: message, Err: ErrNotServed}
}

// Error is for logs; callers outside see Code and Message alone.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns what caused the refusal.
func (e *Error) Unwrap() error { return e.Err }

// Refuse returns an Error with a code and a sentence.
func Refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// At says of a refusal that one field of the request is what is wrong, and returns it.
func (e *Error) At(field string) *Error {
	e.Fields = []FieldError{{Field: field, Code: e.Code, Message: e.Message}}
	return e
}

// CodeOf is the code of an error, CodeInternal where it has none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Is lets errors.Is(err, &Error{Code: c}) compare by code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}
