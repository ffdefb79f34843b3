package checkout_test

import (
	"context"
	"net/http"
	"testing"

	"till/flow"
)

// What ends while the store is away is kept together: a success beside a 410 does
// not take that back.
func TestAnEndpointThatIsGoneIsGoneWhateverElseItAnswers(t *testing.T) {
	t.Parallel()
	w, line, e := faraway(t, 0)
	verdicts := make(chan flow.Verdict)
	w.posting(func(context.Context, flow.Delivery) flow.Verdict { return <-verdicts })
	for range 3 {
		w.session(flow.Headless)
	}
	w.until("three to be under way", func() bool { return w.to(e.ID) == 3 })
	line.Cut()
	ends := func(v flow.Verdict, left int) {
		verdicts <- v
		w.until("it to be over", func() bool { return w.service.Deliveries().Sending == left })
	}
	ends(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}, 2)
	w.until("the store to have refused that", func() bool { return w.service.Deliveries().StoreRefusals > 0 })
	ends(flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}, 1)
	ends(flow.Verdict{OK: true, Status: http.StatusOK}, 0)
	line.Mend()
	w.until("all to be kept", func() bool { return w.service.Deliveries().NotYetKept == 0 })
	var is flow.Endpoint
	w.until("the store to read", func() (read bool) { // not by a connection that was cut
		var err error
		is, err = w.db.EndpointByID(t.Context(), e.ID)
		return err == nil
	})
	if is.Status != flow.EndpointDisabled || is.DisabledReason != flow.DisabledGone {
		t.Errorf("it is %+v", is)
	}
}

// An endpoint that says so just as the program ends has said it: the next start does
// not ask again.
func TestAnEndpointThatIsGoneAsTheProgramEndsIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		begun := make(chan bool)
		w.posting(func(ctx context.Context, _ flow.Delivery) flow.Verdict {
			begun <- true
			<-ctx.Done()
			return flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}
		})
		w.session(flow.Headless)
		<-begun
		w.end()
		w.posting(nil)
		w.start(false)
		w.rest()
		if is := w.endpointIs(e.ID); is.DisabledReason != flow.DisabledGone || w.to(e.ID) != 1 {
			t.Errorf("after %d posts it is %+v", w.to(e.ID), is)
		}
	})
}
