package wanet

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/types"
)

const (
	keysAtFirst  = 30 // one-time keys a new phone brings
	keysWanted   = 10 // when there are fewer, it brings as many again
	typingLasts  = 25 * time.Second
	maxPoll      = 50 * time.Second
	pageMessages = 500
)

// How far a message has come.
const (
	StatusSent      = "sent"
	StatusDelivered = "delivered"
	StatusRead      = "read"
	StatusReceived  = "received"
)

// Message is one message in a phone's chats.
type Message struct {
	ID     string    `json:"id"`
	Chat   string    `json:"chat"` // the other's number
	Text   string    `json:"text"`
	FromMe bool      `json:"fromMe"`
	At     time.Time `json:"at"`
	Status string    `json:"status"` // mine: sent, delivered, read; others': received, read
	Quoted string    `json:"quoted,omitempty"`
	Fades  uint32    `json:"fades,omitempty"` // seconds that it is shown, 0 for ever
	Seq    int64     `json:"seq"`             // grows; the cursor of Messages
}

// stored is a message with what is needed to send it again.
type stored struct {
	Message
	Raw  []byte `json:"raw,omitempty"`
	Kind string `json:"kind,omitempty"`
}

// Phone is device 0 of an account: it holds real Signal sessions, answers
// receipts and retry receipts, and remembers its chats.
type Phone struct {
	a *Account
	d *Device

	mu sync.Mutex // the order of its cryptography; taken before Network.mu

	// guarded by Network.mu
	rec     phoneRecord
	msgs    []*stored
	byID    map[string]*stored
	typing  map[string]time.Time // by chat: until when
	calls   map[string]bool      // by id: whether it was rejected
	running bool
	gone    bool
	version int64
	changed chan struct{} // closed and replaced when version moves on
}

type phoneRecord struct {
	Signed   []byte `json:"signed"` // public and private half of the signed key
	NextKey  uint32 `json:"nextKey"`
	NextSeq  int64  `json:"nextSeq"`
	ByNumber bool   `json:"byNumber,omitempty"`
	// Fades are the chats whose messages disappear, by number: after how many
	// seconds.
	Fades map[string]uint32 `json:"fades,omitempty"`
}

// AddPhone gives the account its phone, or finds it there.
func (a *Account) AddPhone() (*Phone, error) {
	n := a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accounts[a.phone] != a {
		return nil, ErrNoAccount
	}
	if d := a.devices[0]; d != nil {
		if d.phone == nil {
			return nil, fmt.Errorf("%w: a client is linked as this account's phone", ErrInput)
		}
		return d.phone, nil
	}
	p := newPhone(a, &Device{a: a})
	p.rec = phoneRecord{NextKey: 1, NextSeq: 1}
	var t batch
	err := p.install(&t)
	if err == nil {
		err = n.commit(&t)
	}
	if err != nil {
		return nil, fmt.Errorf("adding the phone: %w", err)
	}
	a.devices[0] = p.d
	return p, nil
}

// install makes the phone's own keys, as the app does when it is first started.
// The caller holds Network.mu.
func (p *Phone) install(t *batch) error {
	n, id := p.a.n, p.a.identity
	signed, err := newKey(n.rand)
	if err != nil {
		return err
	}
	pub := signed.PublicKey().Bytes()
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey([32]byte(id.Bytes())), append([]byte{ecc.DjbType}, pub...))
	p.d.keys = deviceKeys{
		Identity:     id.PublicKey().Bytes(),
		Registration: uint32(binary.BigEndian.Uint16(n.random(2))&0x3FFF) + 1,
		Signed:       signedKey{ID: p.d.keys.Signed.ID + 1, Public: pub, Signature: sig[:]},
	}
	p.rec.Signed = join(pub, signed.Bytes())
	if err = p.addKeys(t); err != nil {
		return err
	}
	return p.d.save(t)
}

// Reinstall puts the account on a new phone: the number and the LID stay, all keys
// are new, linked clients are logged out, and chats begin anew.
func (p *Phone) Reinstall() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, a := p.a.n, p.a
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return ErrNoAccount
	}
	for _, d := range a.list() {
		if d.phone == nil {
			if err := d.unlink(true); err != nil {
				return err
			}
		}
	}
	id, err := newKey(n.rand)
	if err != nil {
		return err
	}
	var t batch
	for _, table := range []string{"pk", "ses", "idk", "msg", "otk"} {
		for _, key := range n.j.scan(p.table(table) + "/") {
			t.del(key)
		}
	}
	a.identity, p.d.oneTime = id, nil
	p.msgs, p.byID = nil, map[string]*stored{}
	if err = a.save(&t); err != nil {
		return err
	}
	if err = p.install(&t); err != nil {
		return err
	}
	if err = n.commit(&t); err != nil {
		return fmt.Errorf("reinstalling the phone: %w", err)
	}
	return nil
}

// AddressByNumber makes the phone write from its number instead of its LID, as
// older apps do.
func (p *Phone) AddressByNumber(on bool) error {
	n := p.a.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.gone {
		return ErrNoAccount
	}
	p.rec.ByNumber = on
	var t batch
	if err := t.putJSON(p.table("phone"), p.rec); err != nil {
		return err
	}
	return n.commit(&t)
}

// server is the addressing the phone uses. The caller holds Network.mu.
func (p *Phone) server() string {
	if p.rec.ByNumber {
		return types.DefaultUserServer
	}
	return types.HiddenUserServer
}

func newPhone(a *Account, d *Device) *Phone {
	p := &Phone{
		a: a, d: d, byID: map[string]*stored{}, typing: map[string]time.Time{}, calls: map[string]bool{}, changed: make(chan struct{}), version: 1,
	}
	d.phone = p
	return p
}

