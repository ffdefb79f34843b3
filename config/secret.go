package config

import "log/slog"

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
