package wanet

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"google.golang.org/protobuf/encoding/protowire"
)

// Verb is what happens to one delivery.
type Verb int

// What can happen to a delivery.
const (
	Pass    Verb = iota
	Drop         // lost on this line; it comes again with the next login, or after Release
	Hold         // kept back until Release
	Dup          // delivered Copies times (twice if not given)
	Delay        // delivered After a while; others overtake it
	Corrupt      // damaged, so that it does not decrypt
	Cut          // lost, and the line with it
)

// Action is what an interceptor decides.
type Action struct {
	Do     Verb
	Copies int
	After  time.Duration
}

// Delivery is a stanza on its way to a device.
type Delivery struct {
	Class   string // message, receipt, notification
	To      string // the receiver's number
	Phone   bool   // the device is a phone of this package
	Attempt int    // from 1, since the network was opened
}

// Sent is a message that a linked client asks the server to take.
type Sent struct {
	From string // the sender's number
	To   string // the receiver's number
}

// Faults are the network's standing troubles. The zero value is good weather.
type Faults struct {
	Duplicate      bool     `json:"duplicate"`      // every message of a phone reaches linked clients twice
	DropPercent    int      `json:"dropPercent"`    // of messages to linked clients: the line breaks instead, and they come again
	CorruptPercent int      `json:"corruptPercent"` // of messages to linked clients, first attempts only
	DelayPercent   int      `json:"delayPercent"`   // of messages to linked clients
	DelayMs        int      `json:"delayMs"`
	AckDelayMs     int      `json:"ackDelayMs"` // before a linked client's message is acked; 0: as configured
	Nack           int      `json:"nack"`       // every message of linked clients is refused with this code
	SilentIQ       []string `json:"silentIq"`   // namespaces of requests that get no answer
}

const (
	maxDelayMs  = 600_000
	maxSilentIQ = 32
	maxCopies   = 16
)

func (f Faults) check() error {
	for _, p := range []int{f.DropPercent, f.CorruptPercent, f.DelayPercent} {
		if p < 0 || p > 100 {
			return fmt.Errorf("%w: a percentage is 0 to 100", ErrInput)
		}
	}
	for _, ms := range []int{f.DelayMs, f.AckDelayMs} {
		if ms < 0 || ms > maxDelayMs {
			return fmt.Errorf("%w: a delay is 0 to %d ms", ErrInput, maxDelayMs)
		}
	}
	if f.Nack < 0 || f.Nack > 999 || len(f.SilentIQ) > maxSilentIQ {
		return fmt.Errorf("%w: the nack code or the silent namespaces", ErrInput)
	}
	return nil
}

// SetFaults replaces the standing troubles.
func (n *Network) SetFaults(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
	return nil
}

// Faults returns the standing troubles.
func (n *Network) Faults() Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

// Intercept lets f decide about every delivery; nil ends that. It is called from
// many goroutines and must not wait for the network.
func (n *Network) Intercept(f func(Delivery) Action) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.intercept = f
}

// Nack lets f refuse messages of linked clients with an error code such as 463;
// 0 accepts. nil ends that. It must not call the network.
func (n *Network) Nack(f func(Sent) int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nack = f
}

// SilenceIQ leaves requests without an answer while f says so; nil ends that. It
// must not call the network.
func (n *Network) SilenceIQ(f func(xmlns string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = f
}

// roll says yes in percent of the cases. The caller holds n.mu.
func (n *Network) roll(percent int) bool {
	if percent <= 0 {
		return false
	}
	if n.dice == 0 {
		n.dice = binary.BigEndian.Uint64(n.random(8)) | 1
	}
	n.dice ^= n.dice << 13
	n.dice ^= n.dice >> 7
	n.dice ^= n.dice << 17
	return int(n.dice%100) < percent
}

// decide asks the interceptor, then the standing faults, about a delivery.
func (n *Network) decide(d *Device, it *item) Action {
	n.mu.Lock()
	f, faults, pass := n.intercept, n.faults, it.pass
	del := Delivery{Class: it.Class, To: d.a.phone, Phone: d.phone != nil, Attempt: it.attempts}
	var standing Action
	if it.Class == "message" && d.phone == nil && !pass {
		switch {
		case del.Attempt <= 3 && n.roll(faults.DropPercent): // so that it arrives at last
			standing = Action{Do: Cut}
		case del.Attempt == 1 && n.roll(faults.CorruptPercent):
			standing = Action{Do: Corrupt}
		case faults.DelayMs > 0 && n.roll(faults.DelayPercent):
			standing = Action{Do: Delay, After: time.Duration(faults.DelayMs) * time.Millisecond}
		case faults.Duplicate:
			standing = Action{Do: Dup, Copies: 2}
		}
	}
	n.mu.Unlock()
	if pass {
		return Action{}
	}
	if f != nil {
		act := f(del)
		if act.Do == Cut && del.Phone {
			act.Do = Drop // a phone has no line to cut
		}
		if act.Do != Pass {
			return act
		}
	}
	return standing
}

// befall does to a delivery what a fault demands: what arrives of it, and how many
// times, which is 0 for what is kept back. later does something after a while.
func (n *Network) befall(d *Device, it *item, later func(time.Duration, func())) (node waBinary.Node, copies int, err error) {
	act := n.decide(d, it)
	if node, err = decodeNode(it.Raw); err != nil {
		return node, 0, err
	}
	switch act.Do {
	case Pass:
	case Drop:
		n.park(d, it, false)
		return node, 0, nil
	case Hold:
		n.park(d, it, true)
		return node, 0, nil
	case Delay:
		n.park(d, it, false)
		later(act.After, func() { n.unpark(d, it) })
		return node, 0, nil
	case Cut:
		return node, 0, fmt.Errorf("%w: the line is cut on purpose", errStanza)
	case Corrupt:
		node = corrupt(node)
	case Dup:
		copies = min(max(act.Copies, 2), maxCopies)
		n.count(func(s *Stats) { s.Duplicates += int64(copies - 1) })
		return node, copies, nil
	}
	return node, 1, nil
}

// deliver writes an item of the queue, or does to it what a fault demands.
func (c *conn) deliver(ctx context.Context, it *item) error {
	node, copies, err := c.n.befall(c.dev, it, c.later)
	if err != nil || copies == 0 {
		return err
	}
	if it.offline > 0 {
		node.Attrs["offline"] = it.offline - 1
	}
	raw, err := encodeNode(node)
	if err != nil {
		return err
	}
	for range copies {
		if err = c.writeFrame(ctx, raw); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) count(f func(*Stats)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.stats)
}

// corrupt damages the checksum of a message's ciphertext and nothing else: a
// client should find that it does not decrypt, not that it does not parse.
func corrupt(node waBinary.Node) waBinary.Node {
	children := node.GetChildren()
	for i, child := range children {
		body := append([]byte{}, content(child)...)
		if child.Tag != "enc" || len(body) < 16 {
			continue
		}
		end := len(body)
		if str(child, "type") == "pkmsg" {
			end = innerEnd(body)
		}
		body[end-1] ^= 0x55
		children[i].Content = body
	}
	return node
}

// innerEnd finds where the message inside a pre-key message ends (its field 4).
func innerEnd(body []byte) int {
	for at := 1; at < len(body); {
		num, _, n := protowire.ConsumeField(body[at:])
		if n <= 0 {
			break
		}
		at += n
		if num == 4 {
			return at
		}
	}
	return len(body)
}
