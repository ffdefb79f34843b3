//go:build unix

package checkout_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// The sizes of the part that kills.
const (
	hookKills   = 5
	hookToKill  = 600 // payments for each life
	hookKillAt  = 150 // acknowledged payments after which the first life ends
	hookKillsBy = 60  // further ones for each later life
)

// hookLife is what a process that will be killed is told.
type hookLife struct {
	Place store.Config
	Money []flow.Notice
	Ahead time.Duration // of the clock: leases of the dead are over
}

// settleUntilKilled settles payments and acknowledges each by a line; when all
// are settled it delivers what is left, says so and ends.
func settleUntilKilled(b *testing.B) error {
	b.Helper()
	var life hookLife
	if err := json.NewDecoder(os.Stdin).Decode(&life); err != nil {
		return err
	}
	r := newHookRig(b, life.Place, func() time.Time { return time.Now().Add(life.Ahead) }, 0).run(b)
	out := os.NewFile(3, "out")
	defer out.Close()
	atOnce(b, 16, len(life.Money), func(i int) error {
		err := r.settle(b.Context(), life.Money[i])
		if err == nil {
			_, err = fmt.Fprintln(out, life.Money[i].Reference)
		}
		return err
	})
	if len(life.Money) == 0 {
		r.rest(b)
	}
	r.end()
	_, err := fmt.Fprintln(out, "over")
	return err
}

// kills has Till killed in the middle of deliveries, and counts what is lost.
func (h *hookBench) kills(b *testing.B) {
	b.Helper()
	for _, e := range h.engines {
		place := e.place()
		r := newHookRig(b, place, time.Now, 0)
		r.endpoints(b, toldOfMoney, h.sink.hook)
		r.prepare(b, toldOfMoney, hookKills*hookToKill)
		h.sink.forget(b)
		settled := map[string]bool{}
		for i := range hookKills {
			acked := h.live(b, hookLife{Place: place, Money: r.take(toldOfMoney, hookToKill)}, hookKillAt+i*hookKillsBy)
			for _, reference := range acked {
				settled[reference] = true
			}
		}
		began := time.Now()
		h.live(b, hookLife{Place: place, Ahead: 2 * time.Minute}, 0)
		h.add(time.Since(began).Seconds(), "%s revived", e.name)
		h.lose(b, e, r, settled)
		r.end()
	}
}

// live runs Till in a process of its own and kills it once so many payments are
// acknowledged; with 0 it may end by itself. It returns what was acknowledged.
func (h *hookBench) live(b *testing.B, life hookLife, until int) (acked []string) {
	b.Helper()
	cmd, in, out := hookProcess(b, "till")
	defer out.Close()
	must(b, errors.Join(json.NewEncoder(in).Encode(life), in.Close()))
	lines := bufio.NewScanner(out)
	over := false
	for lines.Scan() {
		if over = lines.Text() == "over"; over {
			break
		}
		if acked = append(acked, lines.Text()); len(acked) == until {
			must(b, cmd.Process.Signal(syscall.SIGKILL))
		}
	}
	err := cmd.Wait()
	if killed := until > 0; over == killed || err == nil == killed {
		b.Fatalf("a life of %d acknowledged payments ended with %v, after its work: %v", len(acked), err, over)
	}
	return acked
}

// lose counts what was promised and did not come, and what came twice.
func (h *hookBench) lose(b *testing.B, e *hookEngine, r *hookRig, settled map[string]bool) {
	b.Helper()
	came := h.sink.ids(b)
	lost := 0
	for reference := range settled {
		a, err := r.db.AttemptByReference(b.Context(), reference)
		must(b, err)
		list, err := r.db.Events(b.Context(), a.Session)
		must(b, err)
		if len(list) != 1 || came[string(list[0].ID)] == 0 {
			lost++
		}
	}
	twice := 0
	for _, n := range came {
		twice += n - 1
	}
	h.lost += lost
	h.add(float64(lost), "%s killed, lost", e.name)
	h.add(float64(twice), "%s killed, twice", e.name)
	h.add(float64(len(settled)), "%s killed, acknowledged", e.name)
	if lost > 0 {
		b.Errorf("%s: %d of %d payments' events are lost over %d kills", e.name, lost, len(settled), hookKills)
	}
}

// hookRiver is River, in a process of its own.
type hookRiver struct {
	n     int // jobs of a round
	lines *json.Encoder
	heard *json.Decoder
}

// startRiver builds and starts it; where that cannot be, the table says why.
func startRiver(b *testing.B, h *hookBench) *hookRiver {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "river")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..", ".bench", "river")
	if out, err := build.CombinedOutput(); err != nil {
		h.notes = append(h.notes, fmt.Sprintf("River was not measured: it could not be built: %v: %.200s", err, out))
		return nil
	}
	place := storetest.EmptyPostgres(b, store.Checkout)
	cmd := exec.CommandContext(b.Context(), binary)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	r := &hookRiver{h.engines[1].n, json.NewEncoder(in), json.NewDecoder(out)}
	doors := make([]string, hookDoors)
	for i := range doors {
		doors[i] = h.sink.hook(i)
	}
	r.ask(b, map[string]any{"Database": place.URL, "Schema": place.Name, "Hooks": doors, "Secret": hookSecret, "Body": json.RawMessage(h.bare.body)})
	return r
}

// order has jobs done and returns how many a second were.
func (r *hookRiver) order(b *testing.B, producers, n int) float64 {
	b.Helper()
	return r.ask(b, map[string]int{"Producers": producers, "N": n})
}

func (r *hookRiver) ask(b *testing.B, what any) float64 {
	b.Helper()
	var answer struct {
		Rate  float64
		Error string
	}
	if err := errors.Join(r.lines.Encode(what), r.heard.Decode(&answer)); err != nil || answer.Error != "" {
		b.Fatalf("River: %v %s", err, answer.Error)
	}
	return answer.Rate
}
