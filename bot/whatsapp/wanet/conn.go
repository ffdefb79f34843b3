package wanet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/types"
)

const (
	handshakeWait = 20 * time.Second
	// Clients ping every 20 to 30 s; one that is silent for longer is gone.
	idleWait  = 100 * time.Second
	writeWait = 30 * time.Second
	// How long a last word may travel before the line is cut. Clients lose it
	// when the line closes at once.
	lingerWait = 3 * time.Second
	maxOut     = 4096 // stanzas that wait to be written to one connection
)

// outgoing is one thing for the writer: a stanza, or an item of the queue.
type outgoing struct {
	node waBinary.Node
	item *item
	last bool // nothing is written after it, and the client should hang up
}

// conn is one websocket connection. Its reader is the HTTP handler's goroutine,
// its writer a second one.
type conn struct {
	n      *Network
	ws     *websocket.Conn
	s      *tunnel
	cancel context.CancelFunc
	wake   chan struct{}

	mu     sync.Mutex // guards out and shut; never held while taking Network.mu
	out    []outgoing
	shut   bool
	timers map[*time.Timer]struct{}

	// guarded by Network.mu
	dev         *Device
	active      bool // has asked for what waits
	inflight    int
	offlineLast int
	available   bool
	watches     map[*Account]string // presence wanted, by the addressing asked in
	link        *linking            // pairing, before there is a device
}

func (c *conn) send(node waBinary.Node) { c.push(outgoing{node: node}) }

// finish sends a last stanza and leaves it to the client to hang up.
func (c *conn) finish(node waBinary.Node) { c.push(outgoing{node: node, last: true}) }

func (c *conn) push(o outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.shut:
		return
	case len(c.out) >= maxOut:
		// Too slow. What was in its queue comes again at the next login.
		c.shut = true
		c.cancel()
		return
	}
	c.out = append(c.out, o)
	c.shut = o.last
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// later sends a stanza after a while, unless the connection is gone by then.
func (c *conn) later(wait time.Duration, f func()) {
	if wait <= 0 {
		f()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut || len(c.timers) >= maxOut {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		c.mu.Lock()
		delete(c.timers, timer)
		c.mu.Unlock()
		f()
	})
	c.timers[timer] = struct{}{}
}

// close cuts the line.
func (c *conn) close() {
	c.mu.Lock()
	c.shut = true
	for timer := range c.timers {
		timer.Stop()
	}
	clear(c.timers)
	c.mu.Unlock()
	c.cancel()
}

