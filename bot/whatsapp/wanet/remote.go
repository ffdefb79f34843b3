package wanet

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Remote drives a network that another process of this machine runs, by its
// control API. Its errors are those of the network itself.
type Remote struct {
	base string
	http *http.Client
	err  error
}

// NewRemote returns a client of the control API at base, as in
// http://127.0.0.1:9000. A base on another machine is refused at every call. The
// client should have no total timeout below 60 s, or Messages can not wait.
func NewRemote(base string, c *http.Client) *Remote {
	r := &Remote{base: strings.TrimSuffix(base, "/"), http: c}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) {
		r.err = fmt.Errorf("%w: %q", ErrNotLoopback, base)
	}
	if c == nil {
		r.err = errors.Join(r.err, fmt.Errorf("%w: an HTTP client is needed", ErrInput))
	}
	return r
}

// strict decodes one JSON value with no unknown fields and nothing behind it.
func strict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("decoding: there is more than one value")
	}
	return nil
}

// call makes one request. in may be nil; out must not.
func (r *Remote) call(ctx context.Context, method, path string, in, out any) error {
	if r.err != nil {
		return r.err
	}
	var send io.Reader = http.NoBody
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encoding the request to the network: %w", err)
		}
		send = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, send)
	if err != nil {
		return fmt.Errorf("making the request to the network: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the network: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("reading the network's answer: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		if err = json.Unmarshal(raw, out); err != nil {
			return fmt.Errorf("decoding the network's answer: %w", err)
		}
		return nil
	}
	var f failure
	_ = json.Unmarshal(raw, &f)
	for _, c := range codes {
		if c.code == f.Error.Code {
			return fmt.Errorf("the network answered: %w: %s", c.err, f.Error.Message)
		}
	}
	return fmt.Errorf("the network answered %s: %s", resp.Status, f.Error.Message)
}

func phonePath(phone, rest string) string {
	return "/network/phones/" + url.PathEscape(phone) + rest
}

// Info describes the network.
func (r *Remote) Info(ctx context.Context) (info Info, err error) {
	if err = r.call(ctx, http.MethodGet, "/network", nil, &info); err == nil && info.Name != Name {
		err = fmt.Errorf("%w: what answers there is %q", ErrInput, info.Name)
	}
	return info, err
}

// RootKey is the public key the network's certificates lead to.
func (r *Remote) RootKey(ctx context.Context) (key [32]byte, err error) {
	info, err := r.Info(ctx)
	if err != nil {
		return key, err
	}
	raw, err := hex.DecodeString(info.RootKey)
	if err != nil || len(raw) != len(key) {
		return key, fmt.Errorf("%w: the network's root key is damaged", ErrInput)
	}
	return [32]byte(raw), nil
}

// AddPhone adds a phone; without a number, under the next free one.
func (r *Remote) AddPhone(ctx context.Context, phone, pushName string) (p PhoneInfo, err error) {
	err = r.call(ctx, http.MethodPost, "/network/phones", phoneBody{Phone: phone, PushName: pushName}, &p)
	return p, err
}

// Phones lists the phones.
func (r *Remote) Phones(ctx context.Context) ([]PhoneInfo, error) {
	var out listOf[PhoneInfo]
	err := r.call(ctx, http.MethodGet, "/network/phones", nil, &out)
	return out.Items, err
}

// RemovePhone takes a number off the network.
func (r *Remote) RemovePhone(ctx context.Context, phone string) error {
	return r.call(ctx, http.MethodDelete, phonePath(phone, ""), nil, &struct{}{})
}

// Send sends a text from a phone.
func (r *Remote) Send(ctx context.Context, phone, to, text string) (Message, error) {
	return r.SendQuote(ctx, phone, to, text, "")
}

// SendQuote sends a text from a phone that answers an earlier message.
func (r *Remote) SendQuote(ctx context.Context, phone, to, text, quoted string) (m Message, err error) {
	err = r.call(ctx, http.MethodPost, phonePath(phone, "/messages"), messageBody{To: to, Text: text, Quote: quoted}, &m)
	return m, err
}

// Messages is Phone.Messages; wait is rounded up to seconds.
func (r *Remote) Messages(ctx context.Context, phone string, after int64, wait time.Duration) ([]Message, int64, error) {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if wait > 0 {
		q.Set("wait", strconv.FormatInt(int64((min(wait, maxPoll)+time.Second-1)/time.Second), 10))
	}
	var out listOf[Message]
	err := r.call(ctx, http.MethodGet, phonePath(phone, "/messages?"+q.Encode()), nil, &out)
	return out.Items, max(out.NextCursor, after), err
}

// MarkRead tells the other side of a chat that messages were read.
func (r *Remote) MarkRead(ctx context.Context, phone, chat string, ids ...string) error {
	return r.call(ctx, http.MethodPost, phonePath(phone, "/read"), readBody{Chat: chat, IDs: ids}, &struct{}{})
}

// Typing shows or ends "typing…" at the other side of a chat.
func (r *Remote) Typing(ctx context.Context, phone, to string, on bool) error {
	return r.call(ctx, http.MethodPost, phonePath(phone, "/typing"), typingBody{To: to, On: on}, &struct{}{})
}

// ScanQR links the client that shows a QR text to a number, which is added.
func (r *Remote) ScanQR(ctx context.Context, phone, pushName, text string) (p PhoneInfo, err error) {
	err = r.call(ctx, http.MethodPost, "/network/pairings", pairingBody{Phone: phone, PushName: pushName, Text: text}, &p)
	return p, err
}

// SetFaults replaces the network's standing troubles.
func (r *Remote) SetFaults(ctx context.Context, f Faults) error {
	return r.call(ctx, http.MethodPut, "/network/faults", f, &Faults{})
}

// Devices lists all devices of the network.
func (r *Remote) Devices(ctx context.Context) ([]DeviceInfo, error) {
	var out listOf[DeviceInfo]
	err := r.call(ctx, http.MethodGet, "/network/devices", nil, &out)
	return out.Items, err
}

// Device does something to a linked client: drop, error (with a code), replace or
// logout.
func (r *Remote) Device(ctx context.Context, phone string, id uint16, do string, code int) error {
	path := "/network/devices/" + url.PathEscape(phone) + "/" + strconv.Itoa(int(id))
	return r.call(ctx, http.MethodPost, path, deviceBody{Do: do, Code: code}, &struct{}{})
}
