package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"till/flow/store"
	"till/flow/store/storetest"
)

// envWriter makes the test binary the process that is killed: the schema, the
// directory, the address and the name of its database, on lines of their own.
const envWriter = "TILL_STORE_TEST_WRITER"

// writeForEver writes and says what was acknowledged, until it is killed.
func writeForEver() {
	place := strings.Split(os.Getenv(envWriter), "\n")
	ctx := context.Background()
	db, err := store.Open(ctx, store.Config{Schema: store.Schema(place[0]), Dir: place[1], URL: place[2], Name: place[3]})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d/%d/%d", os.Getpid(), writer, i) // never used before
				err := db.Update(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, name, "kept") })
				if err != nil {
					continue
				}
				mu.Lock()
				fmt.Println(name) // straight to the pipe: what is printed was acknowledged
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		for range 3 {
			acknowledged := writeAndKill(t, c, 300)
			db, err := store.Open(t.Context(), c)
			must(t, err)
			for _, name := range acknowledged {
				if value, err := db.Setting(t.Context(), name); err != nil || value != "kept" {
					t.Errorf("%s was acknowledged and is lost (%v)", name, err)
				}
			}
			must(t, db.Close())
		}
	})
}

// writeAndKill lets another process write, kills it in the middle and returns
// everything that it said was kept.
func writeAndKill(t *testing.T, c store.Config, after int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envWriter+"="+strings.Join([]string{string(c.Schema), c.Dir, c.URL, c.Name}, "\n"))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said = append(said, lines.Text())
		if len(said) == after {
			must(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || len(said) < after {
		t.Fatalf("the writer was not killed at work: it said %d things, last %q", len(said), said[max(len(said)-1, 0):])
	}
	return said
}