// findPhone is phoneOf for callers that hold Network.mu.
func (a *Account) findPhone() *Phone {
	if d := a.devices[0]; d != nil {
		return d.phone
	}
	return nil
}

// phoneOf returns the phone of the account, if this package runs one.
func (a *Account) phoneOf() (*Phone, bool) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	p := a.findPhone()
	return p, p != nil
}

// Account is whose phone it is.
func (p *Phone) Account() *Account { return p.a }

func (p *Phone) table(name string) string { return name + "/" + p.a.phone }

// addKeys makes one-time keys and publishes them. The caller holds Network.mu.
func (p *Phone) addKeys(t *batch) error {
	keys := make([]oneTimeKey, 0, keysAtFirst)
	for range keysAtFirst {
		k, err := newKey(p.a.n.rand)
		if err != nil {
			return err
		}
		id, pub := p.rec.NextKey, k.PublicKey().Bytes()
		p.rec.NextKey = p.rec.NextKey%0xFFFFFE + 1
		t.put(p.table("pk")+"/"+strconv.FormatUint(uint64(id), 10), join(pub, k.Bytes()))
		keys = append(keys, oneTimeKey{id: id, public: pub})
	}
	p.d.addOneTime(t, keys)
	return t.putJSON(p.table("phone"), p.rec)
}

// refill brings new one-time keys when the server is running out of them.
func (p *Phone) refill(t *batch) error {
	if p.gone || len(p.d.oneTime) >= keysWanted {
		return nil
	}
	return p.addKeys(t)
}

// loadPhones rebuilds phones and their messages from the journal.
func (n *Network) loadPhones() error {
	for _, key := range n.j.scan("phone/") {
		a := n.accounts[key[len("phone/"):]]
		if a == nil || a.devices[0] == nil {
			continue
		}
		p := newPhone(a, a.devices[0])
		if err := json.Unmarshal(n.j.get(key), &p.rec); err != nil {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		for _, mk := range n.j.scan(p.table("msg") + "/") {
			s := &stored{}
			if err := json.Unmarshal(n.j.get(mk), s); err != nil {
				return fmt.Errorf("reading %s: %w", mk, err)
			}
			p.msgs = append(p.msgs, s)
			p.byID[idKey(s.Chat, s.ID, s.FromMe)] = s
		}
	}
	return nil
}

func idKey(chat, id string, fromMe bool) string {
	return fmt.Sprintf("%s/%s/%t", chat, id, fromMe)
}

// remember adds a message to the chats, as part of the batch; the oldest one
// makes room. The caller holds Network.mu.
func (p *Phone) remember(t *batch, s *stored) error {
	s.Seq = p.rec.NextSeq
	p.rec.NextSeq++
	p.msgs = append(p.msgs, s)
	p.byID[idKey(s.Chat, s.ID, s.FromMe)] = s
	for len(p.msgs) > maxMessages {
		old := p.msgs[0]
		p.msgs = p.msgs[1:]
		delete(p.byID, idKey(old.Chat, old.ID, old.FromMe))
		t.del(p.msgKey(old))
	}
	if err := t.putJSON(p.table("phone"), p.rec); err != nil {
		return err
	}
	return p.keep(t, s)
}

// keep stores a message's new state and wakes who waits for one.
func (p *Phone) keep(t *batch, s *stored) error {
	p.stir()
	return t.putJSON(p.msgKey(s), s)
}

func (p *Phone) msgKey(s *stored) string { return p.table("msg") + fmt.Sprintf("/%016d", s.Seq) }

// retire ends the phone: its account leaves the network.
func (p *Phone) retire() {
	p.gone = true
	p.stir()
}

// Messages returns the messages after a cursor, oldest first and at most 500. If
// there are none it waits for one, at most as long as said and never over 50 s.
// next is the cursor to go on with. A status that changes later does not make a
// message new; see Message.
func (p *Phone) Messages(ctx context.Context, after int64, wait time.Duration) (items []Message, next int64, err error) {
	err = p.until(ctx, wait, func() bool {
		items = items[:0]
		for _, s := range p.msgs {
			if s.Seq > after && len(items) < pageMessages {
				items = append(items, s.Message)
			}
		}
		return len(items) > 0
	})
	next = after
	if len(items) > 0 {
		next = items[len(items)-1].Seq
	}
	return items, next, err
}

// Message finds a message by its id, for instance to see its ticks.
func (p *Phone) Message(id string) (Message, bool) {
	p.a.n.mu.Lock()
	defer p.a.n.mu.Unlock()
	return p.messageByID(id)
}

func (p *Phone) messageByID(id string) (Message, bool) {
	for _, s := range slices.Backward(p.msgs) {
		if s.ID == id {
			return s.Message, true
		}
	}
	return Message{}, false
}

// WaitStatus waits until a message of this phone has come as far as said.
func (p *Phone) WaitStatus(ctx context.Context, id, status string, wait time.Duration) (ok bool, err error) {
	err = p.until(ctx, wait, func() bool {
		m, found := p.messageByID(id)
		ok = found && m.FromMe && rank(m.Status) >= rank(status)
		return ok
	})
	return ok, err
}

// until waits for a condition on the phone's messages; it is asked under Network.mu.
func (p *Phone) until(ctx context.Context, wait time.Duration, done func() bool) error {
	n := p.a.n
	timer := time.NewTimer(min(max(wait, 0), maxPoll))
	defer timer.Stop()
	for {
		n.mu.Lock()
		ok, gone, changed := done(), p.gone, p.changed
		n.mu.Unlock()
		if ok || wait <= 0 {
			return nil
		}
		if gone {
			return ErrNoAccount
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-n.done:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("waiting for messages: %w", ctx.Err())
		}
	}
}
