// Package meter is what an operator watches: it counts what the other packages
// tell it, reads what only the store knows, and shows all of it to Prometheus.
//
// The packages that do the work know none of this: each has a function or an
// interface of its own that is called when something happened (store.Config.Commits,
// api.Config.Answering, checkout.Meter), and this package stands behind them. It is
// the only one that knows Prometheus.
//
// It must not keep anything that names a person, a merchant or a session: a label
// is a word of the program's own, so that the number of series has a bound however
// many merchants there are. Nothing here is money; the ledger is. What Prometheus
// keeps are floats, which hold every kobo exactly up to 90 trillion naira.
//
// Nothing is asked of the store while somebody scrapes: Watch reads it in the
// background, within bounds, and what it read last is what is shown.
package meter
