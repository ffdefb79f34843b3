// Package api is Till's front door for merchants: REST over HTTP, and in
// development the page that plays a payer's phone.
//
// It translates. A request becomes a value that was checked field by field, a
// command of package checkout decides and saves, and the outcome becomes an
// envelope. It keeps nothing, decides nothing about money, and calls no bank.
//
// It must not know the bot or its words, how webhooks are signed and sent, how
// WhatsApp works, or any single bank: the pretend bank and the pretend phones
// reach it as small values in Config, and a bank's notices by the name their
// rail was given there.
//
// Its trap: fiber hands out strings that live in the connection's buffer, and
// decodes bodies by itself. So Immutable is on, bodies are read raw, and
// nothing in this package touches fiber's parsers: decode.go is the only reader
// of bodies and guard.go judges a request before fiber routes it.
package api
