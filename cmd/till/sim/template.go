package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/lite"
	"till/flow/store/lite/disk"
)

// template is what every simulation of a process starts from: a place where three
// merchants signed up, and what is the same for all.
type template struct {
	disk      *disk.Disk // that all is on
	at        otherStore // but the databases, where it is not nil
	room      []byte     // for what is read of it
	keys      *store.Keyring
	words     *bot.Words
	calendar  flow.Calendar
	merchants []merchant
	old       merchant // whose keys are over
	token     string   // of the dashboard of one more merchant
	project   flow.ProjectID
}

// merchant is one who takes payments.
type merchant struct {
	n       int
	name    string
	project flow.ProjectID
	secret  string // the test key
	public  string
	live    string // the live key, "" for those who have none
	revoked string
	expired string
	sinks   []*sink
	calls   int // keys that it used
}

// otherStore is where a test has the service keep its databases instead of in files:
// on a PostgreSQL. What is committed there outlives whatever becomes of a process.
type otherStore interface {
	url(dir string) string                   // of the databases that stand for a folder
	begin(dir, from string) error            // makes them, as those of another folder stand
	dies(dir string, end func() error) error // ends a process that reaches them no more
	watch(dir, name string) error            // has watchers look at one of them
	read(dir, name string) (reader, error)   // opens one of them
}

// The merchants of every simulation.
var merchantNames = []string{"Ada Stores", "Bola Foods", "Chidi Rides"}

// watchers write down, in tables that the service does not know of, whatever
// happens to what has states: an account of its own, kept by SQLite.
const watchers = `
CREATE TABLE sim_moves (seq INTEGER PRIMARY KEY, what TEXT NOT NULL, id TEXT NOT NULL, was TEXT NOT NULL, now TEXT NOT NULL, more TEXT NOT NULL);
CREATE TRIGGER sim_session_new AFTER INSERT ON sessions BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('session', NEW.id, '', NEW.status, NEW.project); END;
CREATE TRIGGER sim_session AFTER UPDATE ON sessions WHEN OLD.status <> NEW.status OR OLD.amount_paid <> NEW.amount_paid OR OLD.expires_at <> NEW.expires_at BEGIN
 INSERT INTO sim_moves (what, id, was, now, more) VALUES ('session', NEW.id, OLD.status, NEW.status, NEW.amount_paid || '/' || NEW.expires_at); END;
CREATE TRIGGER sim_attempt_new AFTER INSERT ON attempts BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('attempt', NEW.id, '', NEW.status, NEW.session || '/' || NEW.method || '/' || NEW.reference || '/' || NEW.expires_at); END;
CREATE TRIGGER sim_attempt AFTER UPDATE ON attempts WHEN OLD.status <> NEW.status OR OLD.expires_at <> NEW.expires_at BEGIN
 INSERT INTO sim_moves (what, id, was, now, more) VALUES ('attempt', NEW.id, OLD.status, NEW.status, NEW.session || '/' || NEW.method || '/' || NEW.reference || '/' || NEW.expires_at); END;
CREATE TRIGGER sim_payment AFTER INSERT ON payments BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('payment', NEW.id, '', NEW.match_status,
 NEW.session || '/' || NEW.attempt || '/' || NEW.amount || '/' || NEW.fee || '/' || NEW.paid_at || '/' || NEW.rail_transaction_id); END;
CREATE TRIGGER sim_resolved AFTER UPDATE ON payments WHEN OLD.resolution <> NEW.resolution BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('resolution', NEW.id, OLD.resolution, NEW.resolution, NEW.match_status); END;
CREATE TRIGGER sim_refund_new AFTER INSERT ON refunds BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('refund', NEW.id, '', NEW.status, NEW.payment || '/' || NEW.amount || '/' || NEW.origin); END;
CREATE TRIGGER sim_refund AFTER UPDATE ON refunds WHEN OLD.status <> NEW.status OR OLD.tries <> NEW.tries BEGIN
 INSERT INTO sim_moves (what, id, was, now, more) VALUES ('refund', NEW.id, OLD.status, NEW.status, NEW.payment || '/' || NEW.tries || '/' || NEW.failures); END;
CREATE TRIGGER sim_settlement AFTER UPDATE ON settlements WHEN NEW.created_at > 0 BEGIN
 INSERT INTO sim_moves (what, id, was, now, more) VALUES ('settlement', NEW.id, CASE WHEN OLD.created_at = 0 THEN '' ELSE OLD.status END, NEW.status, NEW.project || '/' || NEW.tries || '/' || NEW.amount); END;
CREATE TRIGGER sim_settlement_new AFTER INSERT ON settlements WHEN NEW.created_at > 0 BEGIN
 INSERT INTO sim_moves (what, id, was, now, more) VALUES ('settlement', NEW.id, '', NEW.status, NEW.project || '/' || NEW.tries || '/' || NEW.amount); END;
CREATE TRIGGER sim_delivery_new AFTER INSERT ON deliveries BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('delivery', NEW.id, '', NEW.state, NEW.event || '/' || NEW.endpoint); END;
CREATE TRIGGER sim_delivery AFTER UPDATE ON deliveries WHEN OLD.state <> NEW.state BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('delivery', NEW.id, OLD.state, NEW.state, NEW.event || '/' || NEW.endpoint); END;
CREATE TRIGGER sim_event AFTER INSERT ON events BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('event', NEW.id, '', NEW.kind, NEW.session); END;
CREATE TRIGGER sim_ledger AFTER INSERT ON ledger BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('ledger', NEW.kind || '/' || NEW.subject, '', NEW.payment,
 NEW.rail_clearing || '/' || NEW.merchant_pending || '/' || NEW.merchant_available || '/' || NEW.fees || '/' || NEW.unapplied || '/' || NEW.refunds_payable || '/' || NEW.settled || '/' || NEW.rail_id || '/' || NEW.project); END;
CREATE TRIGGER sim_talk AFTER INSERT ON log WHEN NEW.kind = 'decided' BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('talk', NEW.stream, '', NEW.seq, NEW.data); END;
CREATE TRIGGER sim_heard AFTER INSERT ON log WHEN NEW.kind = 'heard' BEGIN INSERT INTO sim_moves (what, id, was, now, more) VALUES ('heard', NEW.stream, '', NEW.message, ''); END;
`

