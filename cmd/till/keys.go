package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"till/flow/checkout"
)

// checkEnvFile makes sure of a first start that the keys it makes can be kept.
func (a *app) checkEnvFile() error {
	if _, err := os.Stat(a.set.DataDir); err == nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(envFile), ".till-*")
	if err != nil {
		return fmt.Errorf("the keys cannot be kept in %s: %w (start it in a folder that you may write to)", envFile, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// envAside holds the keys until they count: whoever waits for the file itself may call
// with them at once, and a kill loses none.
const envAside = envFile + ".new"

// demo makes the demo project on the first start, and finds it afterwards. The
// secret key is only known when it is made.
func (a *app) demo(ctx context.Context) (public, secret string, err error) {
	if public, err = a.settings.Setting(ctx, checkout.DemoSetting); err != nil || public != "" {
		return public, "", err
	}
	made, err := a.accounts.Demo(ctx, demoEmail, demoName, func(keys checkout.SignedUp) error {
		text := fmt.Sprintf("TILL_URL=%s\nTILL_PUBLIC_KEY=%s\nTILL_SECRET_KEY=%s\n", a.publicURL(), keys.PublicKey, keys.SecretKey)
		err := writeSecret(envAside, text)
		if info, is := os.Stat(envFile); err == nil && is == nil && info.IsDir() { // it would be in the way, and then the keys count
			err = errors.Join(&fs.PathError{Op: "write", Path: envFile, Err: syscall.EISDIR}, os.Remove(envAside))
		}
		if err != nil {
			return fmt.Errorf("keep the keys in %s: %w", envFile, err)
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	if err := os.Rename(envAside, envFile); err != nil {
		return "", "", fmt.Errorf("keep the keys in %s: %w", envFile, err)
	}
	return made.PublicKey, made.SecretKey, nil
}

// demoProject is the id of the demo project, for whoever lost its keys: the oldest of its
// account's. Where that cannot be told, the command that it is for says where ids stand.
func (a *app) demoProject(ctx context.Context) string {
	const among = 100
	if account, err := a.accounts.AccountOf(ctx, demoEmail); err == nil {
		if of, more, err := a.accounts.Projects(ctx, account.ID, "", among); err == nil && !more && len(of) > 0 {
			return string(of[len(of)-1].ID)
		}
	}
	return "wsp_prj_…"
}

// keepEnvFile says whether the file with the keys is here, and renews the
// address in it: a later start may listen elsewhere.
func keepEnvFile(address, public string) bool {
	if text, err := os.ReadFile(envAside); err == nil && strings.Contains(string(text), "TILL_PUBLIC_KEY="+public+"\n") {
		_ = os.Rename(envAside, envFile) // where that fails the file is not here, which is told
	}
	text, err := readPlain(envFile, maxEnvFile)
	if err != nil || !strings.Contains(string(text), "TILL_PUBLIC_KEY="+public+"\n") {
		return false
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "TILL_URL=") {
			lines[i] = "TILL_URL=" + address + "\n"
		}
	}
	if renewed := strings.Join(lines, ""); renewed != string(text) {
		return writeSecret(envFile, renewed) == nil
	}
	return true
}

// writeSecret replaces a file that only its owner may read.
func writeSecret(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".till-*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
