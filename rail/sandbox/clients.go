package sandbox

import "slices"

// maxAddresses is how many processes of one Till are told of: those that
// registered last.
const maxAddresses = 8

// registered is a client as it is kept: with where else it listens.
type registered struct {
	client

	// Others are the addresses of its other processes, those first that are to be
	// tried first.
	Others []string `json:"others,omitempty"`
}

// addresses are all that there are, in the order in which they are tried.
func (r registered) addresses() []string { return append([]string{r.NotifyURL}, r.Others...) }

// knows says whether who is told first by now was told of already: else somebody
// registered meanwhile, who does not wait for what failed before.
func (r registered) knows(now registered) bool {
	return r.Secret == now.Secret && slices.Contains(r.addresses(), now.NotifyURL)
}

// and is what is kept when one registers: a new one is tried first. One that is kept
// keeps its place, for it may only ask again after an answer that came too late for it.
// One with another secret is another Till, which takes the place of this one.
func (r registered) and(c client) registered {
	switch {
	case r.Secret != c.Secret:
		return registered{client: c}
	case slices.Contains(r.addresses(), c.NotifyURL):
		return r
	}
	others := r.addresses()
	return registered{client: c, Others: others[:min(len(others), maxAddresses-1)]}
}

// follow keeps in which order the addresses of a client are tried from now on, if
// nobody registered meanwhile.
func (b books) follow(was, is registered) error {
	if slices.Equal(was.addresses(), is.addresses()) {
		return nil
	}
	now, err := b.client()
	if err != nil || now.Secret != was.Secret || !slices.Equal(now.addresses(), was.addresses()) {
		return err
	}
	return b.set("client", is)
}
