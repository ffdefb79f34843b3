// Package hooks delivers events to merchants: it signs a body the way Standard
// Webhooks says, posts it to one endpoint and returns a verdict.
//
// An endpoint is an address a stranger typed in, so nothing of it is trusted:
// neither where its name leads (guard.go judges every address at the moment it
// is dialled), nor how long, how much or what it answers (sender.go and wire.go
// bound all of it).
//
// The package must not know what an event means, who the merchant is, how often
// was tried before or where deliveries are kept. It reads no clock of its own
// and keeps nothing but open connections and what opens the next one sooner.
// schedule.go only says how long to wait; whoever keeps the deliveries does the
// waiting.
package hooks
