package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/nyaruka/phonenumbers"

	"till/flow"
)

// The bounds of a pretend phone's calls.
const (
	maxMessage = 4096
	maxWait    = 30 // seconds
	maxAfter   = 100
)

// Phones are pretend phones on the local WhatsApp network. Their errors for a
// phone that is not there have the code resource_not_found.
type Phones interface {
	// Create switches a phone on; "" for a number of the network's choice.
	// Creating one that is there returns it as it is.
	Create(ctx context.Context, phone flow.Phone, pushName string) (Phone, error)
	// List is every phone, oldest first.
	List(ctx context.Context) ([]Phone, error)
	// Send writes to the bot from a phone; quoted is the id of the message that it
	// answers to, "" for none.
	Send(ctx context.Context, phone flow.Phone, text, quoted string) (Message, error)
	// Screen is what a phone shows of its chat with the bot. While that is still
	// the version seen, it waits for a change or until wait is over.
	Screen(ctx context.Context, phone flow.Phone, seen int64, wait time.Duration) (Screen, error)
	// MarkRead tells the bot that what it wrote was read.
	MarkRead(ctx context.Context, phone flow.Phone) error
	// Messages are those of a phone's chat with the bot after a cursor, oldest
	// first, "" for the beginning, and the cursor for the next call. It waits
	// until there is one, or wait is over: none is no error.
	Messages(ctx context.Context, phone flow.Phone, after string, wait time.Duration) (messages []Message, next string, err error)
	// Delete takes a phone off the network for good.
	Delete(ctx context.Context, phone flow.Phone) error
}

// Phone is one pretend phone.
type Phone struct {
	Number   flow.Phone
	PushName string
}

// Message is one bubble of the chat, seen from the phone.
type Message struct {
	ID     string
	Text   string
	FromMe bool // written on the phone
	At     time.Time
	Status string // sent, delivered, read; received for what the bot wrote
	Quoted string // the id of the message that it answers to, "" for none
}

// Screen is what a phone shows of its chat with the bot.
type Screen struct {
	Version  int64     // another one whenever something on it changed
	Messages []Message // the newest, oldest first
	Typing   bool      // the bot writes
}

type phoneRecord struct {
	Phone     string `json:"phone"`
	PushName  string `json:"pushName"`
	CreatedAt string `json:"createdAt,omitempty"` // when the project took it
}

type messageRecord struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	FromMe bool   `json:"fromMe"`
	At     string `json:"at"`
	Status string `json:"status"`
}

func recordPhone(p Phone) phoneRecord {
	return phoneRecord{Phone: "+" + string(p.Number), PushName: p.PushName}
}

func recordMessage(m Message) messageRecord {
	return messageRecord{ID: m.ID, Text: m.Text, FromMe: m.FromMe, At: flow.Stamp(m.At), Status: m.Status}
}

func (s *Server) phones() (Phones, error) {
	if s.cfg.Phones == nil {
		return nil, flow.Refuse(flow.CodeTestOnly, "This server has no pretend phones: it is on the real WhatsApp network.")
	}
	return s.cfg.Phones, nil
}

// onePhone is the phone of the path.
func (s *Server) onePhone(c *call) (Phones, flow.Phone, error) {
	phones, err := s.phones()
	if err != nil {
		return nil, "", err
	}
	number, ok := readPhone(c.param("phone"), phonenumbers.IsPossibleNumber)
	if !ok {
		return nil, "", flow.Refuse(flow.CodeNotFound, "There is no such phone.")
	}
	if c.project.ID != "" { // the phone page has no key: it sees the phones of this machine
		if _, err := c.service.OwnPhone(c.ctx, c.project.ID, number); err != nil {
			return nil, "", err
		}
	}
	return phones, number, nil
}

