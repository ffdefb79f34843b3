package sim

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestOne(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	n, _ := strconv.Atoi(os.Getenv("N"))
	dir, err := place()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var tpl *template
	synctest.Test(t, func(t *testing.T) {
		if tpl, err = makeTemplate(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	})
	g := newGoals()
	for i := range max(n, 1) {
		var r Result
		began := time.Now()
		synctest.Test(t, func(t *testing.T) {
			out := os.Stdout
			if n > 0 {
				out = nil
			}
			if out == nil {
				r = simulate(seed+uint64(i), tpl, nil, g)
			} else {
				r = simulate(seed, tpl, out, g)
			}
		})
		t.Log(r.Seed, r.Steps, r.Sessions, r.Crashes, r.Hash[:8], r.Broken, time.Since(began))
	}
}
