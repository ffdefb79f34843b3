package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
)

// ErrTaken says that another process uses a file of keys.
var ErrTaken = errTaken

// Keys is a device that is kept in a file as a Client keeps it.
type Keys struct {
	*store.Device

	box  *sqlstore.Container
	file *keyFile
}

// looked is the library's own store, and what happens right after it was read.
type looked struct {
	store.AllSessionSpecificStores

	then func()
}

func (l looked) GetSession(ctx context.Context, address string) ([]byte, error) {
	defer l.then()
	return l.AllSessionSpecificStores.GetSession(ctx, address)
}

func (l looked) GetNCTSalt(ctx context.Context) ([]byte, error) {
	defer l.then()
	return l.AllSessionSpecificStores.GetNCTSalt(ctx)
}

func (l looked) GetPrivacyToken(ctx context.Context, user types.JID) (*store.PrivacyToken, error) {
	defer l.then()
	return l.AllSessionSpecificStores.GetPrivacyToken(ctx, user)
}

// OpenKeys opens the device in a file, which it makes if there is none. Each time
// that the file was asked for a session, a salt or a token, and before anybody
// remembers the answer, something happens.
func OpenKeys(ctx context.Context, name string, now func() time.Time, then func()) (*Keys, error) {
	db, err := openFile(name)
	if err != nil {
		return nil, err
	}
	k := &Keys{box: sqlstore.NewWithDB(db, driver, nil)}
	if err := k.box.Upgrade(ctx); err != nil {
		return nil, err
	}
	if k.file, err = openKeys(name, now, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	if k.Device, err = k.box.GetFirstDevice(ctx); err != nil {
		return nil, err
	}
	if k.ID == nil {
		id := types.NewADJID("2349010000001", 0, 1)
		k.ID, k.Account = &id, &waAdv.ADVSignedDeviceIdentity{
			Details: []byte{1}, AccountSignature: make([]byte, 64), AccountSignatureKey: make([]byte, 32), DeviceSignature: make([]byte, 64),
		}
		if err := k.box.PutDevice(ctx, k.Device); err != nil {
			return nil, err
		}
	}
	inner, ok := k.Sessions.(store.AllSessionSpecificStores)
	if !ok {
		return nil, fmt.Errorf("sessions are kept in a %T", k.Sessions)
	}
	k.Sessions = looked{inner, then}
	return k, discreet(k.Device, k.file)
}

// Link links the number of the file anew, as a Client does: with new keys, under the
// same name.
func (k *Keys) Link(ctx context.Context) (*store.Device, error) {
	k.file.forget()
	if err := k.box.DeleteDevice(ctx, k.Device); err != nil {
		return nil, err
	}
	d := k.box.NewDevice()
	if err := discreet(d, k.file); err != nil {
		return nil, err
	}
	d.ID, d.Account = k.ID, k.Account
	return d, d.Save(ctx)
}

// Settle writes what is noted.
func (k *Keys) Settle() error { return k.file.settle() }

// Close writes what is noted and closes the file.
func (k *Keys) Close() error { return errors.Join(k.file.close(), k.box.Close()) }
