package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"till/flow"
)

// read decodes a body the way a session is read, and returns the refusal.
func read(t *testing.T, body string) *flow.Error {
	t.Helper()
	f, err := decode("application/json", []byte(body), decodeRules{})
	if err == nil {
		f.amount(true, flow.MinAmount, flow.MaxAmount)
		f.email("customerEmail")
		f.phone("customerPhone")
		f.text("description", text{most: maxDescription})
		f.metadata("metadata")
		f.some("allowedMethods", methodNames(), leftOut)
		f.whole("expiresInMinutes", 5, 10_080, 1_440)
		err = f.done()
	}
	if err == nil {
		return nil
	}
	refused, ok := err.(*flow.Error) //nolint:errorlint // decode and done return it bare
	if !ok {
		t.Fatalf("%s: %v is not a refusal", body, err)
	}
	return refused
}

func TestAmountIsJudgedAsItWasWritten(t *testing.T) {
	cases := []struct {
		token string
		code  flow.Code // "" for accepted
	}{
		{"100", ""},
		{"101", ""},
		{"500000", ""},
		{"2499999999", ""},
		{"2500000000", ""},
		{"0", flow.CodeAmountBelowMinimum},
		{"1", flow.CodeAmountBelowMinimum},
		{"99", flow.CodeAmountBelowMinimum},
		{"2500000001", flow.CodeAmountAboveMaximum},
		{"2147483648000", flow.CodeAmountAboveMaximum},
		{"9007199254740991", flow.CodeAmountAboveMaximum},
		{"9007199254740992", flow.CodeAmountAboveMaximum},
		{"9007199254740993", flow.CodeAmountNotInteger},
		{"9223372036854775807", flow.CodeAmountNotInteger},
		{"9223372036854775808", flow.CodeAmountNotInteger},
		{"1" + strings.Repeat("0", 400), flow.CodeAmountNotInteger},
		{"-1", flow.CodeAmountNotInteger},
		{"-0", flow.CodeAmountNotInteger},
		{"-500000", flow.CodeAmountNotInteger},
		{"5000.0", flow.CodeAmountNotInteger},
		{"5000.5", flow.CodeAmountNotInteger},
		{"1.0", flow.CodeAmountNotInteger},
		{"5e3", flow.CodeAmountNotInteger},
		{"1e3", flow.CodeAmountNotInteger},
		{"5E+3", flow.CodeAmountNotInteger},
		{"1e999999", flow.CodeAmountNotInteger},
		{`"5000"`, flow.CodeAmountNotInteger},
		{`"100"`, flow.CodeAmountNotInteger},
		{`"₦5,000"`, flow.CodeAmountNotInteger},
		{`""`, flow.CodeAmountNotInteger},
		{"null", flow.CodeAmountNotInteger},
		{"true", flow.CodeAmountNotInteger},
		{"[]", flow.CodeAmountNotInteger},
		{"[5000]", flow.CodeAmountNotInteger},
		{"{}", flow.CodeAmountNotInteger},
		{`"٣"`, flow.CodeAmountNotInteger},
		{`"１００"`, flow.CodeAmountNotInteger},
		{"0x10", flow.CodeMalformedJSON},
		{"٣", flow.CodeMalformedJSON},
		{"１００", flow.CodeMalformedJSON},
		{"00100", flow.CodeMalformedJSON},
		{"+100", flow.CodeMalformedJSON},
		{".5", flow.CodeMalformedJSON},
		{"5.", flow.CodeMalformedJSON},
		{"1_000", flow.CodeMalformedJSON},
		{"NaN", flow.CodeMalformedJSON},
		{"Infinity", flow.CodeMalformedJSON},
		{"5,000", flow.CodeMalformedJSON},
		{"", flow.CodeMalformedJSON},
	}
	for _, c := range cases {
		t.Run(c.token[:min(len(c.token), 20)], func(t *testing.T) {
			refused := read(t, `{"customerEmail":"ada@example.com","amount":`+c.token+`}`)
			if c.code == "" {
				if refused != nil {
					t.Fatalf("refused: %v", refused)
				}
				return
			}
			if refused == nil || refused.Code != c.code {
				t.Fatalf("want %s, got %v", c.code, refused)
			}
			if c.token == "5,000" { // the comma ends the field: what follows it is the fault
				return
			}
			if len(refused.Fields) == 0 || refused.Fields[0].Field != "amount" {
				t.Errorf("the field is not named: %+v", refused.Fields)
			}
		})
	}
}

