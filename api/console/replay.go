package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// replayPages are conversations, decided again before one's eyes, and those that
// wait for a person.
func replayPages() []Page {
	get, post := http.MethodGet, http.MethodPost
	return []Page{
		{Method: get, Path: "/sessions/:id/replay", Right: flow.MayRead, do: (*Console).replaySession},
		{Method: get, Path: "/chats/:id/replay", Right: flow.MayRead, do: (*Console).replayChat},
		{Method: get, Path: "/inbox", Right: flow.MayAnswer, do: (*Console).inbox},
		{Method: get, Path: "/inbox/live", Right: flow.MayAnswer, do: (*Console).liveInbox},
		{Method: get, Path: "/inbox/:chat", Right: flow.MayAnswer, do: (*Console).readChat},
		{Method: get, Path: "/inbox/:chat/live", Right: flow.MayAnswer, do: (*Console).liveChat},
		{Method: post, Path: "/inbox/:chat/claim", Right: flow.MayAnswer, do: (*Console).claimChat},
		{Method: post, Path: "/inbox/:chat/reply", Right: flow.MayAnswer, do: (*Console).replyChat},
		{Method: post, Path: "/inbox/:chat/release", Right: flow.MayAnswer, do: (*Console).releaseChat},
	}
}

// scenesShown is how many turns of a conversation stand on one page.
const scenesShown = 200

// replayView is what the page of a replay is given.
type replayView struct {
	Path    string // of the page, without what stands behind the question mark
	Session flow.Session
	Chats   []store.ChatRow // of the session
	Chat    flow.ChatID     // that is shown, "" where nobody opened the session
	Told    checkout.Retelling
	Scenes  []checkout.Scene
	From    int // the first scene that is shown, from 1
	At      int // the scene that is stepped to, 0 for all
	Total   int

	Surprise int // the first scene that somebody should look at, 0 for none
	Command  string
}

// replaySession is GET /sessions/{id}/replay.
func (c *Console) replaySession(v *visit) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	session, rows, err := v.service.ChatsOf(v.ctx, s.Project, s.ID)
	if err != nil {
		return err
	}
	data := replayView{Session: session, Chats: rows, Command: "bin/till replay " + string(s.ID) + " --verify"}
	if len(rows) == 0 {
		return v.show("replay", "Replay of "+nameOf(data.Session), data)
	}
	chat := rows[0].ID
	if i := slices.IndexFunc(rows, func(r store.ChatRow) bool { return string(r.ID) == v.query("chat") }); i >= 0 {
		chat = rows[i].ID
	}
	return c.replay(v, data, chat)
}

// replayChat is GET /chats/{id}/replay.
func (c *Console) replayChat(v *visit) error {
	id := flow.ChatID(v.http.Params("id"))
	return c.replay(v, replayView{Command: "bin/till replay " + string(id) + " --verify"}, id)
}

// replay shows a chat again.
func (*Console) replay(v *visit, data replayView, chat flow.ChatID) error {
	var err error
	if data.Told, err = v.service.Retell(v.ctx, v.project.ID, chat, data.Session.ID); err != nil {
		return err
	}
	v.looks("look.chat", v.project.ID, string(chat))
	data.Chat, data.Path, data.Scenes, data.Total = chat, v.http.Path(), data.Told.Scenes, len(data.Told.Scenes)
	if data.Session.ID != "" {
		data.Path += "?" + url.Values{"chat": {string(chat)}}.Encode() + "&"
	} else {
		data.Path += "?"
	}
	number := func(name string) int {
		n, err := strconv.Atoi(v.query(name))
		if err != nil {
			return 0
		}
		return min(max(n, 0), data.Total)
	}
	if i := slices.IndexFunc(data.Scenes, func(s checkout.Scene) bool { return len(s.Surprises) > 0 }); i >= 0 {
		data.Surprise = i + 1
	}
	data.At = number("at")
	if data.From = number("from"); data.From == 0 {
		data.From = max(data.At-scenesShown+1, 1)
	}
	if data.From > data.Total {
		data.From = 1
	}
	last := min(data.From-1+scenesShown, data.Total)
	if data.At > 0 {
		last = min(last, max(data.At, data.From))
	}
	if data.Total > 0 {
		data.Scenes = data.Scenes[data.From-1 : last]
	}
	return v.show("replay", "Replay of "+cmp.Or(nameOf(data.Session), string(data.Chat)), data)
}

// Last is the last scene that is shown.
func (r replayView) Last() int { return r.From - 1 + len(r.Scenes) }

// Back and On are the steps beside the one that is shown, 0 for none.
func (r replayView) Back() int {
	if r.At == 0 {
		return max(r.Total-1, 0)
	}
	return r.At - 1
}

// On is the step after the one that is shown, 0 for none.
func (r replayView) On() int {
	switch {
	case r.At == 0:
		return min(r.Total, 1)
	case r.At < r.Total:
		return r.At + 1
	}
	return 0
}

// Earlier and Later are the first scenes of the pages beside this one, 0 for
// none.
func (r replayView) Earlier() int {
	if r.From <= 1 {
		return 0
	}
	return max(r.From-scenesShown, 1)
}

// Later is the first scene of the next page, 0 for none.
func (r replayView) Later() int {
	if r.At > 0 || r.Last() >= r.Total {
		return 0
	}
	return r.Last() + 1
}
