package sandbox

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"till/flow"
	"till/rail"
)

// The bounds of what the test door can be told.
const (
	maxCopies    = 20
	maxDelay     = 10 * time.Minute
	maxPending   = 10 * time.Minute
	maxTransfer  = 1_000_000_000_000     // kobo
	maxPayout    = 1_000_000_000_000_000 // kobo: a batch is of many transfers
	minSecret    = 16
	maxSecret    = 256
	maxNotifyURL = 2048
	defaultPayer = "ADA TEST PAYER"
	defaultBank  = "058"
)

var (
	accountForm = regexp.MustCompile(`^\d{10}$`)
	nipForm     = regexp.MustCompile(`^\d{30}$`)
	onceForm    = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// test does one request of the test door in one transaction and answers it.
func (b *Bank) test(w http.ResponseWriter, r *http.Request, do func(books) (any, error)) {
	var out any
	err := b.file.update(func(f books) (err error) {
		out, err = do(f)
		return err
	})
	if err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	b.nudge()
	writeJSON(w, http.StatusOK, out)
}

// putClient takes in where notices go and the secret of both directions. The last
// new one to register is told first, and those with its secret are told where it is
// gone: they are processes of one Till. What is owed and failed before is sent at
// once, for whoever registers has just started.
func (b *Bank) putClient(w http.ResponseWriter, r *http.Request) {
	var c client
	if err := readJSON(w, r, &c); err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	to, err := url.Parse(c.NotifyURL)
	if err != nil || to.Scheme != "http" || to.User != nil || len(c.NotifyURL) > maxNotifyURL || !loopbackHost(to.Host) {
		b.fail(r.Context(), w, refuse(http.StatusBadRequest, "invalid_notify_url", "notifyUrl is an http URL of a loopback address"))
		return
	}
	if len(c.Secret) < minSecret || len(c.Secret) > maxSecret || !plain(c.Secret) {
		b.fail(r.Context(), w, refuse(http.StatusBadRequest, "invalid_secret", "a secret has 16 to 256 printable characters"))
		return
	}
	b.test(w, r, func(f books) (any, error) {
		before, err := f.client()
		if err != nil {
			return nil, err
		}
		if err := f.set("client", before.and(c)); err != nil {
			return nil, err
		}
		return struct {
			NotifyURL string `json:"notifyUrl"`
		}{c.NotifyURL}, f.owedNow(b.now())
	})
}

func (b *Bank) getConditions(w http.ResponseWriter, r *http.Request) {
	b.test(w, r, func(f books) (any, error) { return f.conditions() })
}

// putConditions changes the weather; what is left out stays as it is.
func (b *Bank) putConditions(w http.ResponseWriter, r *http.Request) {
	var change conditions
	if err := readJSON(w, r, &change); err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	b.test(w, r, func(f books) (any, error) {
		c, err := f.conditions()
		if err != nil {
			return nil, err
		}
		take(&c.Up, change.Up)
		take(&c.LatencyMs, change.LatencyMs)
		take(&c.TimeoutAfterCommit, change.TimeoutAfterCommit)
		take(&c.NotifyLossPercent, change.NotifyLossPercent)
		take(&c.DuplicatePercent, change.DuplicatePercent)
		take(&c.Refunds, change.Refunds)
		take(&c.Payouts, change.Payouts)
		if c.LatencyMs < 0 || c.LatencyMs > int(maxLatency/time.Millisecond) {
			return nil, refuse(http.StatusBadRequest, "invalid_latency", "latencyMs is 0 to 30000")
		}
		if c.NotifyLossPercent < 0 || c.NotifyLossPercent > 100 || c.DuplicatePercent < 0 || c.DuplicatePercent > 100 {
			return nil, refuse(http.StatusBadRequest, "invalid_percent", "a percentage is 0 to 100")
		}
		if err := f.set("conditions", c); err != nil {
			return nil, err
		}
		return c, b.release(f, c, b.dayOf(r))
	})
}

func take[T any](into, from *T) {
	if from != nil {
		*into = *from
	}
}

func (b *Bank) getCalls(w http.ResponseWriter, r *http.Request) {
	after, limit := int64(0), callsPage
	var err error
	if text := r.URL.Query().Get("after"); text != "" {
		after, err = strconv.ParseInt(text, 10, 64)
	}
	if text := r.URL.Query().Get("limit"); text != "" && err == nil {
		limit, err = strconv.Atoi(text)
	}
	if err != nil || after < 0 || limit < 1 || limit > callsPage {
		b.fail(r.Context(), w, refuse(http.StatusBadRequest, "invalid_page", "after is a seq and limit is 1 to 100"))
		return
	}
	b.test(w, r, func(f books) (any, error) {
		items, err := f.calls(after, limit)
		return struct {
			Items []rail.Call `json:"items"`
		}{items}, err
	})
}

// postTransfer plays a payer's transfer. The money is booked at once, unless it
// is on its way for a while, and whatever the account: an unknown number makes
// money without a reference, and an expired one is still paid to, for that is
// what banks do. DelayMs, Copies and Drop are about the notice, which is of what
// became of the transfer: none is sent of one that is on its way.
func (b *Bank) postTransfer(w http.ResponseWriter, r *http.Request) {
	var t rail.Transfer
	if err := readJSON(w, r, &t); err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	if p := judge(&t); p != nil {
		b.fail(r.Context(), w, p)
		return
	}
	b.test(w, r, func(f books) (any, error) {
		name := ""
		if t.Once != "" {
			name = namesMovement + t.Once
			booked, found, err := f.movementByID(name, b.now())
			if err != nil || found {
				return transferred(booked), err
			}
		}
		m, _, err := f.instrumentBy("account", t.AccountNumber)
		if err != nil {
			return nil, err
		}
		amount := int64(t.Amount)
		if amount == 0 {
			came, err := f.came(m.Reference)
			if err != nil {
				return nil, err
			}
			if amount = m.Amount - came; amount <= 0 { // all came: it is paid twice
				amount = m.Amount
			}
		}
		if amount == 0 {
			return nil, refuse(http.StatusBadRequest, "invalid_amount", "nothing was asked for on this account: give an amount in kobo")
		}
		pending := time.Duration(t.PendingMs) * time.Millisecond
		lands := b.now().Add(pending) // before the notice of it is due
		at := lands
		if !t.ValueTime.IsZero() {
			at = t.ValueTime.UTC().Truncate(time.Millisecond)
		}
		from, _ := rail.BankByCode(t.SenderBankCode)
		move := movement{
			ID: name, Kind: flow.Credit, Reference: m.Reference, AccountNumber: t.AccountNumber, Amount: amount, Channel: flow.BankTransfer,
			ValueTime: at, PayerName: t.SenderName, PayerBank: from.Name, NIPSessionID: t.NIPSessionID,
			Collects: t.Collects,
		}
		if t.Returned {
			move.Reason = "The bank does not credit this amount to this account."
		}
		if err := b.enter(f, &move, telling{delay: pending + time.Duration(t.DelayMs)*time.Millisecond, copies: t.Copies, drop: t.Drop}); err != nil {
			return nil, err
		}
		if pending > 0 || t.Returned {
			if err := f.transit(move.Seq, lands, t.Returned); err != nil {
				return nil, err
			}
		}
		return transferred(move), nil
	})
}

// transferred is what a bank answers of a movement that it was asked for.
func transferred(m movement) rail.TransferResult {
	return rail.TransferResult{
		RailTransactionID: m.ID, NIPSessionID: m.NIPSessionID, AccountNumber: m.AccountNumber,
		AmountMinor: flow.Kobo(m.Amount).Minor(), ValueTime: m.ValueTime,
	}
}

// judge refuses a transfer that no payer could make, and fills in what is left out.
func judge(t *rail.Transfer) *problem {
	t.SenderName, t.SenderBankCode, t.Copies = cmp.Or(t.SenderName, defaultPayer), cmp.Or(t.SenderBankCode, defaultBank), cmp.Or(t.Copies, 1)
	_, known := rail.BankByCode(t.SenderBankCode)
	switch {
	case !accountForm.MatchString(t.AccountNumber):
		return refuse(http.StatusBadRequest, "invalid_account", "an account number has ten digits")
	case t.Amount < 0 || t.Amount > maxTransfer:
		return refuse(http.StatusBadRequest, "invalid_amount", "the amount is 0 (what was asked for) to 1000000000000 kobo")
	case utf8.RuneCountInString(t.SenderName) > maxText || !plain(t.SenderName):
		return refuse(http.StatusBadRequest, "invalid_sender", "a sender's name has at most 100 printable characters")
	case !known:
		return refuse(http.StatusBadRequest, "unknown_bank", "senderBankCode is no bank's")
	case t.PendingMs < 0 || t.PendingMs > int(maxPending/time.Millisecond):
		return refuse(http.StatusBadRequest, "invalid_pending", "pendingMs is 0 to 600000")
	case t.DelayMs < 0 || t.DelayMs > int(maxDelay/time.Millisecond):
		return refuse(http.StatusBadRequest, "invalid_delay", "delayMs is 0 to 600000")
	case t.Copies < 0 || t.Copies > maxCopies:
		return refuse(http.StatusBadRequest, "invalid_copies", "copies is 1 to 20")
	case t.Once != "" && !onceForm.MatchString(t.Once):
		return refuse(http.StatusBadRequest, "invalid_once", "once is 32 hexadecimal digits in small letters")
	case len(t.Collects) > maxText || !plain(string(t.Collects)):
		return refuse(http.StatusBadRequest, "invalid_collects", "a project is named in at most 100 characters")
	case t.NIPSessionID != "" && !nipForm.MatchString(t.NIPSessionID):
		return refuse(http.StatusBadRequest, "invalid_nip_session", "nipSessionId has 30 digits")
	case !t.ValueTime.IsZero() && !bookable(t.ValueTime):
		return refuse(http.StatusBadRequest, "invalid_value_time", "valueTime is not a time of a transfer")
	}
	return nil
}

// postReversal takes a booked credit back, once.
func (b *Bank) postReversal(w http.ResponseWriter, r *http.Request) {
	var in reversal
	if err := readJSON(w, r, &in); err != nil {
		b.fail(r.Context(), w, err)
		return
	}
	b.test(w, r, func(f books) (any, error) {
		credit, found, err := f.movementByID(in.RailTransactionID, b.now())
		if err != nil {
			return nil, err
		}
		if !found || credit.Kind != flow.Credit {
			return nil, refuse(http.StatusNotFound, "no_such_transaction", "no credit has this railTransactionId")
		}
		done, err := f.reversed(credit.ID)
		if err != nil {
			return nil, err
		}
		if done {
			return nil, refuse(http.StatusConflict, alreadyReversed, "this credit was taken back already")
		}
		back := credit
		back.ID, back.Kind, back.ValueTime, back.Reason, back.Reverses = "", flow.Reversal, b.dayOf(r), "reversal of "+credit.ID, credit.ID
		if err := b.enter(f, &back, telling{copies: 1}); err != nil {
			return nil, err
		}
		return transferred(back), nil
	})
}
