package sim

import (
	"bytes"
	"fmt"
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
				all[fmt.Sprintf("secret %d of %s", n+1, k.url)] = secret
			}
		}
	}
	return all
}

// judgeSecrets looks for secrets in the files of the process that runs.
func (w *world) judgeSecrets() {
	all := w.secrets()
	for _, name := range files {
		text, _ := w.tpl.disk.Read(w.inst.dir + "/" + name)
		for _, what := range held(text, all) {
			w.breaks("I13", "%s holds %s", name, what)
		}
	}
}

// beginning is how much of a secret others of its kind have too.
const beginning = 5

// held says which secrets a text holds, in order. The text is long and most
// secrets begin alike, so that it is read once for each beginning.
func held(text []byte, secrets map[string]string) []string {
	alike := map[string][]string{}
	for what, secret := range secrets {
		if len(secret) > beginning {
			alike[secret[:beginning]] = append(alike[secret[:beginning]], what)
		}
	}
	there := map[string]string{}
	for begins, kind := range alike {
		rest := text
		for at := bytes.Index(rest, []byte(begins)); at >= 0; at = bytes.Index(rest, []byte(begins)) {
			rest = rest[at:]
			for _, what := range kind {
				if bytes.HasPrefix(rest, []byte(secrets[what])) {
					there[what] = secrets[what]
				}
			}
			rest = rest[1:]
		}
	}
	return sorted(there)
}
