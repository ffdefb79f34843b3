package hooks_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is what a name server knows.
type zone func(dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode)

// resolver asks a real name server that is reached through a pipe, so that no
// question ever leaves the process.
func resolver(z zone) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			for serveName(ours, z) == nil {
			}
		}()
		return theirs, nil
	}}
}

// mute asks a name server that never answers, as long as the test runs.
func mute(t *testing.T) *net.Resolver {
	t.Helper()
	over, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		context.AfterFunc(over, func() { ours.Close() })
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		return theirs, over.Err()
	}}
}

// names answers for every name: the first question gets the first address, the
// second the second, the last is repeated. Without addresses no name exists.
func names(addresses ...string) (*net.Resolver, *atomic.Int32) {
	asked := new(atomic.Int32)
	return resolver(func(q dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) {
		if len(addresses) == 0 {
			return nil, dnsmessage.RCodeNameError
		}
		if q.Type != dnsmessage.TypeA {
			return nil, dnsmessage.RCodeSuccess
		}
		n := min(int(asked.Add(1)), len(addresses))
		return records(q, q.Name, addresses[n-1]), dnsmessage.RCodeSuccess
	}), asked
}

// leads answers for every name with all of the addresses at once.
func leads(addresses ...string) *net.Resolver {
	return resolver(func(q dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) {
		return records(q, q.Name, addresses...), dnsmessage.RCodeSuccess
	})
}

// chain answers for every name with a chain of other names, the last of which
// has the addresses.
func chain(links int, addresses ...string) *net.Resolver {
	return resolver(func(q dnsmessage.Question) (answers []dnsmessage.Resource, _ dnsmessage.RCode) {
		owner := q.Name
		for i := range links {
			next := dnsmessage.MustNewName(fmt.Sprintf("link%d.example.net.", i))
			answers = append(answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: owner, Type: dnsmessage.TypeCNAME, Class: q.Class},
				Body:   &dnsmessage.CNAMEResource{CNAME: next},
			})
			owner = next
		}
		return append(answers, records(q, owner, addresses...)...), dnsmessage.RCodeSuccess
	})
}

// records are those of the addresses that are of the family asked for. They may
// be kept for no time at all.
func records(q dnsmessage.Question, owner dnsmessage.Name, addresses ...string) []dnsmessage.Resource {
	var all []dnsmessage.Resource
	for _, text := range addresses {
		a := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: owner, Type: q.Type, Class: q.Class, TTL: 0}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			all = append(all, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			all = append(all, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return all
}

// serveName answers one question in the framing of DNS over TCP.
func serveName(c net.Conn, z zone) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, packet); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return err
	}
	if len(m.Questions) != 1 {
		return fmt.Errorf("%d questions", len(m.Questions))
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	m.Answers, m.RCode = z(m.Questions[0])
	packed, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...))
	return err
}
