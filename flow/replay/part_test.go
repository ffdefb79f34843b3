package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/replay"
)

// bola is a second merchant's session, of which the payer of the first speaks
// too.
func bola() (flow.SessionID, flow.Checkout) {
	co := session()["wsp_sess_1"]
	co.Session.ID, co.Session.Merchant, co.Session.Project = "wsp_sess_2", "Bola Foods", "wsp_prj_2"
	return co.Session.ID, co
}

// What is left of a shared chat for one merchant holds nothing of the other's,
// and a chat that is not shared is left whole.
func TestAPartOfAChatHoldsOneMerchantsPaymentsAlone(t *testing.T) {
	id, other := bola()
	both := session()
	both[id] = other
	ada := both["wsp_sess_1"]
	ada.Attempts = append(slices.Clone(ada.Attempts), flow.Attempt{ID: "a_9", Chat: "chat_9"})
	both["wsp_sess_1"] = ada
	rec := taped(t,
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansCode, Code: "7K3M9QTX"}, ByCode: "wsp_sess_1", Checkouts: session()},
		flow.Turn{Heard: &flow.Intent{Kind: flow.MeansCode, Code: "8K3M9QTX", Text: "the shoes"}, ByCode: id, Checkouts: both, Kin: []flow.ChatID{"chat_9"}},
	)
	for i := range rec.Lines {
		rec.Lines[i].Session = "wsp_sess_1"
		if i >= len(rec.Lines)/2 {
			rec.Lines[i].Session = id
		}
	}
	alone := replay.Recording{Chat: rec.Chat, Lines: rec.Lines[:len(rec.Lines)/2]}
	for _, side := range []struct {
		own    flow.SessionID
		hidden []string
		shown  string
	}{
		{"wsp_sess_1", []string{"wsp_sess_2", "Bola Foods", "the shoes"}, "Ada Stores"},
		{"wsp_sess_2", []string{"wsp_sess_1", "Ada Stores", "chat_9"}, "Bola Foods"},
	} {
		part, err := replay.Part(rec, func(id flow.SessionID) bool { return id == side.own })
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(part.Lines)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), side.shown) {
			t.Errorf("the part of %s lacks %q: %s", side.own, side.shown, text)
		}
		for _, hidden := range side.hidden {
			if strings.Contains(string(text), hidden) {
				t.Errorf("the part of %s holds %q: %s", side.own, hidden, text)
			}
		}
		first, last := part.Lines[0].Seq, part.Lines[len(part.Lines)-1].Seq
		if _, err := replay.At(part, last+1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has lines %d to %d", first, last)) {
			t.Errorf("the part of %s, from line %d to %d: %v", side.own, first, last, err)
		}
	}
	part, err := replay.Part(rec, func(id flow.SessionID) bool { return id == "wsp_sess_1" })
	if err == nil {
		part, err = replay.Redact(part)
	}
	var file bytes.Buffer
	if err == nil {
		err = replay.Export(&file, part, true)
	}
	if err == nil {
		part, _, err = replay.Import(&file)
	}
	if err != nil {
		t.Fatal(err)
	}
	if report, err := replay.Verify(part, words); !errors.Is(err, replay.ErrPart) { // it lacks what others' payments did to the chat, and would be said to differ
		t.Errorf("a part is decided again: %+v, %v", report, err)
	}
	if part, err := replay.Part(alone, func(id flow.SessionID) bool { return id == "wsp_sess_1" }); err != nil || len(part.Lines) != len(alone.Lines) {
		t.Errorf("a chat of one merchant is cut: %d of %d lines, %v", len(part.Lines), len(alone.Lines), err)
	} else if report, err := replay.Verify(part, words); err != nil || report.Worst() != replay.Same {
		t.Errorf("a chat of one merchant is not decided as it was: %+v, %v", report, err)
	}
	if _, err := replay.Private(replay.Decided, json.RawMessage(`{"chat":"wsp_sess_9`), func(flow.SessionID) bool { return false }); err == nil {
		t.Error("a line that cannot be read is taken for one that may be shown")
	}
}
