package whatsapp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// The library keeps the plaintext of each message in its file until our handler
// has taken it, and that of what we sent for a week. Somebody may have typed
// their card number, and what is deleted from a file can still be in its log or
// in a copy of it. So both rest there sealed: whoever has the file alone, or a
// page of it, reads nothing.
//
// The key is made of the device's own identity key, so that there is nothing
// more to keep, and a program that starts again after a crash still reads what
// it had not handled. Who has the whole file has that key too: sealing protects
// pages, logs and backups of parts, and keeps a search for card numbers in files
// honest. It is no defence against who owns the machine.
type sealed struct {
	store.EventBuffer
	seal cipher.AEAD
	mac  []byte
}

var errSeal = errors.New("whatsapp: a kept message cannot be opened")

// unnamed is a store of contacts that keeps no names: they are the payers' own
// words, and nobody reads them there.
type unnamed struct{ store.ContactStore }

// container keeps devices like the library's own, and seals those that it makes.
type container struct {
	store.DeviceContainer

	file *keyFile
}

// PutDevice keeps a device. The first time makes its stores.
func (c container) PutDevice(ctx context.Context, d *store.Device) error {
	c.file.linking.Lock()
	defer c.file.linking.Unlock()
	if err := c.DeviceContainer.PutDevice(ctx, d); err != nil {
		return fmt.Errorf("keeping the device: %w", err)
	}
	return discreet(d, c.file)
}

// DeleteDevice forgets a device, and what of it was not written yet. The library does that
// with one that was unlinked beside telling of it: by then the number may have been linked
// anew, and the name by which devices are deleted may be the new one's as well. The old
// one is gone then.
func (c container) DeleteDevice(ctx context.Context, d *store.Device) error {
	c.file.linking.Lock()
	defer c.file.linking.Unlock()
	if !c.file.uses(d) {
		return nil
	}
	c.file.forget()
	return c.DeviceContainer.DeleteDevice(ctx, d) // as the library's own does
}

// discreet has a device keep its keys by ratchets, and no text and no names that
// can be read.
func discreet(d *store.Device, file *keyFile) error {
	d.Container = container{unwrapped(d.Container), file}
	if _, done := d.EventBuffer.(*sealed); done || d.EventBuffer == nil {
		return nil
	}
	keys, err := hkdf.Key(sha256.New, d.IdentityKey.Priv[:], nil, "till whatsapp buffer 1", 2*sha256.Size)
	if err != nil {
		return fmt.Errorf("making the key of the buffer: %w", err)
	}
	block, err := aes.NewCipher(keys[:sha256.Size])
	if err != nil {
		return fmt.Errorf("making the key of the buffer: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return fmt.Errorf("making the key of the buffer: %w", err)
	}
	r, err := file.of(d)
	if err != nil {
		return err
	}
	d.Identities, d.Sessions, d.PreKeys, d.MsgSecrets, d.PrivacyTokens, d.NCTSalt = r, r, r, r, r, r
	d.EventBuffer = &sealed{EventBuffer: r, seal: aead, mac: keys[sha256.Size:]}
	d.Contacts = unnamed{d.Contacts}
	return nil
}

func unwrapped(c store.DeviceContainer) store.DeviceContainer {
	if ours, is := c.(container); is {
		return ours.DeviceContainer
	}
	return c
}

// close seals a text for one place. The nonce is made of the text and the place,
// so that it never meets another text under the same key.
func (s *sealed) close(place string, text []byte) []byte {
	mac := hmac.New(sha256.New, s.mac)
	_, _ = fmt.Fprintf(mac, "%d %s", len(place), place)
	_, _ = mac.Write(text)
	nonce := mac.Sum(nil)[:s.seal.NonceSize()]
	return s.seal.Seal(nonce, nonce, text, []byte(place))
}

// open opens what was sealed for a place; nothing stays nothing.
func (s *sealed) open(place string, box []byte) ([]byte, error) {
	if box == nil {
		return nil, nil
	}
	n := s.seal.NonceSize()
	if len(box) < n {
		return nil, errSeal
	}
	text, err := s.seal.Open([]byte{}, box[:n], box[n:], []byte(place))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSeal, err)
	}
	return text, nil
}

func heardPlace(hash [32]byte) string { return "in " + string(hash[:]) }

func saidPlace(id types.MessageID, format string) string { return "out " + format + " " + id }

// GetBufferedEvent returns a message that was not handled yet.
func (s *sealed) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	e, err := s.EventBuffer.GetBufferedEvent(ctx, hash)
	if err != nil || e == nil {
		return nil, err // as the library's own does
	}
	e.Plaintext, err = s.open(heardPlace(hash), e.Plaintext)
	return e, err
}

// PutBufferedEvent keeps a message until it is handled.
func (s *sealed) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, at time.Time) error {
	return s.EventBuffer.PutBufferedEvent(ctx, hash, s.close(heardPlace(hash), plaintext), at) // as the library's own does
}

// GetOutgoingEvent returns a message of ours that somebody could not read.
func (s *sealed) GetOutgoingEvent(ctx context.Context, chat, alt types.JID, id types.MessageID) (string, []byte, error) {
	format, box, err := s.EventBuffer.GetOutgoingEvent(ctx, chat, alt, id)
	if err != nil {
		return "", nil, err // the library looks for sql.ErrNoRows
	}
	text, err := s.open(saidPlace(id, format), box)
	return format, text, err
}

// AddOutgoingEvent keeps a message of ours, for whoever cannot read it at first.
func (s *sealed) AddOutgoingEvent(ctx context.Context, chat types.JID, id types.MessageID, format string, plaintext []byte) error {
	return s.EventBuffer.AddOutgoingEvent(ctx, chat, id, format, s.close(saidPlace(id, format), plaintext)) // as the library's own does
}

// PutPushName keeps no name.
func (unnamed) PutPushName(context.Context, types.JID, string) (changed bool, before string, err error) {
	return false, "", nil
}

// PutBusinessName keeps no name.
func (unnamed) PutBusinessName(context.Context, types.JID, string) (changed bool, before string, err error) {
	return false, "", nil
}

// PutContactName keeps no name.
func (unnamed) PutContactName(context.Context, types.JID, string, string) error { return nil }

// PutAllContactNames keeps no names.
func (unnamed) PutAllContactNames(context.Context, []store.ContactEntry) error { return nil }
