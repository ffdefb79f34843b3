package whatsapp

import (
	"context"
	"errors"
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

// OpenKeys opens the device in a file, which it makes if there is none.
func OpenKeys(ctx context.Context, name string, now func() time.Time) (*Keys, error) {
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
	return k, discreet(k.Device, k.file)
}

// Settle writes what is noted.
func (k *Keys) Settle() error { return k.file.settle() }

// Close writes what is noted and closes the file.
func (k *Keys) Close() error { return errors.Join(k.file.close(), k.box.Close()) }
