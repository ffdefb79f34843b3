package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// typedCard is a card number as a payer types it into the chat.
const typedCard = "5060 6666 6666 6666 666"

// secrets are what no file may hold as it is: the card number that payers type,
// merchants' keys, and what webhooks are signed with.
func (w *world) secrets() map[string]string {
	all := map[string]string{"a card number": typedCard, "a card number without spaces": "5060666666666666666", "the token of a dashboard": w.tpl.token}
	for _, m := range w.merchants {
		all["a test key of "+m.name], all["a live key of "+m.name] = m.secret, m.live
		for _, k := range m.sinks {
			for n, secret := range k.secrets {
				if strings.HasPrefix(secret, "whpk_") { // a public key is none
					continue
				}
				all[fmt.Sprintf("secret %d of %s", n+1, k.url)] = secret
			}
		}
	}
	return all
}

// judgeSecrets looks for secrets in the files of the process that runs, as far as they
// are on the disk.
func (w *world) judgeSecrets() {
	all := w.secrets()
	for _, name := range files {
		w.tpl.room, _ = w.tpl.disk.Read(w.tpl.room, w.inst.dir+"/"+name)
		for _, what := range held(w.tpl.room, all) {
			w.breaks("I13", "%s holds %s", name, what)
		}
	}
}

// A text is looked at every so many bytes, a word of that length at a time. What is
// as long as two words less a byte holds one of them whole, wherever it begins.
const (
	word  = 8
	found = 2*word - 1
)

// inside is a secret, and where in it a word begins.
type inside struct {
	what string
	at   int
}

// held says which secrets a text holds, in order. The text is long, so that it is read
// once for all of them.
func held(text []byte, secrets map[string]string) []string {
	there, words := map[string]string{}, map[uint64][]inside{}
	var may [1 << 10]uint64 // a bit for each word of a secret, among few others
	bit := func(of uint64) (*uint64, uint64) {
		n := of * 0x9e3779b97f4a7c15 >> 48
		return &may[n>>6], 1 << (n & 63)
	}
	for what, secret := range secrets {
		if len(secret) < found {
			if secret != "" && bytes.Contains(text, []byte(secret)) {
				there[what] = secret
			}
			continue
		}
		for at := range word {
			of := binary.LittleEndian.Uint64([]byte(secret[at:]))
			words[of] = append(words[of], inside{what, at})
			in, mark := bit(of)
			*in |= mark
		}
	}
	for n := 0; n+word <= len(text); n += word {
		of := binary.LittleEndian.Uint64(text[n:])
		if in, mark := bit(of); *in&mark == 0 {
			continue
		}
		for _, s := range words[of] {
			if n >= s.at && bytes.HasPrefix(text[n-s.at:], []byte(secrets[s.what])) {
				there[s.what] = secrets[s.what]
			}
		}
	}
	return sorted(there)
}
