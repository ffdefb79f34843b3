package storetest

import (
	"net"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Pooling is what a pooler at the end of a line does with the settings that a
// connection begins with.
type Pooling int

// The ways of poolers.
const (
	NotPooled Pooling = iota
	Refusing          // says that it does not know them, as PgBouncer does
	Dropping          // leaves them out, as PgBouncer does by ignore_startup_parameters
)

// Pool puts a pooler on the line, for connections that begin from now on.
func (l *Line) Pool(p Pooling) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pooling = p
}

// greets passes on how a connection begins, and says whether it goes on.
func (p Pooling) greets(near, far net.Conn) bool {
	front := pgproto3.NewBackend(near, near)
	said, err := front.ReceiveStartupMessage()
	start, ok := said.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return false
	}
	for name := range start.Parameters {
		if name == "user" || name == "database" {
			continue
		}
		if p == Refusing {
			front.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
			return front.Flush() != nil
		}
		delete(start.Parameters, name)
	}
	bytes, err := start.Encode(nil)
	if err == nil {
		_, err = far.Write(bytes)
	}
	return err == nil
}