// addPhone is POST /v1/test/phones.
func (s *Server) addPhone(c *call) error {
	phones, err := s.phones()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	var number flow.Phone
	if given := f.text("phone", text{most: maxPhoneChars, code: flow.CodeInvalidPhone}); given != "" {
		var ok bool
		if number, ok = readPhone(given, phonenumbers.IsPossibleNumber); !ok {
			f.fail("phone", flow.CodeInvalidPhone, "phone must be a phone number, such as 08031234567 or +2348031234567.")
		}
	}
	name := f.text("pushName", text{most: maxName, said: true})
	if err := f.done(); err != nil {
		return err
	}
	if number != "" && c.project.ID != "" { // before another project's is touched
		if err := c.service.ClaimPhone(c.ctx, c.project.ID, number); err != nil {
			return err
		}
	}
	made, err := phones.Create(c.ctx, number, name)
	if err != nil {
		return err
	}
	record := recordPhone(made)
	if c.project.ID != "" {
		if err := c.service.ClaimPhone(c.ctx, c.project.ID, made.Number); err != nil {
			return err
		}
		since, err := c.service.OwnPhone(c.ctx, c.project.ID, made.Number)
		if err != nil {
			return err
		}
		record.CreatedAt = flow.Stamp(since)
	}
	return c.send(http.StatusCreated, record)
}

// listPhones is GET /v1/test/phones.
func (s *Server) listPhones(c *call) error {
	phones, err := s.phones()
	if err != nil {
		return err
	}
	all, err := phones.List(c.ctx)
	if err != nil {
		return err
	}
	records := make([]phoneRecord, 0, len(all))
	for _, p := range all {
		record := recordPhone(p)
		if c.project.ID != "" {
			since, err := c.service.OwnPhone(c.ctx, c.project.ID, p.Number)
			if flow.CodeOf(err) == flow.CodeNotFound {
				continue
			}
			if err != nil {
				return err
			}
			record.CreatedAt = flow.Stamp(since)
		}
		records = append(records, record)
	}
	return c.send(http.StatusOK, page{Items: records})
}

// typeMessage is POST /v1/test/phones/{phone}/messages. Card numbers pass: what
// the bot does with one is the very thing to be tried out.
func (s *Server) typeMessage(c *call) error {
	phones, number, err := s.onePhone(c)
	if err != nil {
		return err
	}
	f := c.form(decodeRules{chat: true})
	words, quoted := f.text("text", text{required: true, most: maxMessage, multiline: true}), ""
	if c.project.ID == "" { // the phone page alone
		quoted = f.text("quoted", text{most: maxAfter})
	}
	if err := f.done(); err != nil {
		return err
	}
	c.began = true
	sent, err := phones.Send(c.ctx, number, words, quoted)
	if err != nil {
		return err
	}
	return c.send(http.StatusCreated, recordMessage(sent))
}

// readMessages is GET /v1/test/phones/{phone}/messages, a long poll.
func (s *Server) readMessages(c *call) error {
	phones, number, err := s.onePhone(c)
	if err != nil {
		return err
	}
	q := c.query()
	after, seconds := q.text("after", maxAfter), q.whole("wait", 0, maxWait, 0)
	if err := q.done(); err != nil {
		return err
	}
	ctx, cancel := s.waiting(c.ctx)
	defer cancel()
	messages, next, err := phones.Messages(ctx, number, after, time.Duration(seconds)*time.Second)
	if err != nil && ctx.Err() == nil { // a server that closes answers with what there is: nothing
		return err
	}
	records := make([]messageRecord, 0, len(messages))
	for _, m := range messages {
		records = append(records, recordMessage(m))
	}
	return c.send(http.StatusOK, map[string]any{"items": records, "nextCursor": cmp.Or(next, after)})
}

// removePhone is DELETE /v1/test/phones/{phone}.
func (s *Server) removePhone(c *call) error {
	phones, number, err := s.onePhone(c)
	if err != nil {
		return err
	}
	if err := phones.Delete(c.ctx, number); err != nil {
		return err
	}
	if c.service != nil {
		if err := c.service.ReleasePhone(c.ctx, number); err != nil {
			return err
		}
	}
	return c.send(http.StatusOK, map[string]any{"phone": "+" + string(number), "deleted": true})
}

// readPairing is GET /v1/test/whatsapp/pairing: what a phone scans to become
// the bot's.
func (s *Server) readPairing(c *call) error {
	out := map[string]any{"waiting": false, "pairing": nil}
	if s.cfg.TestPairing != nil {
		if words, waiting := s.cfg.TestPairing(); waiting {
			out = map[string]any{"waiting": true, "pairing": words}
		}
	}
	return c.send(http.StatusOK, out)
}