func TestAnAmountErrorSaysBothReadings(t *testing.T) {
	for body, want := range map[string]string{
		`"5000"`: "5000 = ₦50.00; did you mean 500000", "5000.0": "5000 = ₦50.00; did you mean 500000", "50": "50 = ₦0.50; did you mean 5000 (₦50.00)",
		"3000000000": "3000000000 = ₦30,000,000.00; did you mean 30000000 (₦300,000.00)",
		"5e3":        "5000 = ₦50.00; did you mean 500000 (₦5,000.00)", "1.5E+2": "150 = ₦1.50; did you mean 15000 (₦150.00)",
		"1500.50": "1500 = ₦15.00; did you mean 150050 (₦1,500.50)", "0.5": " Did you mean 50 (₦0.50)", "0.005": "5000 = ₦50.00, and 500000 = ₦5,000.00.",
		`"₦1,500.50"`: "1500 = ₦15.00; did you mean 150050 (₦1,500.50)", `"5 000 naira"`: "5000 = ₦50.00; did you mean 500000",
		`"NGN 20,000,000"`: "20000000 = ₦200,000.00; did you mean 2000000000 (₦20,000,000.00)", "-50": "50 = ₦0.50; did you mean 5000 (₦50.00)",
		"2500000000.5": "2500000000 = ₦25,000,000.00.", "1e99999999999999999999": "5000 = ₦50.00, and 500000 = ₦5,000.00.", "1e19": "5000 = ₦50.00", "0": "5000 = ₦50.00, and 500000 = ₦5,000.00.", "null": "5000 = ₦50.00, and 500000 = ₦5,000.00.",
		"5e-3": "5000 = ₦50.00, and 500000 = ₦5,000.00.", `"a lot"`: "5000 = ₦50.00, and 500000 = ₦5,000.00.", "true": "5000 = ₦50.00, and 500000 = ₦5,000.00.",
	} {
		if refused := read(t, `{"customerEmail":"a@b.co","amount":`+body+`}`); refused == nil || !strings.Contains(refused.Message, want) {
			t.Errorf("%s: want %q in %v", body, want, refused)
		}
	}
}

func TestWhatIsNotReadInOneWayOnlyIsRefused(t *testing.T) {
	cases := map[string]string{
		"two equal names":       `{"amount":1,"amount":500000}`,
		"equal after unescape":  `{"amount":1,"\u0061mount":500000}`,
		"equal names inside":    `{"metadata":{"a":"1","a":"2"}}`,
		"something after":       `{"amount":500000}{}`,
		"a comma after":         `{"amount":500000,}`,
		"a comma before":        `{,"amount":500000}`,
		"a comment":             `{"amount":500000/**/}`,
		"single quotes":         `{'amount':500000}`,
		"NUL escaped":           `{"description":"a\u0000b"}`,
		"NUL raw":               "{\"description\":\"a\x00b\"}",
		"a raw line break":      "{\"description\":\"a\nb\"}",
		"invalid UTF-8":         "{\"description\":\"a\xffb\"}",
		"overlong UTF-8":        "{\"description\":\"\xc0\xaf\"}",
		"half a pair":           `{"description":"\ud83d"}`,
		"half a pair and more":  `{"description":"\ud83dx"}`,
		"pair turned around":    `{"description":"\ude00\ud83d"}`,
		"an unknown escape":     `{"description":"\x41"}`,
		"a byte order mark":     "\ufeff{}",
		"17 levels":             strings.Repeat(`{"a":`, 16) + `{}` + strings.Repeat(`}`, 16),
		"100,000 levels":        strings.Repeat(`[`, 60_000),
		"not an object":         `[1]`,
		"a bare string":         `"x"`,
		"an object not closed":  `{"amount":500000`,
		"a string not closed":   `{"amount":"5`,
		"a word cut short":      `{"a":tru}`,
		"nothing but white":     "  \n",
		"a no-break space":      "{\u00a0}",
		"an escape cut short":   `{"description":"\u00`,
		"a form feed as space":  "{\f}",
		"a capital literal":     `{"a":True}`,
		"an exponent cut short": `{"a":1e}`,
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			if refused := read(t, body); refused == nil || refused.Code != flow.CodeMalformedJSON {
				t.Errorf("want malformed_json, got %v", refused)
			}
		})
	}
	if refused := read(t, strings.Repeat(`{"a":`, 15)+`{}`+strings.Repeat(`}`, 15)); refused == nil || refused.Code == flow.CodeMalformedJSON {
		t.Errorf("16 levels are allowed: %v", refused)
	}
}

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	refused := read(t, `{"Amount":5000,"customerEmail":"nobody","customer_phone":"0803","colour":null,"metadata":{"a":1},"expiresInMinutes":5.5,"allowedMethods":["cash"],"description":null}`)
	if refused == nil {
		t.Fatal("accepted")
	}
	want := map[string]flow.Code{
		"amount": flow.CodeMissingField, "customerEmail": flow.CodeInvalidEmail, "Amount": flow.CodeUnknownField, "customer_phone": flow.CodeUnknownField,
		"colour": flow.CodeUnknownField, "metadata.a": flow.CodeInvalidField, "expiresInMinutes": flow.CodeInvalidField, "allowedMethods": flow.CodeInvalidField,
		"description": flow.CodeInvalidField,
	}
	for _, f := range refused.Fields {
		if want[f.Field] != f.Code {
			t.Errorf("%s: want %s, got %s", f.Field, want[f.Field], f.Code)
		}
		if f.Field == "Amount" && !strings.Contains(f.Message, "Did you mean amount?") {
			t.Errorf("no hint: %s", f.Message)
		}
		delete(want, f.Field)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
	if refused.Code != flow.CodeMissingField {
		t.Errorf("the first fault gives the code: %s", refused.Code)
	}
}

