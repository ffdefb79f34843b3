package wanet

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"
)

const (
	// Name is how the control API introduces itself.
	Name    = "till-network"
	maxBody = 256 << 10
)

// Info describes a network.
type Info struct {
	Name    string `json:"name"`
	RootKey string `json:"rootKey"` // hex of 32 bytes
	Stats   Stats  `json:"stats"`
	Faults  Faults `json:"faults"`
}

// PhoneInfo describes an account that has a phone, or was linked to a client.
type PhoneInfo struct {
	Phone    string `json:"phone"`
	LID      string `json:"lid"`
	PushName string `json:"pushName"`
}

// DeviceInfo describes a device: 0 is a phone, the others are linked clients.
type DeviceInfo struct {
	Phone   string `json:"phone"`
	Device  uint16 `json:"device"`
	Online  bool   `json:"online"`
	Pending int    `json:"pending"` // stanzas it has not acknowledged
	PreKeys int    `json:"preKeys"` // one-time keys left to hand out
}

// The bodies of the control API.
type (
	phoneBody struct {
		Phone    string `json:"phone"`
		PushName string `json:"pushName"`
	}
	messageBody struct {
		To    string `json:"to"`
		Text  string `json:"text"`
		Quote string `json:"quote"` // the id of a message of the chat
	}
	readBody struct {
		Chat string   `json:"chat"`
		IDs  []string `json:"ids"` // none: all that are unread
	}
	typingBody struct {
		To string `json:"to"`
		On bool   `json:"on"`
	}
	pairingBody struct {
		Phone    string `json:"phone"`
		PushName string `json:"pushName"`
		Text     string `json:"text"` // of a QR code
		Code     string `json:"code"`
	}
	deviceBody struct {
		Do   string `json:"do"`   // drop, error, replace, logout
		Code int    `json:"code"` // of error
	}
	listOf[T any] struct {
		Items      []T   `json:"items"`
		NextCursor int64 `json:"nextCursor,omitempty"`
	}
	failure struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
)

// codes names errors for the other side of the control API, in both directions.
var codes = []struct {
	err    error
	code   string
	status int
}{
	{ErrInput, "input", http.StatusBadRequest},
	{ErrNoAccount, "no_account", http.StatusNotFound},
	{ErrNoPairing, "no_pairing", http.StatusNotFound},
	{ErrPairing, "pairing_failed", http.StatusConflict},
	{ErrQueueFull, "queue_full", http.StatusTooManyRequests},
	{ErrClosed, "closed", http.StatusServiceUnavailable},
}

// control adds the control API. It can do what a hand at the phones could, so it
// answers this machine only, and no web page.
func (n *Network) control(mux *http.ServeMux) {
	routes := map[string]func(*http.Request) (any, error){
		"GET /network":                           n.getInfo,
		"GET /network/phones":                    n.getPhones,
		"POST /network/phones":                   n.postPhone,
		"DELETE /network/phones/{phone}":         n.deletePhone,
		"POST /network/phones/{phone}/messages":  n.postMessage,
		"GET /network/phones/{phone}/messages":   n.getMessages,
		"GET /network/phones/{phone}/screen":     n.getScreen,
		"POST /network/phones/{phone}/read":      n.postRead,
		"POST /network/phones/{phone}/typing":    n.postTyping,
		"POST /network/pairings":                 n.postPairing,
		"PUT /network/faults":                    n.putFaults,
		"POST /network/release":                  n.postRelease,
		"GET /network/devices":                   n.getDevices,
		"POST /network/devices/{phone}/{device}": n.postDevice,
	}
	for pattern, handle := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !isLoopback(hostOf(r.Host)) || r.Header.Get("Origin") != "" {
				http.Error(w, "this network answers its own machine only", http.StatusForbidden)
				return
			}
			out, err := handle(r)
			n.answer(w, r, out, err)
		})
	}
}

