package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
)

func TestEventsOfASessionWithoutAChargeSayNullWhereThereIsNothingYet(t *testing.T) {
	d := openDesk(t)
	d.listens(flow.SessionCreated, flow.InstructionsIssued, flow.ChargeFailed, flow.ChargeUnderpaid, flow.ChargeSuccess)
	id := d.session("")
	hears := func(kind flow.EventKind, want ...string) reply {
		t.Helper()
		r := d.told(`"event":"` + string(kind) + `"`)
		for _, w := range want {
			if !strings.Contains(r.body, w) {
				t.Errorf("want %s in %s", w, r.body)
			}
		}
		return r
	}
	hears(flow.SessionCreated, `"reference":null`, `"data":{"id":"`+id+`"`)
	attempt := d.ask("POST", sessions+"/"+id+"/pay/card", d.key, "").text("data.attemptId")
	hears(flow.InstructionsIssued, `"reference":"wsp_ref_`)
	d.want(d.call("POST", "/v1/test/cards/"+attempt+"/complete", d.key, `{"outcome":"declined"}`), http.StatusOK, nil)
	hears(flow.ChargeFailed, `"reference":"wsp_ref_`, `"data":{"id":null,"sessionId":"`+id+`"`, `"serviceReference":"wsp_ref_`)
	account := d.ask("POST", sessions+"/"+id+"/pay/bank-transfer", d.key, "").text("data.accountNumber")
	d.want(d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`","amount":200000}`), http.StatusOK, nil)
	hears(flow.ChargeUnderpaid, `"data":{"id":null,`)
	d.want(d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`","amount":300000}`), http.StatusOK, nil)
	paid := hears(flow.ChargeSuccess, `"data":{"id":"wsp_chg_`)
	d.want(d.call("GET", chargesPath+"/"+paid.text("data.id"), d.key, ""), http.StatusOK, map[string]string{"data.sessionId": id})
}

// What is made is kept to the millisecond. A bound between two of them is one all the
// same: what was made before it is before it.
func TestABoundBetweenTwoMillisecondsDividesWhatWasMadeBeforeItFromTheRest(t *testing.T) {
	d := openDesk(t)
	id := d.endpoint(d.key, d.catches().url, "session.created").text("data.id")
	d.want(d.call("POST", sessions, d.key, good), http.StatusCreated, nil)
	d.stands(d.newest(), "DELIVERED", "1")
	made := func(path string) time.Time {
		t.Helper()
		at, err := time.Parse(time.RFC3339, d.call("GET", path, d.key, "").text("data.items.0.createdAt"))
		must(t, err)
		return at
	}
	finer := func(at time.Time) string { return at.Format(time.RFC3339Nano) }
	for _, path := range []string{eventsPath, sessions} {
		at := made(path)
		for bound, before := range map[string]bool{
			flow.Stamp(at): false, finer(at.Add(time.Nanosecond)): true, finer(at.Add(500 * time.Microsecond)): true, flow.Stamp(at.Add(time.Millisecond)): true,
		} {
			for query, want := range map[string]bool{"?createdBefore=": before, "?createdAfter=": !before} {
				if got := d.call("GET", path+query+bound, d.key, "").text("data.items.0.id") != ""; got != want {
					t.Errorf("%s%s%s lists what was made at %s: %v", path, query, bound, flow.Stamp(at), got)
				}
			}
		}
	}
	at := made(eventsPath)
	half, next := finer(at.Add(500*time.Microsecond)), flow.Stamp(at.Add(time.Millisecond))
	for _, c := range []struct{ from, to, kept, count string }{
		{flow.Stamp(at.Add(-time.Second)), half, next, "1"},
		{half, next, next, "0"},
		{finer(at.Add(time.Microsecond)), half, next, "0"},
	} {
		d.want(d.call("POST", endpointsPath+"/"+id+"/replay", d.key, fmt.Sprintf(`{"from":%q,"to":%q}`, c.from, c.to)), http.StatusOK,
			map[string]string{"data.count": c.count, "data.to": c.kept})
	}
}