func TestAnEmptyTextIsCalledEmpty(t *testing.T) {
	refused := read(t, `{"amount":5000,"customerEmail":"ada@example.com","description":""}`)
	if refused == nil || refused.Message != "description must not be empty." {
		t.Errorf("what is said is %v", refused)
	}
}

func TestCardNumbersAreRefusedAndNeverRepeated(t *testing.T) {
	cards := []string{
		"4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "5555555555554444", "2223003122003222", "378282246310005",
		"5061 0000 0000 0000 007", "5060990580000217499", "5061020000000000094", "6011111111111117", "3530111333300000", "36227206271667", "my card is 4111 1111 1111 1111 12/29 thanks",
		"4222222222222", "4111 - 1111 - 1111 - 1111", "4111  1111  1111  1111", "4111/1111/1111/1111", "4111_1111_1111_1111", "4111,1111,1111,1111",
		"5060 6666 6666 6666 666", "507850785078507812", // test cards of Nigerian processors
	}
	for _, card := range cards {
		if !flow.HoldsCard(card) {
			t.Errorf("not seen: %s", card)
			continue
		}
		quoted, _ := json.Marshal(card)
		for _, body := range []string{
			`{"description":%s}`, `{"metadata":{"note":%s}}`, `{%s:1}`, `{"metadata":{"a":[{"b":%s}]}}`, `{"customerEmail":%s}`,
		} {
			refused := read(t, fmt.Sprintf(body, quoted))
			if refused == nil || refused.Code != flow.CodeCardData {
				t.Errorf("%s: want card_data_not_accepted, got %v", body, refused)
				continue
			}
			if shown := fmt.Sprintf("%v %+v", refused, refused.Fields); strings.Contains(shown, card) {
				t.Errorf("repeated: %s", shown)
			}
		}
	}
	if refused := read(t, `{"amount":4111111111111111}`); refused == nil || refused.Code != flow.CodeCardData {
		t.Errorf("a card number as a number: %v", refused)
	}
}

func TestOrdinaryNumbersAreNotCards(t *testing.T) {
	for _, s := range []string{
		"4111111111111112", "08031234567", "+234 803 123 4567", "0123456789", "1234567890123456", "000013261121093000000000000001", "1767225600000",
		"2026-11-21 09:30:00", "20261121-0930-0001", "order-1001", "550e8400-e29b-41d4-a716-446655440000", "9999999999999999", "411111111111111", "4111  -  1111  -  1111  -  1111",
	} {
		if flow.HoldsCard(s) {
			t.Errorf("taken for a card: %s", s)
		}
	}
}

func TestBodiesAreJSONAndNothingElse(t *testing.T) {
	for kind, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON;charset=UTF-8": true, "application/json;charset=latin1": false,
		"text/json": false, "": false, "application/x-www-form-urlencoded": false, "application/json; boundary=x": false, "application/merge-patch+json": false,
	} {
		_, err := decode(kind, []byte(`{}`), decodeRules{})
		if (err == nil) != ok {
			t.Errorf("%q: %v", kind, err)
		}
		if err != nil && flow.CodeOf(err) != flow.CodeMediaType {
			t.Errorf("%q: %v", kind, err)
		}
	}
	if _, err := decode("", nil, decodeRules{optional: true}); err != nil {
		t.Errorf("a body that may be missing: %v", err)
	}
	if _, err := decode("", nil, decodeRules{}); flow.CodeOf(err) != flow.CodeMalformedJSON {
		t.Errorf("a body that may not be missing: %v", err)
	}
}