// write is the writer's loop. It owns the outgoing cipher.
func (c *conn) write(ctx context.Context) {
	defer c.cancel()
	for {
		c.mu.Lock()
		batch := c.out
		c.out = nil
		c.mu.Unlock()
		for _, o := range batch {
			if err := c.writeOne(ctx, o); err != nil {
				c.n.log.DebugContext(ctx, "whatsapp network: writing failed", slog.String("error", err.Error()))
				return
			}
			if o.last {
				linger(ctx)
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

// linger waits for the client to hang up.
func linger(ctx context.Context) {
	timer := time.NewTimer(lingerWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (c *conn) writeOne(ctx context.Context, o outgoing) error {
	if o.item != nil {
		return c.deliver(ctx, o.item)
	}
	raw, err := encodeNode(o.node)
	if err != nil {
		return err
	}
	return c.writeFrame(ctx, raw)
}

// writeFrame sends one frame in one websocket message: clients take a frame that
// is split over two messages for a damaged one.
func (c *conn) writeFrame(ctx context.Context, raw []byte) error {
	if c.s != nil && c.s.out != nil {
		raw = c.s.encrypt(raw)
	}
	size := len(raw)
	if size == 0 || size >= socket.FrameMaxSize {
		return fmt.Errorf("%w: a frame of %d bytes", errStanza, size)
	}
	frame := append([]byte{byte(size >> 16), byte(size >> 8), byte(size)}, raw...) //nolint:gosec // the length's bytes
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageBinary, frame); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// readMessage returns the frames of the next websocket message.
func (c *conn) readMessage(ctx context.Context, wait time.Duration, head bool) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	kind, raw, err := c.ws.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	if kind != websocket.MessageBinary {
		return nil, fmt.Errorf("%w: a text message", errStanza)
	}
	if head {
		var ok bool
		if raw, ok = bytes.CutPrefix(raw, socket.WAConnHeader); !ok {
			return nil, fmt.Errorf("%w: the stream's head is wrong", errStanza)
		}
	}
	var frames [][]byte
	for len(raw) > 0 {
		if len(raw) < socket.FrameLengthSize {
			return nil, fmt.Errorf("%w: a frame without its length", errStanza)
		}
		size := int(raw[0])<<16 | int(raw[1])<<8 | int(raw[2])
		raw = raw[socket.FrameLengthSize:]
		if size == 0 || size > len(raw) {
			return nil, fmt.Errorf("%w: a frame of %d bytes in %d", errStanza, size, len(raw))
		}
		frames = append(frames, raw[:size])
		raw = raw[size:]
	}
	return frames, nil
}

// readOne is readMessage for the handshake, whose messages have one frame.
func (c *conn) readOne(ctx context.Context, head bool) ([]byte, error) {
	frames, err := c.readMessage(ctx, handshakeWait, head)
	if err != nil {
		return nil, err
	}
	if len(frames) != 1 {
		return nil, fmt.Errorf("%w: %d frames in a handshake message", errStanza, len(frames))
	}
	return frames[0], nil
}

func (c *conn) handshake(ctx context.Context) error {
	h, err := newHandshake()
	if err != nil {
		return err
	}
	eph, err := newKey(c.n.rand)
	if err != nil {
		return err
	}
	frame, err := c.readOne(ctx, true)
	if err != nil {
		return err
	}
	reply, err := h.hello(c.n.trust, eph, frame)
	if err != nil {
		return err
	}
	if err = c.writeFrame(ctx, reply); err != nil {
		return err
	}
	if frame, err = c.readOne(ctx, false); err != nil {
		return err
	}
	c.s, err = h.finish(eph, frame)
	return err
}

// run serves the connection until it ends.
func (c *conn) run(ctx context.Context) error {
	if err := c.handshake(ctx); err != nil {
		return fmt.Errorf("shaking hands: %w", err)
	}
	if !c.n.attach(c) {
		return ErrClosed
	}
	defer c.n.detach(c)
	defer c.close()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(ctx)
	}()
	defer func() { <-written }()
	defer c.cancel()
	if err := c.n.greet(c); err != nil {
		return err
	}
	for {
		frames, err := c.readMessage(ctx, idleWait, false)
		if err != nil {
			return err
		}
		for _, frame := range frames {
			if err = c.read(ctx, frame); err != nil {
				return err
			}
		}
	}
}

// read handles one frame. A frame that does not open ends the connection, since
// nothing after it would; one that holds no stanza is only counted.
func (c *conn) read(ctx context.Context, frame []byte) error {
	raw, err := c.s.decrypt(frame)
	if err != nil {
		return err
	}
	node, err := decodeNode(raw)
	if err != nil {
		c.n.count(func(s *Stats) { s.Undecoded++ })
		c.n.log.InfoContext(ctx, "whatsapp network: a client sent no stanza", slog.String("error", err.Error()))
		return nil
	}
	if err = c.n.handle(ctx, c, node); errors.Is(err, ErrClosed) {
		return err
	} else if err != nil {
		c.n.log.InfoContext(ctx, "whatsapp network: a stanza was refused",
			slog.String("tag", node.Tag), slog.String("error", err.Error()))
	}
	return nil
}

func (n *Network) attach(c *conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.done:
		return false
	default:
	}
	n.conns[c] = struct{}{}
	return true
}

func (n *Network) detach(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
	n.unlinkRefs(c)
	d := c.dev
	if d == nil || d.conn != c {
		return
	}
	d.conn = nil
	for _, it := range d.queue {
		it.at = waiting
	}
	if c.available {
		n.spreadPresence(d.a)
	}
}

// greet tells an authenticated stream what it is: a login, or a pairing.
func (n *Network) greet(c *conn) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &c.s.payload
	if p.Username == nil {
		return n.startLinking(c, p.GetDevicePairingData())
	}
	a := n.accounts[fmt.Sprint(p.GetUsername())]
	var d *Device
	if a != nil {
		d = a.devices[uint16(p.GetDevice())] //nolint:gosec // an unknown id is refused below
	}
	if d == nil || d.phone != nil || !bytes.Equal(d.keys.Noise, c.s.static[:]) {
		c.finish(waBinary.Node{Tag: "failure", Attrs: waBinary.Attrs{"reason": 401, "location": "local"}})
		return nil
	}
	if d.conn != nil {
		d.conn.active = false
		d.conn.finish(streamErrorConflict("", "replaced"))
	}
	for _, it := range d.queue {
		it.at = waiting
	}
	c.dev, d.conn = d, c
	c.send(waBinary.Node{Tag: "success", Attrs: waBinary.Attrs{
		"t": n.now().Unix(), "lid": a.jid(types.HiddenUserServer, d.id), "location": "local",
	}})
	return nil
}
