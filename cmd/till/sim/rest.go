package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing/synctest"

	"github.com/valyala/fasthttp"
)

// request is one call of a merchant.
type request struct {
	method, path, key, body string
	once                    string // the Idempotency-Key, "" for none
	header                  map[string]string
}

// reply is what was answered. Status 0 is none: the process died.
type reply struct {
	status int
	body   string
	data   map[string]any // of a success
	code   string         // of a refusal
	again  bool           // it may be asked for again, and is answered anew then
	fields []string       // the codes of its fields
	header map[string]string
}

// text is a value of the answer's data by its path, "" where there is none.
func (r reply) text(path string) string {
	var at any = r.data
	for name := range strings.SplitSeq(path, ".") {
		set, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = set[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}

// caller is where merchants call from.
var caller = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40_000}

// do sends a request through the whole server, without a network.
func (i *instance) do(r request) reply {
	var wire bytes.Buffer
	fmt.Fprintf(&wire, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n", r.method, r.path)
	header := map[string]string{"Authorization": "", "Content-Type": "", "Idempotency-Key": r.once}
	if r.key != "" {
		header["Authorization"] = "Bearer " + r.key
	}
	if r.body != "" || r.method == http.MethodPost && r.path == noticePath {
		header["Content-Type"] = "application/json"
	}
	maps.Copy(header, r.header)
	for _, name := range sorted(header) {
		if header[name] != "" {
			fmt.Fprintf(&wire, "%s: %s\r\n", name, header[name])
		}
	}
	fmt.Fprintf(&wire, "Content-Length: %d\r\n\r\n%s", len(r.body), r.body)
	var c fasthttp.RequestCtx
	c.Init(&fasthttp.Request{}, caller, nil)
	if err := c.Request.ReadLimitBody(bufio.NewReaderSize(&wire, 16<<10), 64<<10); err != nil { // as the server itself refuses what is too large
		return reply{status: http.StatusRequestEntityTooLarge, code: "payload_too_large"}
	}
	i.handler(&c)
	out := reply{status: c.Response.StatusCode(), body: string(c.Response.Body()), header: map[string]string{}}
	for _, name := range []string{"Idempotent-Replayed", "Retry-After"} {
		out.header[name] = string(c.Response.Header.Peek(name))
	}
	var envelope struct {
		Data  map[string]any `json:"data"`
		Error struct {
			Code      string `json:"code"`
			Retryable bool   `json:"retryable"`
			Fields    []struct {
				Code string `json:"code"`
			} `json:"fields"`
		} `json:"error"`
	}
	if json.Unmarshal(c.Response.Body(), &envelope) == nil {
		out.data, out.code, out.again = envelope.Data, envelope.Error.Code, envelope.Error.Retryable
		for _, f := range envelope.Error.Fields {
			out.fields = append(out.fields, f.Code)
		}
	}
	return out
}

// ask makes a call while the world goes on; then is done by the scheduler with
// what was answered, status 0 where the process died first. name is what the
// trace calls it.
func (w *world) ask(name string, r request, then func(reply)) {
	i := w.inst
	if name := r.key + r.once; r.once != "" {
		if _, again := w.firstAsked[name]; !again {
			w.firstAsked[name] = w.age()
		} else if !w.acknowledged(r) {
			w.twice[name] = true
		}
	}
	w.goes(i, func() {
		out := i.do(r)
		if i.dead.Load() {
			out = reply{}
		}
		w.soon(0, "answer "+name, func() {
			w.answered(name, r, out)
			if then != nil {
				then(out)
			}
		})
	})
}

// goes has something begin by itself, up to where it waits for something: what
// begins at one moment does so in one order.
func (w *world) goes(i *instance, do func()) {
	i.work.Go(func() {
		deepen()
		do()
	})
	synctest.Wait()
}

// answered takes in what was answered to a call.
func (w *world) answered(name string, r request, out reply) {
	if out.status == 0 {
		w.saw("%s: cut off", name)
		return
	}
	w.saw("%s: %d %s", name, out.status, out.code)
	if out.code != "" {
		w.goals.Codes[out.code]++
	}
	for _, code := range out.fields {
		w.goals.Codes[code]++
	}
	if out.status >= 500 && (out.code == "internal_error" || out.code == "") {
		w.breaks("sim", "%s: %d %s", name, out.status, out.body)
	}
	w.acked(name, r, out)
}