func TestMailboxes(t *testing.T) {
	long := strings.Repeat("a", 64) + "@" + strings.Repeat(strings.Repeat("b", 60)+".", 3) + "bb" // and four more are 254
	for s, ok := range map[string]bool{
		"ada@example.com": true, "ada+till@mail.example.ng": true, "o'neil@example.co": true, "a@b.co": true,
		"ada": false, "ada@": false, "@example.com": false, "ada@example": false, "ada@@example.com": false, "ada@example.com,b@example.com": false,
		"Ada <ada@example.com>": false, "ada@example.com ": false, "ada@exa mple.com": false, "ada@-x.com": false, "ada@example..com": false, "ada@1.2.3.4": false,
		"ada@[127.0.0.1]": false, "ada\n@example.com": false, `"a b"@example.com`: false, "ada..b@example.com": false,
		strings.Repeat("a", 65) + "@example.com": false, "a@" + strings.Repeat("b", 250) + ".com": false, long + ".com": true, long + "b.com": false, "": false,
	} {
		if mailbox(s) != ok {
			t.Errorf("%q: want %v", s, ok)
		}
	}
}

// Numbers of some countries have the length, the beginning and the check digit of
// a card's.
func TestAPhoneNumberIsNoCard(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		field, code string
	}{
		{`"customerPhone":"+4915123456787"`, ""},
		{`"customerPhone":"+49 1512 3456787"`, ""},
		{`"customerPhone":"4915123456787"`, "card_data_not_accepted"}, // it may be either
		{`"customerPhone":"+4111111111111111"`, "card_data_not_accepted"},
		{`"customerPhone":"+4929689593573272"`, "card_data_not_accepted"}, // German numbers may be as long
		{`"customerName":"+4915123456787"`, "card_data_not_accepted"},
		{`"metadata":{"customerPhone":"+4915123456787"}`, "card_data_not_accepted"},
	} {
		r := s.ask("POST", sessions, s.key, with(c.field))
		if got := r.text("error.code"); got != c.code || c.code == "" && r.text("data.customerPhone") != "+4915123456787" {
			t.Errorf("%s: %d %s", c.field, r.status, r.body)
		}
	}
}

func TestPhonesAreNormalised(t *testing.T) {
	for given, want := range map[string]string{
		"08031234567": "2348031234567", "0803 123 4567": "2348031234567", "+2348031234567": "2348031234567", "+234 (0) 803-123-4567": "2348031234567",
		"2348031234567": "2348031234567", "+447400123456": "447400123456",
		"0803": "", "abc": "", "": "", "0803123456789": "", "+0": "", "tel:08031234567": "", "08031234567;ext=5": "", strings.Repeat("0", 40): "",
	} {
		f := &form{value: value{kind: kindObject, members: []member{{"p", value{kind: kindString, text: given}}}}}
		if got := f.phone("p"); string(got) != want || (want == "") != (len(f.faults) == 1) {
			t.Errorf("%q: want %q, got %q, %v", given, want, string(got), f.faults)
		}
	}
}

func TestAWrittenAmountIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := flow.Kobo(rapid.Int64Range(int64(flow.MinAmount), int64(flow.MaxAmount)).Draw(t, "kobo"))
		f, err := decode("application/json", []byte(`{"amount":`+k.Minor()+`}`), decodeRules{})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.amount(true, flow.MinAmount, flow.MaxAmount); got != k || f.done() != nil {
			t.Fatalf("want %d, got %d: %v", k, got, f.done())
		}
	})
}

// FuzzDecode holds our reading against encoding/json's: what we accept, it
// accepts too and reads the same strings out of.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,2.5e3,-0,"x\u00e9\ud83d\ude00",null,true]}`, `{"a":{"b":"c"}}`, `[`, `{"a":1,"a":2}`, "{\"\xff\":0}", `{"amount":5000.0}`, `{"d":"4111 1111 1111 1111"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, _, err := parse(string(body))
		if err != nil {
			return
		}
		if !utf8.Valid(body) || !json.Valid(body) {
			t.Fatalf("accepted what is not JSON: %q", body)
		}
		var theirs any
		if err := json.Unmarshal(body, &theirs); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") { // 1e999 does not fit a float; we keep it as written
				return
			}
			t.Fatalf("%q: %v", body, err)
		}
		if !same(v, theirs) {
			t.Fatalf("%q is read differently", body)
		}
	})
}

func same(v value, theirs any) bool {
	switch v.kind {
	case kindNull:
		return theirs == nil
	case kindBool:
		return theirs == v.yes
	case kindNumber:
		_, ok := theirs.(float64)
		return ok
	case kindString:
		return theirs == v.text
	case kindArray:
		list, ok := theirs.([]any)
		if !ok || len(list) != len(v.items) {
			return false
		}
		for i, item := range v.items {
			if !same(item, list[i]) {
				return false
			}
		}
		return true
	case kindObject:
		set, ok := theirs.(map[string]any)
		if !ok || len(set) != len(v.members) {
			return false
		}
		for _, m := range v.members {
			if !same(m.value, set[m.name]) {
				return false
			}
		}
		return true
	}
	return false
}
