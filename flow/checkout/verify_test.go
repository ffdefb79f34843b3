package checkout_test

import (
	"context"
	"fmt"
	"testing"

	"till/flow"
	"till/flow/checkout"
)

// However many people are asked about at once, 128 look-ups are at work at most, each
// with a number that is kept nowhere but in memory. Whoever asks for one more is told to
// wait, nothing is kept of it, and a place that becomes free is theirs. One project has
// no more of them than are left for the others.
func TestSoManyLookUpsAreAtWorkAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	const most = 128
	w := one(t)
	release := make(chan struct{})
	w.rail.mu.Lock()
	w.rail.onLookUp = func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.rail.mu.Unlock()
	v, err := checkout.NewVerifications(w.service, "a pepper of sixteen")
	w.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	defer func() {
		cancel()
		w.must(<-ended)
	}()
	number, ok := flow.ReadIdentityNumber("22222222221")
	if !ok {
		t.Fatal("no number")
	}
	asks := func(of flow.ProjectID) (id flow.VerificationID, err error) {
		var made checkout.Made
		c := call("", "", &made)
		c.Project = of
		_, err = v.Begin(t.Context(), checkout.NewVerification{
			Key: "key_1", Type: flow.BVN, Number: number, FirstName: "Ada", LastName: "Obi", Purpose: "Account opening",
		}, c)
		return made.Verification.ID, err
	}
	last := flow.VerificationID("")
	for range most / 2 {
		last, err = asks(project)
		w.must(err)
	}
	if id, err := asks(project); flow.CodeOf(err) != flow.CodeRateLimited || id != "" {
		t.Fatalf("one more of one project is %q, %v", id, err)
	}
	for i := range most / 2 {
		_, err = asks(flow.ProjectID(fmt.Sprintf("wsp_prj_other_%d", i)))
		w.must(err)
	}
	if id, err := asks("wsp_prj_more"); flow.CodeOf(err) != flow.CodeRateLimited || id != "" {
		t.Fatalf("one more is %q, %v", id, err)
	}
	close(release)
	w.until("a place becomes free", func() bool {
		one, err := v.Verification(t.Context(), project, last)
		w.must(err)
		return one.Status != flow.VerificationPending
	})
	w.until("one more is taken", func() bool { _, err := asks(project); return err == nil })
}
