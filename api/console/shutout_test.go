package console_test

import (
	"errors"
	"net/http"
	"testing"

	"till/flow"
	"till/flow/store"
)

// chatOf is the chat in which a session is open.
func (w *world) chatOf(session string) store.ChatRow {
	w.t.Helper()
	list, err := w.dbs[flow.Test].Watchers(w.t.Context(), flow.SessionID(session))
	if err != nil || len(list) != 1 {
		w.t.Fatalf("chats %+v, %v", list, err)
	}
	return list[0]
}

// A chat that is claimed while its supporter is shut out is the bot's again: nobody
// else can give it back.
func TestWhoIsShutOutKeepsNoChatThatTheyClaimMeanwhile(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(session, "Ada")
	chat, owner := w.chatOf(session).ID, w.as(flow.RoleOwner)
	ended := func(p flow.Person) bool {
		list, err := w.accounts.People(t.Context(), p.Account)
		must(t, err)
		for _, known := range list {
			if known.ID == p.ID {
				return !known.EndedAt.IsZero()
			}
		}
		return false
	}
	free := func(when string) {
		t.Helper()
		w.until("the bot has the chat that was "+when, func() bool { return w.chatOf(session).Desk.State == "" })
	}

	obi, _ := w.obi()
	var claims func() // whenever the accounts look at their clock, as they do when they end a login
	claims = func() {
		if ended(obi) { // others look at that clock too: what obi claims by then is no part of this
			return
		}
		if err := w.services[flow.Test].Claim(t.Context(), chat, obi.Email, 0); !errors.Is(err, flow.ErrDesk) { // as while the bot is about to have it again
			must(t, err)
		}
		if ended(obi) {
			must(t, w.services[flow.Test].Release(t.Context(), chat, obi.Email))
			return
		}
		w.entered.Store(&claims)
	}
	owner.get("/team")
	w.entered.Store(&claims)
	w.wants(owner.post("/team/"+obi.ID+"/end", form("confirm", "yes")), http.StatusSeeOther)
	w.entered.Store(nil)
	if !ended(obi) {
		t.Fatal("obi was not shut out")
	}
	free("claimed as the login ends")

	eze, err := w.accounts.AddPerson(t.Context(), w.ada.account, "eze@example.com", "a long password", flow.RoleSupport, "")
	must(t, err)
	in, err := w.accounts.Enter(t.Context(), eze.Email, "a long password", "192.0.2.1")
	must(t, err)
	browser := w.carrying(in.Text)
	browser.get("/inbox/" + string(chat))
	end := func() { must(t, w.accounts.EndPerson(t.Context(), w.ada.account, eze.ID)) }
	kept := func() { w.ticks.Store(&end) }     // what is claimed is kept who claims it
	known := func() { w.entered.Store(&kept) } // the login is good
	w.entered.Store(&known)
	got := browser.post("/inbox/"+string(chat)+"/claim", form("reason", "asks for a person"))
	if !ended(eze) {
		t.Fatal("eze was not shut out meanwhile")
	}
	w.wants(got, http.StatusSeeOther)
	free("claimed after the login ended")
}
