package api

import (
	"encoding/json"
	"strings"
)

// naughty is a text that programs stumble over.
type naughty struct {
	name string
	text string
	// token is the text as JSON where it is not just the text in quotes.
	token string
	never bool // no field whatever may take it
}

// quoted is the text as a token of JSON, its bytes kept as they are.
func (n naughty) quoted() string {
	if n.token != "" {
		return n.token
	}
	var b strings.Builder
	for i := range len(n.text) {
		switch c := n.text[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ':
			b.WriteString(`\u00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// means is the text that the token stands for.
func (n naughty) means() string {
	out := n.text
	if n.token != "" {
		_ = json.Unmarshal([]byte(n.token), &out)
	}
	return out
}

// naughties are a hundred texts, of which some may be taken by some fields: a
// name may be an apostrophe and a smile, and must then be read back as it was.
func naughties() []naughty {
	return []naughty{
		{name: "nothing", text: ""},
		{name: "a space", text: " "},
		{name: "spaces", text: "          "},
		{name: "spaces round", text: "  Ada  "},
		{name: "a tab", text: "a\tb"},
		{name: "a line", text: "a\nb"},
		{name: "a line of two bytes", text: "a\r\nb"},
		{name: "a no-break space", text: "a\u00a0b"},
		{name: "an em space alone", text: "\u2003"},
		{name: "a line separator", text: "a\u2028b"},
		{name: "a paragraph separator", text: "a\u2029b"},
		{name: "a next line", text: "a\u0085b"},
		{name: "zero width", text: "a\u200bb\u200cc\u200dd\u2060e"},
		{name: "zero width alone", text: "\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b"},
		{name: "a soft hyphen", text: "A\u00adda"},
		{name: "a byte order mark", text: "\ufeffAda"},
		{name: "right to left", text: "مرحبا بالعالم"},
		{name: "right-to-left override", text: "abc\u202egnp.exe"},
		{name: "an isolate", text: "a\u2066b\u2069c"},
		{name: "direction marks", text: "a\u200eb\u200fc"},
		{name: "an Arabic letter mark", text: "a\u061cb"},
		{name: "NUL", text: "a\x00b", never: true},
		{name: "NUL escaped", token: `"a\u0000b"`, never: true},
		{name: "NUL raw", token: "\"a\x00b\"", never: true},
		{name: "a bell raw", token: "\"a\x07b\"", never: true},
		{name: "a line raw", token: "\"a\nb\"", never: true},
		{name: "a bell", text: "a\x07b"},
		{name: "an escape sequence", text: "\x1b[31mred\x1b[0m\x1b]0;title\x07"},
		{name: "a backspace", text: "abc\b\b\bxyz"},
		{name: "DEL", text: "a\x7fb"},
		{name: "a C1 control", text: "a\u009bb"},
		{name: "half a pair", token: `"a\ud83d"`, never: true},
		{name: "the other half", token: `"\ude00b"`, never: true},
		{name: "a pair turned round", token: `"\ude00\ud83d"`, never: true},
		{name: "a whole pair", token: `"a\ud83d\ude00b"`},
		{name: "a broken escape", token: `"a\u12"`, never: true},
		{name: "an escape of nobody's", token: `"a\x41"`, never: true},
		{name: "a noncharacter", text: "a\uffffb\ufffe"},
		{name: "the replacement character", text: "a\ufffdb"},
		{name: "a private character", text: "\ue000\U0010ffff"},
		{name: "a byte of Latin 1", text: "caf\xe9 caf\xe9 caf", never: true},
		{name: "a stray continuation", text: "a\x80b", never: true},
		{name: "overlong", text: "\xc0\xafetc\xc0\xafpasswd", never: true},
		{name: "a surrogate in UTF-8", text: "\xed\xa0\x80", never: true},
		{name: "beyond the last character", text: "\xf4\x90\x80\x80", never: true},
		{name: "half a character", text: "abcdefghij\xf0\x9f\x98", never: true},
		{name: "a family of emoji", text: "👨‍👩‍👧‍👦 Ada 👩🏿‍🚀"},
		{name: "a flag", text: "🇳🇬🏴‍☠️"},
		{name: "keycaps", text: "1️⃣2️⃣"},
		{name: "a flood of marks", text: "Z" + strings.Repeat("\u0300\u0323\u0489", 30)},
		{name: "composed", text: "\u00c5strand"},
		{name: "decomposed", text: "A\u030astrand"},
		{name: "a homoglyph", text: "аdа.оbі"},
		{name: "mathematical letters", text: "𝓐𝓭𝓪 𝕆𝕓𝕚"},
		{name: "full width", text: "ａｄａ＜ｓｃｒｉｐｔ＞"},
		{name: "a ligature", text: "ﬁnance ﷽"},
		{name: "a capital that grows", text: "ßİıſΣς"},
		{name: "digits of other scripts", text: "１２３٤٥٦७८९"},
		{name: "Chinese", text: "田中さんにあげて下さい"},
		{name: "SQL in quotes", text: `' OR '1'='1' --`},
		{name: "SQL that drops", text: `Robert'); DROP TABLE sessions;--`},
		{name: "SQL in double quotes", text: `" OR ""="`},
		{name: "SQL that sleeps", text: `1; SELECT pg_sleep(10)--`},
		{name: "SQL wildcards", text: `%_%`},
		{name: "a placeholder", text: `$1 ?1 :name @p1`},
		{name: "a script", text: `<script>alert(1)</script>`},
		{name: "an image", text: `"><img src=x onerror=alert(1)>`},
		{name: "an entity", text: `&lt;b&gt;&#x41;&amp;`},
		{name: "a comment", text: `<!-- --><![CDATA[ ]]>`},
		{name: "a template", text: `{{7*7}}${7*7}<%= 7*7 %>#{7*7}`},
		{name: "a look-up", text: `${jndi:ldap://127.0.0.1/a}`},
		{name: "format verbs", text: `%s%d%n%x%!v(MISSING)%%`},
		{name: "a formula", text: `=1+1`},
		{name: "a formula that calls", text: `=cmd|' /C calc'!A0`},
		{name: "a formula by at", text: `@SUM(1+1)*cmd`},
		{name: "a formula by plus", text: `+1+1`},
		{name: "a formula by minus", text: `-1+1`},
		{name: "a path up", text: `../../../../etc/passwd`},
		{name: "a path up, backwards", text: `..\..\windows\win.ini`},
		{name: "a path encoded", text: `%2e%2e%2f%2e%2e%2fetc`},
		{name: "a dot", text: `.`},
		{name: "two dots", text: `..`},
		{name: "a device", text: `CON`},
		{name: "a file URL", text: `file:///etc/passwd`},
		{name: "a script URL", text: `javascript:alert(1)`},
		{name: "a URL with a user", text: `https://till.example@evil.example/`},
		{name: "a URL with a line", text: "https://shop.example/\r\nSet-Cookie: a=b"},
		{name: "a URL with a script", text: `https://shop.example/?q="><script>alert(1)</script>`},
		{name: "a header", text: "a\r\nX-Evil: 1"},
		{name: "a header encoded", text: "a%0d%0aX-Evil:%201"},
		{name: "a line for a log", text: "a\n{\"level\":\"ERROR\",\"msg\":\"forged\"}"},
		{name: "a shell", text: "$(touch /tmp/x) `id` ; id | id && id"},
		{name: "LDAP", text: `*)(uid=*))(|(uid=*`},
		{name: "an XML entity", text: `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>`},
		{name: "JSON", text: `{"amount":1}`},
		{name: "null", text: `null`},
		{name: "undefined", text: `undefined`},
		{name: "true", text: `true`},
		{name: "NaN", text: `NaN`},
		{name: "a number", text: `0`},
		{name: "a big number", text: strings.Repeat("9", 400)},
		{name: "a prototype", text: `__proto__`},
		{name: "a constructor", text: `constructor`},
		{name: "a percent", text: `100%`},
		{name: "percent NUL", text: `a%00b`},
		{name: "twice encoded", text: `%2527%252e`},
		{name: "plus signs", text: `a+b c`},
		{name: "an ampersand", text: `a=1&b=2#c;d`},
		{name: "a phone", text: `+234 (0) 803-123-4567`},
		{name: "a phone with a tail", text: `08031234567;ext=5`},
		{name: "an odd mailbox", text: `o'neil+<x>@example.com`},
		{name: "a mailbox of SQL", text: `a'or'1'='1@example.com`},
		{name: "a mailbox and a header", text: "ada@example.com\r\nBcc: b@example.com"},
		{name: "two mailboxes", text: `ada@example.com,bola@example.com`},
		{name: "a time", text: `2026-11-21T09:30:00+01:00`},
		{name: "a time that is not", text: `2026-02-30T25:61:61Z`},
		{name: "a card", text: `4111 1111 1111 1111`},
		{name: "a BVN", text: `22222222221`},
		{name: "an id of nobody's", text: `wsp_sess_01m7y6b2svb0wy2rg89w393p3j`},
		{name: "ten thousand letters", text: strings.Repeat("a", 10_000)},
		{name: "four thousand emoji", text: strings.Repeat("😀", 4_096)},
		{name: "nearly a whole body", text: strings.Repeat("a", 60_000)},
	}
}
