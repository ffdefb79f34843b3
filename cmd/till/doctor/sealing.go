package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"till/cmd/till/sealing"
	"till/flow/store"
)

// sealing looks whether what is secret in the databases is sealed, and whether
// the keys are there that open it.
func (l *look) sealing(ctx context.Context) {
	keys, err := sealing.Keys(l.Settings)
	none := errors.Is(err, fs.ErrNotExist)
	if _, unread := errors.AsType[*fs.PathError](err); unread && !none { // it is there, and may be the right one
		l.fail("The key that secrets are sealed with cannot be read: "+brief(err)+".", l.reach(sealing.FileName, err))
		return
	}
	if errors.Is(err, sealing.ErrNoFile) { // a copy would be written into it
		file := filepath.Join(l.DataDir, sealing.FileName)
		l.fail(file+" holds no key: "+sealing.ErrNoFile.Error()+".", "mv "+quoted(file)+" "+quoted(file+".aside")+" && cp YOUR_COPY "+quoted(file))
		return
	}
	if err != nil && !none {
		l.fail(brief(err)+".", l.giveKey())
		return
	}
	before, needed, old, open := len(l.found), []string{}, []string{}, 0
	for _, d := range databases {
		if l.away {
			break // as it is told already
		}
		short, cancel := context.WithTimeout(ctx, patience)
		c := l.in(d.name, d.schema)
		c.Secrets = sealing.Settings()
		with, err := store.SealedWith(short, c)
		cancel()
		if err != nil {
			continue // the look at the databases tells it
		}
		open += with.Clear
		for _, id := range with.Keys {
			at := slices.IndexFunc(keys, func(k store.SealingKey) bool { return k.ID() == id })
			if at < 0 && !slices.Contains(needed, id) {
				needed = append(needed, id)
			}
			if at > 0 && !slices.Contains(old, id) {
				old = append(old, id)
			}
		}
	}
	switch {
	case len(needed) > 0 && none:
		l.fail("Secrets are sealed with key "+strings.Join(needed, " and ")+", and there is no key: no start, and no webhook is signed.", l.giveKey())
	case len(needed) > 0:
		l.fail("Secrets are sealed with key "+strings.Join(needed, " and ")+", and the key given is "+keys[0].ID()+": no start, and no webhook is signed.", l.giveKey())
	case none && l.DatabaseURL != "":
		l.warn("No key is given that seals secrets: till serve does not start without one on PostgreSQL.", "export TILL_SECRETS_KEY=$(openssl rand -hex 32)   (the same for every process; keep a copy elsewhere)")
	case len(old) > 0:
		l.warn("Secrets are still sealed with key "+strings.Join(old, " and ")+", which was changed for another. The next start seals them anew.", "restart Till   (then the old key is not needed any more)")
	}
	if open > 0 {
		l.warn(fmt.Sprintf("%d secrets are in the clear in the databases, from an older Till. The next start seals them.", open), "restart Till   (backups of before still hold them in the clear)")
	}
	if len(l.found) > before || l.away {
		return
	}
	if none {
		l.ok("Nothing secret is kept yet: the first start makes a key.")
		return
	}
	where := "TILL_SECRETS_KEY"
	if l.SecretsKey == "" {
		where = filepath.Join(l.DataDir, sealing.FileName)
	}
	l.ok("Secrets are sealed with key " + keys[0].ID() + ", that of " + where + ". Keep a copy elsewhere: backups are without it.")
}

// giveKey is how a key is given that is missing.
func (l *look) giveKey() string {
	if l.DatabaseURL != "" || l.SecretsKey != "" {
		return "export TILL_SECRETS_KEY=THE_KEY   (or TILL_SECRETS_KEY_OLD, if it was changed for another)"
	}
	return "cp YOUR_COPY " + quoted(filepath.Join(l.DataDir, sealing.FileName)) + "   (or put it into TILL_SECRETS_KEY; TILL_SECRETS_KEY_OLD, if it was changed for another)"
}