func (n *Network) answer(w http.ResponseWriter, r *http.Request, out any, err error) {
	status := http.StatusOK
	if err != nil {
		var f failure
		status = http.StatusInternalServerError
		f.Error.Code, f.Error.Message = "internal", err.Error()
		for _, c := range codes {
			if errors.Is(err, c.err) {
				status, f.Error.Code = c.status, c.code
				break
			}
		}
		out = f
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err = json.NewEncoder(w).Encode(out); err != nil {
		n.log.DebugContext(r.Context(), "whatsapp network: answering", slog.String("error", err.Error()))
	}
}

// body reads a small JSON object and nothing else. Asking for the content type
// keeps web pages out: they can not send it without being allowed to.
func body[T any](r *http.Request) (v T, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return v, fmt.Errorf("%w: send application/json", ErrInput)
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(raw) > maxBody {
		return v, fmt.Errorf("%w: the body is cut or too large", ErrInput)
	}
	if err = strict(raw, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return v, nil
}

func (n *Network) getInfo(*http.Request) (any, error) {
	root := n.RootKey()
	return Info{Name: Name, RootKey: hex.EncodeToString(root[:]), Stats: n.Stats(), Faults: n.Faults()}, nil
}

func (n *Network) getPhones(*http.Request) (any, error) {
	out := listOf[PhoneInfo]{Items: []PhoneInfo{}}
	for _, p := range n.Phones() {
		out.Items = append(out.Items, p.a.info())
	}
	return out, nil
}

func (a *Account) info() PhoneInfo {
	return PhoneInfo{Phone: a.phone, LID: a.lid, PushName: a.PushName()}
}

func (n *Network) postPhone(r *http.Request) (any, error) {
	b, err := body[phoneBody](r)
	if err != nil {
		return nil, err
	}
	p, err := n.NewPhone(b.Phone, b.PushName)
	if err != nil {
		return nil, err
	}
	return p.a.info(), nil
}

func (n *Network) deletePhone(r *http.Request) (any, error) {
	return struct{}{}, n.RemovePhone(r.PathValue("phone"))
}

// pathPhone is the phone a path names.
func (n *Network) pathPhone(r *http.Request) (*Phone, error) {
	p, ok := n.Phone(r.PathValue("phone"))
	if !ok {
		return nil, ErrNoAccount
	}
	return p, nil
}

func (n *Network) postMessage(r *http.Request) (any, error) {
	p, err := n.pathPhone(r)
	if err != nil {
		return nil, err
	}
	b, err := body[messageBody](r)
	if err != nil {
		return nil, err
	}
	if b.Quote != "" {
		return p.SendQuote(r.Context(), b.To, b.Text, b.Quote)
	}
	return p.Send(r.Context(), b.To, b.Text)
}

func (n *Network) getMessages(r *http.Request) (any, error) {
	p, err := n.pathPhone(r)
	if err != nil {
		return nil, err
	}
	var nums [2]int64
	for i, key := range []string{"after", "wait"} {
		text := r.URL.Query().Get(key)
		if text == "" {
			continue
		}
		if nums[i], err = strconv.ParseInt(text, 10, 64); err != nil || nums[i] < 0 || i == 1 && nums[i] > 3600 {
			return nil, fmt.Errorf("%w: %s is a number", ErrInput, key)
		}
	}
	out := listOf[Message]{Items: []Message{}}
	items, next, err := p.Messages(r.Context(), nums[0], time.Duration(nums[1])*time.Second)
	out.Items, out.NextCursor = append(out.Items, items...), next
	return out, err
}

func (n *Network) postRead(r *http.Request) (any, error) {
	p, err := n.pathPhone(r)
	if err != nil {
		return nil, err
	}
	b, err := body[readBody](r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, p.MarkRead(r.Context(), b.Chat, b.IDs...)
}

func (n *Network) postTyping(r *http.Request) (any, error) {
	p, err := n.pathPhone(r)
	if err != nil {
		return nil, err
	}
	b, err := body[typingBody](r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, p.Typing(r.Context(), b.To, b.On)
}

func (n *Network) postPairing(r *http.Request) (any, error) {
	b, err := body[pairingBody](r)
	if err != nil {
		return nil, err
	}
	if (b.Text == "") == (b.Code == "") {
		return nil, fmt.Errorf("%w: give either the text of a QR code or a code", ErrInput)
	}
	a, err := n.AddAccount(b.Phone, b.PushName)
	if err != nil {
		return nil, err
	}
	if b.Text != "" {
		err = a.ScanQR(b.Text)
	} else {
		err = a.EnterCode(b.Code)
	}
	return a.info(), err
}

func (n *Network) putFaults(r *http.Request) (any, error) {
	f, err := body[Faults](r)
	if err != nil {
		return nil, err
	}
	return f, n.SetFaults(f)
}

func (n *Network) postRelease(*http.Request) (any, error) {
	n.Release()
	return struct{}{}, nil
}

func (n *Network) getDevices(*http.Request) (any, error) {
	out := listOf[DeviceInfo]{Items: []DeviceInfo{}}
	for _, a := range n.Accounts() {
		for _, d := range a.Devices() {
			out.Items = append(out.Items, DeviceInfo{
				Phone: a.phone, Device: d.id, Online: d.Online(), Pending: d.Pending(""), PreKeys: d.PreKeys(),
			})
		}
	}
	return out, nil
}

func (n *Network) postDevice(r *http.Request) (any, error) {
	b, err := body[deviceBody](r)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseUint(r.PathValue("device"), 10, 16)
	a, ok := n.Account(r.PathValue("phone"))
	if err != nil || !ok {
		return nil, ErrNoAccount
	}
	d, ok := a.Device(uint16(id))
	if !ok {
		return nil, ErrNoAccount
	}
	switch b.Do {
	case "drop":
		d.Drop()
	case "error":
		d.StreamError(b.Code)
	case "replace":
		d.Replace()
	case "logout":
		err = d.Logout()
	default:
		err = fmt.Errorf("%w: do is drop, error, replace or logout", ErrInput)
	}
	return struct{}{}, err
}
