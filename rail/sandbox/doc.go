// Package sandbox is a pretend bank and the rail to it.
//
// Bank is a real HTTP server with its own books: virtual accounts, USSD codes,
// card pages, what was paid to them and what was ordered to be sent out, kept in
// one SQLite file. It takes on no more to be sent than lies there. Rail calls it over
// the network as a live rail calls its provider, and the bank tells of money by
// signed HTTP calls, so everything that goes wrong with a live bank goes wrong
// here too: it can be down, slow, answer never, tell twice, late or not at all,
// and be killed.
//
// The bank has two doors. The rail door, /bank/v1/, is Till's and needs the
// client secret. The test door, /bank/test/, plays the world: payers, weather
// and what the bank saw. It needs no secret, which is why the bank listens on
// loopback only, refuses what other sites' pages send, and dials nothing but
// loopback addresses. /card/ is the page a payer sees.
//
// The package must not know sessions' states, chats, merchants' keys or how
// Till keeps anything: Rail and Bank share no memory, only the wire.
//
// To add a live rail, copy rail.go and answer.go and make railtest pass.
package sandbox
