package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/api/apitest"
	"till/flow/store/lite"
)

// Whatever goes wrong in a week, its merchants are told of it as the document says.
func TestTheEventsOfWeeksAreAsTheDocumentHasThem(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "api", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := apitest.Load(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	tpl := template1(t, nil)
	for seed := uint64(1); seed <= 2; seed++ {
		told, wrong := 0, map[string]bool{}
		read := map[*ledgerBook]int64{}
		look := func(w *world) {
			if w.inst == nil || w.inst.dead.Load() {
				return
			}
			for _, e := range w.book.envs {
				err := e.conn.Each(`SELECT rowid, kind, body FROM events WHERE rowid > ? ORDER BY rowid`, []any{read[e]}, func(scan lite.Scanner) error {
					var row int64
					var kind string
					var body []byte
					if err := scan(&row, &kind, &body); err != nil {
						return err
					}
					read[e], told = row, told+1
					if err := document.Webhook(body); err != nil && !wrong[kind] {
						wrong[kind] = true
						t.Errorf("seed %d: %v\n%s", seed, err, body)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
		var r Result
		inBubble(func() { r = play{seed: seed, tpl: tpl, goals: newGoals(), meddles: look}.run() })
		if r.Broken != nil {
			t.Fatalf("seed %d: %v\n%s", seed, r.Broken, strings.Join(r.Last, "\n"))
		}
		if told < 100 {
			t.Errorf("seed %d tells of %d things", seed, told)
		}
	}
}
