// Package sealing finds the keys that secrets are sealed with in the databases:
// those of the settings, or the file that the first start makes beside them.
package sealing

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"till/config"
	"till/flow/store"
)

// FileName is the file of the data dir that the key stands in where the settings
// have none.
const FileName = "secrets.key"

// maxFile bounds that file.
const maxFile = 4 << 10

// The settings of the accounts that are secret.
const (
	BankSecret     = "bank_secret" // what the bank's notices are signed with
	clientPepper   = "client_secret_pepper_"
	identityPepper = "identity_pepper_"
)

// ClientPepper is what client secrets of an environment are made of.
func ClientPepper(env string) string { return clientPepper + env }

// IdentityPepper is what the numbers of people are hashed with in an environment.
func IdentityPepper(env string) string { return identityPepper + env }

// Settings are the names of all of them.
func Settings() []string {
	return []string{BankSecret, ClientPepper("test"), ClientPepper("live"), IdentityPepper("test"), IdentityPepper("live")}
}

// Keys are the keys there are: the one that seals, then those that only open.
// A key file beside a key of the settings only opens, so that a key can move from
// one to the other. Errors: fs.ErrNotExist where there is none that seals.
func Keys(set config.Settings) ([]store.SealingKey, error) {
	given, old, err := set.SealingKeys()
	if err != nil {
		return nil, err
	}
	var keys []store.SealingKey
	if given != nil {
		keys = append(keys, *given)
	}
	file, err := read(set.DataDir)
	switch {
	case err == nil:
		keys = append(keys, file)
	case !errors.Is(err, fs.ErrNotExist) || given == nil:
		return nil, err
	}
	for _, key := range old {
		keys = append(keys, key)
	}
	return keys, nil
}

// ErrNoFile is a folder, a pipe or a device in the place of the key file.
var ErrNoFile = errors.New("it is no plain file")

// Open opens the key file of a data dir. Errors: fs.ErrNotExist for none; ErrNoFile for
// what is opened only once somebody writes into it, or read without an end.
func Open(dir string) (*os.File, error) {
	path := filepath.Join(dir, FileName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s holds no key: %w (move it away, and put back the copy that you kept)", path, ErrNoFile)
	}
	return os.Open(path)
}

// read reads the key file of a data dir.
func read(dir string) (key store.SealingKey, err error) {
	f, err := Open(dir)
	if err != nil {
		return key, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return key, err
	}
	if key, err = store.ParseSealingKey(string(text)); err != nil {
		err = fmt.Errorf("%s holds no key: %w (put back the copy that you kept)", f.Name(), err)
	}
	return key, err
}

// Make draws a key and keeps it in a data dir, for its owner alone; when it
// returns, the disk has it. Where another process was faster, its key is taken.
func Make(dir string, random io.Reader) (key store.SealingKey, err error) {
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return key, fmt.Errorf("draw a sealing key: %w", err)
	}
	path := filepath.Join(dir, FileName)
	f, err := os.CreateTemp(dir, ".till-*") // made with mode 0600
	if err != nil {
		return key, fmt.Errorf("keep a sealing key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil { // Link, and not Rename: a key that came there meanwhile stays
		if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
			key, err = read(dir)
		}
	}
	if err = errors.Join(err, os.Remove(f.Name()), syncDir(dir)); err != nil {
		return store.SealingKey{}, fmt.Errorf("keep a sealing key: %w", err)
	}
	return key, nil
}

// syncDir has the disk keep the names in a folder.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
