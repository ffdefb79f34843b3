// Package wanet is a WhatsApp network that lives on this machine: a server that
// speaks WhatsApp's own protocol (Noise, binary stanzas, Signal keys) to an
// unmodified client library, and phones that hold real Signal sessions with it.
//
// It exists so that a bot can be developed and tested against everything but
// WhatsApp's servers: pairing, login, delivery with acks, receipts, retry
// receipts, an offline queue, phone-number and LID addressing, presence, and on
// demand the ways in which all of that goes wrong.
//
// # How it hangs together
//
// A [Network] has [Account]s. An account is a phone number with its lasting
// hidden id (LID) and up to 256 [Device]s: device 0 is the [Phone], run by this
// package with libsignal, the others are linked clients that connect from
// outside. The server only routes: message bodies are opaque to it, and only the
// phones hold the keys to read them.
//
// Every device has an ordered queue of stanzas that stay until the device has
// acknowledged them, so delivery is at least once. With a file, everything that
// must outlive the process is in the journal before it is acknowledged to
// anybody: queues, keys, phones with their sessions and messages. A process that
// is killed and started again finds bots, phones and chats as they were.
//
// One mutex guards the state of the network; a phone has its own for the order
// of its cryptography and takes it first. Connections are written by their own
// goroutine from a bounded queue, so that a slow client holds up nobody.
//
// # What it must not know
//
// It knows nothing of payments, sessions, banks or words: it carries messages.
// It listens on loopback only and contains no code that dials out. It is not for
// production: nothing outside tests and local development may import it.
package wanet
