package whatsapp_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"till/bot/whatsapp"
	"till/flow/await"
)

// keysOf opens the device in a file, and counts what is in the file as another
// process would find it after a power cut.
func keysOf(t *testing.T, file string) (k *whatsapp.Keys, count func(table string) int) {
	t.Helper()
	return keysThat(t, file, func() {})
}

// keysThat is keysOf, and has something happen each time that the file was read.
func keysThat(t *testing.T, file string, then func()) (k *whatsapp.Keys, count func(table string) int) {
	t.Helper()
	k, err := whatsapp.OpenKeys(t.Context(), file, time.Now, then)
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return k, func(table string) (n int) {
		must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM whatsmeow_"+table).Scan(&n))
		return n
	}
}

var keyOfAda = [32]byte{1}

// heard decrypts a message, as the library does it.
func heard(t *testing.T, k *whatsapp.Keys, hash byte, session string) error {
	t.Helper()
	return k.EventBuffer.DoDecryptionTxn(t.Context(), func(ctx context.Context) error {
		if err := k.Identities.PutIdentity(ctx, "ada:0", keyOfAda); err != nil {
			return err
		}
		if err := k.Sessions.PutSession(ctx, "ada:0", []byte(session)); err != nil {
			return err
		}
		if session == "" {
			return errors.New("it cannot be decrypted")
		}
		return k.EventBuffer.PutBufferedEvent(ctx, [32]byte{hash}, []byte("a text"), time.Unix(1, 0))
	})
}

// What a message changed is in the file before the answer to it leaves, whole,
// and no text of a message that is handled ever is.
func TestKeysAreWrittenBeforeAnAnswerLeaves(t *testing.T) {
	t.Parallel()
	k, count := keysOf(t, filepath.Join(t.TempDir(), "keys.db"))
	ctx := t.Context()
	must(t, heard(t, k, 1, "after the message"))
	must(t, k.EventBuffer.ClearBufferedEventPlaintext(ctx, [32]byte{1}))
	must(t, k.EventBuffer.AddOutgoingEvent(ctx, types.NewJID("1", types.HiddenUserServer), "3EB0", "wa", []byte("an answer")))
	must(t, k.Sessions.PutManySessions(ctx, map[string][]byte{"ada:0": []byte("after the answer")}))
	for table, want := range map[string]int{
		"sessions WHERE session = 'after the answer'": 0, "sessions WHERE session = CAST('after the answer' AS BLOB)": 1,
		"identity_keys": 1, "event_buffer WHERE plaintext IS NULL": 1, "event_buffer": 1, "retry_buffer": 1,
	} {
		if got := count(table); got != want {
			t.Errorf("%s: %d rows, want %d", table, got, want)
		}
	}
}

// A message that cannot be decrypted moves nothing.
func TestKeysStayWhereADecryptionFails(t *testing.T) {
	t.Parallel()
	k, count := keysOf(t, filepath.Join(t.TempDir(), "keys.db"))
	must(t, heard(t, k, 1, "before"))
	if err := heard(t, k, 2, ""); err == nil {
		t.Fatal("it was decrypted")
	}
	session, err := k.Sessions.GetSession(t.Context(), "ada:0")
	must(t, err)
	if string(session) != "before" {
		t.Errorf("the session is %q", session)
	}
	must(t, k.Settle())
	if n := count("event_buffer"); n != 1 {
		t.Errorf("%d messages are kept", n)
	}
}

// A message that is not handled is found again after an end without warning: it
// was written with the ratchet that it moved, or neither was.
func TestKeysKeepAMessageWithItsRatchet(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.db")
	k, count := keysOf(t, file)
	must(t, heard(t, k, 1, "moved"))
	if in, with := count("event_buffer"), count("sessions"); in != with {
		t.Errorf("%d messages with %d ratchets", in, with)
	}
	must(t, k.Sessions.PutSession(t.Context(), "obi:0", []byte("sent")))
	next, _ := keysOf(t, file) // the first is still open: nothing was closed in order
	e, err := next.EventBuffer.GetBufferedEvent(t.Context(), [32]byte{1})
	must(t, err)
	if e == nil || string(e.Plaintext) != "a text" {
		t.Errorf("found %+v", e)
	}
	must(t, next.EventBuffer.ClearBufferedEventPlaintext(t.Context(), [32]byte{1}))
	must(t, next.Settle())
	if e, err = next.EventBuffer.GetBufferedEvent(t.Context(), [32]byte{1}); err != nil || e == nil || e.Plaintext != nil {
		t.Errorf("after it was handled: %+v, %v", e, err)
	}
}