// beginnings is the folder of the template's files.
const beginnings = "template"

// makeTemplate makes the template on a disk, and its databases elsewhere where at is
// not nil, inside a bubble.
func makeTemplate(d *disk.Disk, at otherStore) (*template, error) {
	t := &template{disk: d, at: at}
	var err error
	if t.words, err = bot.LoadWords(); err != nil {
		return nil, err
	}
	if t.calendar, err = flow.NewCalendar(""); err != nil {
		return nil, err
	}
	w := newWorld(0, t)
	if t.keys, err = store.NewKeyring(w.random("sealing"), store.SealingKey{1: 0x5e, 31: 0xa1}); err != nil {
		return nil, err
	}
	if err := w.openBank(w.ctx); err != nil {
		return nil, err
	}
	if at != nil {
		if err := at.begin(beginnings, ""); err != nil {
			return nil, err
		}
	}
	if err := w.open(beginnings); err != nil {
		return nil, err
	}
	err = t.signUp(w.ctx, w)
	if e := w.inst.end(); err == nil {
		err = e
	}
	w.bank.stop()
	if e := w.bank.bank.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("make the merchants: %w", err)
	}
	for _, name := range []string{"test", "live"} {
		if err := t.watch(beginnings, name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// watch has watchers look at a database that nobody has open.
func (t *template) watch(dir, name string) error {
	if t.at != nil {
		return t.at.watch(dir, name)
	}
	return script(t.uri(dir, name), watchers)
}

// read opens a database for reading.
func (t *template) read(dir, name string) (reader, error) {
	if t.at != nil {
		return t.at.read(dir, name)
	}
	return lite.Open(t.uri(dir, name), "query_only(1)", "busy_timeout(5000)")
}

// uri is where the file of a database is.
func (t *template) uri(dir, name string) string {
	return "file:" + dir + "/" + name + ".db?vfs=" + t.disk.Name()
}

// script runs statements on a file that nobody has open.
func script(uri, text string) error {
	db, err := lite.Open(uri)
	if err != nil {
		return err
	}
	for one := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
		if _, err := db.Exec(one); err != nil {
			return errors.Join(fmt.Errorf("%w in %s", err, one), db.Close())
		}
	}
	return db.Close()
}

// signUp has the merchants of all simulations come.
func (t *template) signUp(ctx context.Context, w *world) error {
	a := w.inst.accounts
	for n, name := range append(merchantNames, "Old Traders", "New Traders") {
		m := merchant{n: n, name: fmt.Sprintf("m%d", n)}
		ids := flow.IDs{Now: w.now, Rand: w.random("template " + name)}
		id := func(prefix string) string {
			made, err := ids.New(prefix)
			if err != nil {
				panic(err) // the source never fails
			}
			return made
		}
		account := flow.Account{ID: id(flow.PrefixAccount), Email: fmt.Sprintf("owner%d@example.com", n), PasswordHash: "x", Business: name, CreatedAt: w.now()}
		project := flow.Project{ID: flow.ProjectID(id(flow.PrefixProject)), Account: account.ID, Name: name, CreatedAt: w.now()}
		var keys []flow.Key
		key := func(env flow.Environment, kind flow.KeyKind, change func(*flow.Key)) string {
			text, err := flow.NewKeyText(env, kind, ids.Rand)
			if err != nil {
				panic(err) // as above
			}
			k := flow.Key{ID: id(flow.PrefixKey), Project: project.ID, Environment: env, Kind: kind, Hash: flow.HashKey(text), Hint: flow.HintKey(text), CreatedAt: w.now()}
			if change != nil {
				change(&k)
			}
			keys = append(keys, k)
			return text
		}
		m.project = project.ID
		m.secret, m.public = key(flow.Test, flow.SecretKey, nil), key(flow.Test, flow.PublicKey, nil)
		m.live = key(flow.Live, flow.SecretKey, nil)
		m.revoked = key(flow.Test, flow.SecretKey, func(k *flow.Key) { k.RevokedAt = w.now().AddDate(0, 0, -1) })
		m.expired = key(flow.Test, flow.SecretKey, func(k *flow.Key) { k.ExpiresAt = w.now().AddDate(0, 0, -1) })
		token, err := flow.NewTokenText(ids.Rand)
		if err != nil {
			return err
		}
		err = w.inst.dbs[0].Update(ctx, func(tx *store.Tx) error {
			if _, err := tx.AddAccount(ctx, account, project, keys); err != nil {
				return err
			}
			return tx.AddToken(ctx, flow.Token{Hash: flow.HashKey(token), Account: account.ID, CreatedAt: w.now(), ExpiresAt: w.now().AddDate(0, 1, 0)}, 2)
		})
		if err != nil {
			return err
		}
		if n < 2 { // the third may not take real money
			if _, err := a.SubmitKYC(ctx, project.ID, flow.KYCDetails{LegalName: name}, plainCall(project.ID)); err != nil {
				return err
			}
			if _, err := a.RuleKYC(ctx, project.ID, flow.Approve, "of the simulation"); err != nil {
				return err
			}
		}
		if n < len(merchantNames) {
			t.merchants = append(t.merchants, m)
		} else if n == len(merchantNames) {
			t.old = m
		} else {
			t.project, t.token = m.project, token
		}
	}
	return nil
}

// plainCall is a call whose answer nobody reads.
func plainCall(project flow.ProjectID) checkout.Call {
	return checkout.Call{Project: project, Render: func(checkout.Made) (int, []byte, error) { return http.StatusOK, []byte("{}"), nil }}
}
