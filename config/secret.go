package config

import (
	"log/slog"
	"net/url"
	"strings"
)

// Secret is a setting that nobody may read by accident: it prints as [secret].
type Secret string

const hidden = "[secret]"

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the value in %#v too.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value in JSON and TOML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the value in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalText takes the value in.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

// Address is where something answers. Who and what password stands in it before an @ is
// not printed.
type Address string

// String hides who stands in it.
func (a Address) String() string {
	at := strings.LastIndexByte(string(a), '@')
	if at < 0 {
		return string(a)
	}
	scheme, _, found := strings.Cut(string(a[:at]), "://")
	if found {
		scheme += "://"
	} else {
		scheme = ""
	}
	return scheme + hidden + string(a[at:])
}

// MarshalText hides who stands in it, in JSON and TOML.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// InTheClear says whether what is sent to an address passes to other machines without
// TLS, and which address to give instead.
func (a Address) InTheClear() (instead string, open bool) {
	u, err := url.Parse(string(a))
	if err != nil || u.Scheme != "http" || OnThisMachine(string(a)) {
		return "", false
	}
	return "https://" + u.Host, true
}