// A process that was paused and whose number another one runs now turns no
// ratchet back when it wakes.
func TestKeysOfAnotherAreLeftAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.db")
	paused, _ := keysOf(t, file)
	must(t, paused.Sessions.PutSession(t.Context(), "ada:0", []byte("old")))
	next, count := keysOf(t, file)
	must(t, next.Sessions.PutSession(t.Context(), "ada:0", []byte("new")))
	for range 2 {
		if err := paused.Sessions.PutSession(t.Context(), "ada:0", []byte("older")); !errors.Is(err, whatsapp.ErrTaken) {
			t.Errorf("the paused process was told %v", err)
		}
	}
	if err := heard(t, paused, 9, "older"); !errors.Is(err, whatsapp.ErrTaken) {
		t.Errorf("it decrypts, and was told %v", err)
	}
	must(t, next.Sessions.PutSession(t.Context(), "obi:0", []byte("new")))
	if n := count("sessions WHERE session = CAST('new' AS BLOB)"); n != 2 {
		t.Errorf("%d sessions of 2 are the new process's", n)
	}
}

// What could not be written is written later, with what came after it, and the
// answer that it was to go before did not leave.
func TestKeysThatCannotBeWrittenAreWrittenLater(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.db")
	k, count := keysOf(t, file)
	must(t, heard(t, k, 1, "moved"))
	other, err := sql.Open("sqlite", "file:"+file)
	must(t, err)
	defer func() { must(t, other.Close()) }()
	_, err = other.ExecContext(t.Context(), `CREATE TRIGGER full BEFORE INSERT ON whatsmeow_sessions BEGIN SELECT RAISE(ABORT, 'no room'); END`)
	must(t, err)
	if err := k.Sessions.PutSession(t.Context(), "obi:0", []byte("sent")); err == nil {
		t.Fatal("it was written")
	}
	if n := count("event_buffer"); n != 0 {
		t.Errorf("%d messages are kept without their ratchet", n)
	}
	_, err = other.ExecContext(t.Context(), `DROP TRIGGER full`)
	must(t, err)
	await.Until(t, "what was noted is written though nothing follows", func() bool { return count("event_buffer") == 1 })
	must(t, k.Sessions.PutSession(t.Context(), "obi:0", []byte("sent again")))
	if got := fmt.Sprint(count("event_buffer"), count("sessions"), count("identity_keys")); got != "1 2 1" {
		t.Errorf("messages, sessions and identities: %s", got)
	}
}

