package flow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"till/flow"
)

const (
	someNumber = "22345678901"
	someMask   = "*********01"
)

func number(t *testing.T) flow.IdentityNumber {
	t.Helper()
	n, ok := flow.ReadIdentityNumber(someNumber)
	if !ok {
		t.Fatal("eleven digits are no number")
	}
	return n
}

func TestAnIdentityNumberIsElevenDigits(t *testing.T) {
	for _, text := range []string{"", "2234567890", "223456789012", "2234567890a", "+2345678901", "22345 78901", "２２３４５６７８９０１", "-2345678901"} {
		if n, ok := flow.ReadIdentityNumber(text); ok || n.Reveal() != "" {
			t.Errorf("%q is a number", text)
		}
	}
	if n := number(t); n.Reveal() != someNumber || n.Mask() != someMask {
		t.Errorf("%q %q", n.Reveal(), n.Mask())
	}
	if mask := (flow.IdentityNumber{}).Mask(); mask != "" {
		t.Errorf("no number shows as %q", mask)
	}
}

// Nothing that prints, encodes or logs a number shows it, alone or in a struct.
func TestAnIdentityNumberHidesItself(t *testing.T) {
	type holder struct {
		Number  flow.IdentityNumber
		Pointer *flow.IdentityNumber
		hidden  flow.IdentityNumber // fmt prints it without asking its methods
	}
	n := number(t)
	in := holder{n, &n, n}
	if in.hidden.Reveal() != someNumber {
		t.Fatal("the number is not there")
	}
	var out strings.Builder
	for _, v := range []any{n, &n, in, &in, []flow.IdentityNumber{n}, map[flow.IdentityNumber]bool{n: true}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t", "%p"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	if _, err := json.Marshal(map[flow.IdentityNumber]bool{n: true}); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"Number":"`+someMask+`","Pointer":"`+someMask+`"}` {
		t.Errorf("%s %v", text, err)
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&logged, nil), slog.NewTextHandler(&logged, nil)} {
		slog.New(h).Info("x", slog.Any("n", n), slog.Any("in", in), slog.Any("pointer", &n), slog.Any("error", fmt.Errorf("of %v: %w", n, errors.ErrUnsupported)))
	}
	for name, text := range map[string]string{"fmt": out.String(), "slog": logged.String()} {
		for _, form := range []string{someNumber, fmt.Sprintf("%x", someNumber), fmt.Sprintf("%X", someNumber), someNumber[:9]} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows the number:\n%s", name, text)
			}
		}
		if !strings.Contains(text, someMask) {
			t.Errorf("%s does not show the mask", name)
		}
	}
}

func TestAFingerprintTellsNumbersProjectsAndRegistersApart(t *testing.T) {
	n := number(t)
	other, _ := flow.ReadIdentityNumber("22345678902")
	same := n.Fingerprint([]byte("pepper"), "p", flow.BVN)
	seen := map[string]bool{}
	for _, f := range []string{
		same, other.Fingerprint([]byte("pepper"), "p", flow.BVN), n.Fingerprint([]byte("salt"), "p", flow.BVN),
		n.Fingerprint([]byte("pepper"), "q", flow.BVN), n.Fingerprint([]byte("pepper"), "p", flow.NIN),
	} {
		if seen[f] || len(f) != 64 {
			t.Errorf("%s stands for two", f)
		}
		seen[f] = true
	}
	if n.Fingerprint([]byte("pepper"), "p", flow.BVN) != same {
		t.Error("the same number has two fingerprints")
	}
}

func TestOnlyAFullMatchIsAVerifiedIdentity(t *testing.T) {
	e, p, no := flow.MatchExact, flow.MatchPartial, flow.MatchNone
	for _, c := range []struct {
		m    flow.Matches
		want flow.VerificationStatus
	}{
		{flow.Matches{FirstName: e, LastName: e}, flow.VerificationMatched},
		{flow.Matches{FirstName: e, LastName: e, DateOfBirth: e}, flow.VerificationMatched},
		{flow.Matches{FirstName: e, LastName: e, DateOfBirth: p}, flow.VerificationPartial},
		{flow.Matches{FirstName: e, LastName: e, DateOfBirth: no}, flow.VerificationPartial},
		{flow.Matches{FirstName: e, LastName: p}, flow.VerificationPartial},
		{flow.Matches{FirstName: no, LastName: e, DateOfBirth: e}, flow.VerificationPartial},
		{flow.Matches{FirstName: p, LastName: p, DateOfBirth: p}, flow.VerificationPartial},
		{flow.Matches{FirstName: no, LastName: no, DateOfBirth: e}, flow.VerificationNotMatched},
		{flow.NoMatch(true), flow.VerificationNotMatched},
		{flow.NoMatch(false), flow.VerificationNotMatched},
	} {
		one := flow.Verification{Status: flow.VerificationPending}.Answered(c.m, "", time.Unix(1, 0))
		kind := flow.IdentityFailed
		if c.want == flow.VerificationMatched {
			kind = flow.IdentityVerified
		}
		if one.Status != c.want || one.EventKind() != kind || one.DoneAt.IsZero() {
			t.Errorf("%+v is %s and told as %s", c.m, one.Status, one.EventKind())
		}
	}
	failed := flow.Verification{Matches: flow.NoMatch(true)}.Failed(flow.ReasonInterrupted, time.Unix(1, 0))
	if failed.Status != flow.VerificationFailed || failed.Matches != (flow.Matches{}) || failed.EventKind() != flow.IdentityFailed {
		t.Errorf("%+v", failed)
	}
}

func TestARecordOfAVerificationSaysNullWhereNothingIsKnown(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	one := flow.Verification{ID: "wsp_ver_1", Type: flow.BVN, Status: flow.VerificationPending, Mask: someMask, Purpose: "KYC", CreatedAt: at}
	for _, c := range []struct {
		v    flow.Verification
		want string
	}{
		{one, `{"id":"wsp_ver_1","type":"bvn","status":"PENDING","matches":{"firstName":null,"lastName":null,"dateOfBirth":null},"numberMasked":"*********01",` +
			`"purpose":"KYC","reason":null,"livemode":true,"createdAt":"2026-03-02T12:00:00.000Z","completedAt":null,"expiresAt":"2026-05-31T12:00:00.000Z"}`},
		{one.Answered(flow.NoMatch(false), flow.ReasonNoSuchNumber, at.Add(time.Second)), `{"id":"wsp_ver_1","type":"bvn","status":"NOT_MATCHED",` +
			`"matches":{"firstName":"NONE","lastName":"NONE","dateOfBirth":null},"numberMasked":"*********01","purpose":"KYC","reason":"number_not_found",` +
			`"livemode":true,"createdAt":"2026-03-02T12:00:00.000Z","completedAt":"2026-03-02T12:00:01.000Z","expiresAt":"2026-05-31T12:00:00.000Z"}`},
	} {
		if text, err := json.Marshal(flow.RecordVerification(c.v, flow.Surroundings{Live: true})); err != nil || string(text) != c.want {
			t.Errorf("%v\n%s\n%s", err, text, c.want)
		}
	}
}