// Who reads the file while it is changed remembers nothing of what stood there
// before.
func TestKeysThatChangeAsTheyAreReadAreNotRemembered(t *testing.T) {
	t.Parallel()
	ctx, ada := t.Context(), types.NewJID("2348000000001", types.DefaultUserServer)
	var meanwhile func()
	k, _ := keysThat(t, filepath.Join(t.TempDir(), "keys.db"), func() {
		if do := meanwhile; do != nil {
			meanwhile = nil
			do()
		}
	})
	token := func(s string) store.PrivacyToken {
		return store.PrivacyToken{User: ada, Token: []byte(s), Timestamp: time.Now()}
	}
	must(t, k.Sessions.PutSession(ctx, "1_1:0", []byte("old")))
	must(t, k.NCTSalt.PutNCTSalt(ctx, []byte("old")))
	must(t, k.PrivacyTokens.PutPrivacyTokens(ctx, token("old"))) // which forgets what was in memory

	meanwhile = func() { must(t, k.Sessions.DeleteAllSessions(ctx, "1_1")) }
	_, err := k.Sessions.GetSession(ctx, "1_1:0")
	must(t, err)
	if s, err := k.Sessions.GetSession(ctx, "1_1:0"); s != nil || err != nil {
		t.Errorf("a deleted session is %q (%v)", s, err)
	}
	meanwhile = func() { must(t, k.NCTSalt.PutNCTSalt(ctx, []byte("new"))) }
	_, err = k.NCTSalt.GetNCTSalt(ctx)
	must(t, err)
	if salt, err := k.NCTSalt.GetNCTSalt(ctx); string(salt) != "new" || err != nil {
		t.Errorf("the salt is %q (%v)", salt, err)
	}
	meanwhile = func() { must(t, k.PrivacyTokens.PutPrivacyTokens(ctx, token("new"))) }
	_, err = k.PrivacyTokens.GetPrivacyToken(ctx, ada)
	must(t, err)
	if found, err := k.PrivacyTokens.GetPrivacyToken(ctx, ada); err != nil || found == nil || string(found.Token) != "new" {
		t.Errorf("the token is %v (%v)", found, err)
	}
	if meanwhile != nil {
		t.Error("the last was not read from the file")
	}
}

// A device that is deleted takes what was noted of it along; the next one in the
// file is not held up by that.
func TestKeysOfADeletedDevice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.db")
	k, count := keysOf(t, file)
	must(t, heard(t, k, 1, "moved"))
	sessions := k.Sessions
	must(t, k.Delete(t.Context()))
	if err := sessions.PutSession(t.Context(), "ada:0", []byte("late")); err == nil {
		t.Error("a deleted device keeps sessions")
	}
	must(t, k.Close())
	next, _ := keysOf(t, file)
	must(t, next.Sessions.PutSession(t.Context(), "obi:0", []byte("new")))
	if n := count("sessions"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// The library deletes a device that was unlinked beside telling of it. Where the number is
// linked anew before it has come to that, the new device stays.
func TestAnUnlinkedDeviceTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	k, count := keysOf(t, filepath.Join(t.TempDir(), "keys.db"))
	must(t, heard(t, k, 1, "moved"))
	next, err := k.Link(t.Context())
	must(t, err)
	must(t, k.Delete(t.Context())) // the unlinked one, late
	if n := count("device"); n != 1 {
		t.Errorf("%d devices", n)
	}
	must(t, next.Sessions.PutSession(t.Context(), "obi:0", []byte("new")))
	must(t, k.Settle())
	if n := count("sessions"); n != 1 {
		t.Errorf("%d sessions", n)
	}
	must(t, next.Delete(t.Context()))
	if n := count("device"); n != 0 {
		t.Errorf("%d devices, once it is unlinked too", n)
	}
}

// The library asks with each message to forget old ones; that is done now and
// then.
func TestKeysForgetOldAnswersNowAndThen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	file := filepath.Join(t.TempDir(), "keys.db")
	k, err := whatsapp.OpenKeys(t.Context(), file, func() time.Time { return now }, func() {})
	must(t, err)
	defer func() { must(t, k.Close()) }()
	to := types.NewJID("1", types.HiddenUserServer)
	old := func() int {
		t.Helper()
		format, _, err := k.EventBuffer.GetOutgoingEvent(t.Context(), to, types.JID{}, "old")
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
		return len(format)
	}
	must(t, k.EventBuffer.DeleteOldOutgoingEvents(t.Context()))
	began := now
	now = now.Add(-8 * 24 * time.Hour)
	must(t, k.EventBuffer.AddOutgoingEvent(t.Context(), to, "old", "wa", []byte("long ago")))
	must(t, k.Settle())
	now = began.Add(time.Minute)
	must(t, k.EventBuffer.DeleteOldOutgoingEvents(t.Context()))
	if old() == 0 {
		t.Error("it was looked for again within a minute")
	}
	now = began.Add(2 * time.Hour)
	must(t, k.EventBuffer.DeleteOldOutgoingEvents(t.Context()))
	if old() != 0 {
		t.Error("it is still there")
	}
}
