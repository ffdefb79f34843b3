-- One environment: its sessions, money, events, chats and what is owed.
CREATE TABLE sessions (
  id             TEXT PRIMARY KEY,
  project        TEXT NOT NULL,
  merchant       TEXT NOT NULL,
  mode           TEXT NOT NULL CHECK (mode IN ('headless', 'chat')),
  amount         {{int}} NOT NULL CHECK (amount BETWEEN 100 AND 2500000000),
  amount_paid    {{int}} NOT NULL CHECK (amount_paid BETWEEN 0 AND amount),
  status         TEXT NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'PAID', 'EXPIRED', 'CANCELLED')),
  exceptions     TEXT NOT NULL,
  methods        TEXT NOT NULL,
  customer_email TEXT NOT NULL,
  customer_phone TEXT NOT NULL,
  customer_name  TEXT NOT NULL,
  reference      TEXT NOT NULL,
  description    TEXT NOT NULL,
  metadata       TEXT NOT NULL,
  callback_url   TEXT NOT NULL,
  policy         TEXT NOT NULL,
  entry_code     TEXT NOT NULL,
  number         TEXT NOT NULL,
  charge         TEXT NOT NULL,
  charge_asked   {{int}} NOT NULL CHECK (charge_asked IN (0, 1)),
  sequence       {{int}} NOT NULL,
  version        {{int}} NOT NULL,
  created_at     {{int}} NOT NULL,
  expires_at     {{int}} NOT NULL,
  paid_at        {{int}} NOT NULL,
  CHECK ((status = 'PAID') = (amount_paid = amount AND paid_at > 0))
) {{strict}};
CREATE UNIQUE INDEX session_reference ON sessions (project, reference) WHERE reference <> '';
CREATE UNIQUE INDEX session_entry_code ON sessions (entry_code) WHERE entry_code <> '';
CREATE UNIQUE INDEX session_charge ON sessions (charge) WHERE charge <> '';
CREATE INDEX session_project ON sessions (project, id);

-- An attempt is saved before its rail is called.
CREATE TABLE attempts (
  id             TEXT PRIMARY KEY,
  session        TEXT NOT NULL REFERENCES sessions (id),
  method         TEXT NOT NULL CHECK (method IN ('bank_transfer', 'ussd', 'card')),
  reference      TEXT NOT NULL UNIQUE,
  amount         {{int}} NOT NULL CHECK (amount > 0),
  status         TEXT NOT NULL CHECK (status IN ('ACTIVE', 'SUCCEEDED', 'FAILED', 'EXPIRED', 'SUPERSEDED')),
  tries          {{int}} NOT NULL,
  instructions   TEXT NOT NULL,
  account_number TEXT NOT NULL,
  payment_code   TEXT NOT NULL,
  reason         TEXT NOT NULL,
  chat           TEXT NOT NULL,
  created_at     {{int}} NOT NULL,
  expires_at     {{int}} NOT NULL
) {{strict}};
CREATE UNIQUE INDEX attempt_live ON attempts (session, method) WHERE status = 'ACTIVE';
CREATE INDEX attempt_account ON attempts (account_number) WHERE account_number <> '';
-- A rail may use an account again, but never for two at once.
CREATE UNIQUE INDEX attempt_account_live ON attempts (account_number) WHERE account_number <> '' AND status = 'ACTIVE';
CREATE INDEX attempt_payment_code ON attempts (payment_code) WHERE payment_code <> '';
CREATE INDEX attempt_session ON attempts (session);

-- Money that a bank confirmed. A movement of the rail is kept once, and a
-- session is settled once, whatever the program believes.
CREATE TABLE payments (
  id                  TEXT PRIMARY KEY,
  project             TEXT NOT NULL,
  session             TEXT NOT NULL,
  attempt             TEXT NOT NULL,
  amount              {{int}} NOT NULL CHECK (amount > 0),
  fee                 {{int}} NOT NULL CHECK (fee >= 0),
  channel             TEXT NOT NULL,
  paid_at             {{int}} NOT NULL,
  received_at         {{int}} NOT NULL,
  payer               TEXT NOT NULL,
  nip_session         TEXT NOT NULL,
  rail_transaction_id TEXT NOT NULL UNIQUE,
  match_status        TEXT NOT NULL CHECK (match_status IN ('MATCHED', 'PARTIAL', 'EXCESS', 'LATE', 'DUPLICATE', 'UNMATCHED'))
) {{strict}};
CREATE UNIQUE INDEX payment_settles ON payments (session) WHERE match_status IN ('MATCHED', 'EXCESS');
CREATE INDEX payment_session ON payments (session);

-- The ledger: the lines of one payment sum to zero; nothing is ever changed.
CREATE TABLE postings (
  payment    TEXT NOT NULL REFERENCES payments (id),
  line       {{int}} NOT NULL,
  project    TEXT NOT NULL,
  account    TEXT NOT NULL CHECK (account IN ('rail_clearing', 'merchant_pending', 'merchant_available', 'fees', 'unapplied', 'refunds_payable', 'settled')),
  amount     {{int}} NOT NULL CHECK (amount <> 0),
  created_at {{int}} NOT NULL,
  PRIMARY KEY (payment, line)
) {{strict}};

-- What merchants are told: the exact bytes, saved with their cause.
CREATE TABLE events (
  id         TEXT PRIMARY KEY,
  kind       TEXT NOT NULL,
  project    TEXT NOT NULL,
  session    TEXT NOT NULL,
  sequence   {{int}} NOT NULL,
  body       {{blob}} NOT NULL,
  created_at {{int}} NOT NULL
) {{strict}};
CREATE UNIQUE INDEX event_once ON events (session) WHERE kind = 'charge.success';
CREATE UNIQUE INDEX event_sequence ON events (session, sequence) WHERE session <> '';

CREATE TABLE endpoints (
  id          TEXT PRIMARY KEY,
  project     TEXT NOT NULL,
  url         TEXT NOT NULL,
  description TEXT NOT NULL,
  events      TEXT NOT NULL,
  secrets     TEXT NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('ENABLED', 'DISABLED')),
  created_at  {{int}} NOT NULL
) {{strict}};
CREATE INDEX endpoint_project ON endpoints (project);

-- One event on its way to one endpoint. next_at is due time, retry time and the
-- end of a lease in one; token names the process that holds the lease.
CREATE TABLE deliveries (
  id       TEXT PRIMARY KEY,
  event    TEXT NOT NULL REFERENCES events (id),
  endpoint TEXT NOT NULL REFERENCES endpoints (id),
  state    TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead', 'held')),
  attempts {{int}} NOT NULL,
  next_at  {{int}} NOT NULL,
  token    TEXT NOT NULL,
  done_at  {{int}} NOT NULL,
  UNIQUE (event, endpoint)
) {{strict}};
CREATE INDEX delivery_due ON deliveries (next_at) WHERE state = 'pending';

CREATE TABLE delivery_attempts (
  delivery TEXT NOT NULL REFERENCES deliveries (id),
  n        {{int}} NOT NULL,
  at       {{int}} NOT NULL,
  status   {{int}} NOT NULL,
  reason   TEXT NOT NULL,
  body     {{blob}} NOT NULL,
  micros   {{int}} NOT NULL,
  PRIMARY KEY (delivery, n)
) {{strict}};

-- One person's chat with one of our numbers. decided is the last log line that
-- holds the chat's whole state.
CREATE TABLE chats (
  id         TEXT PRIMARY KEY,
  number     TEXT NOT NULL,
  person     TEXT NOT NULL,
  phone      TEXT NOT NULL,
  name       TEXT NOT NULL,
  decided    {{int}} NOT NULL,
  created_at {{int}} NOT NULL,
  UNIQUE (number, person)
) {{strict}};

CREATE TABLE watches (
  session TEXT NOT NULL REFERENCES sessions (id),
  chat    TEXT NOT NULL REFERENCES chats (id),
  PRIMARY KEY (session, chat)
) {{strict}};

-- Everything that happened, in order, per chat (or per session while no chat
-- watches it). Append-only.
CREATE TABLE log (
  stream  TEXT NOT NULL,
  seq     {{int}} NOT NULL,
  at      {{int}} NOT NULL,
  kind    TEXT NOT NULL,
  cause   {{int}} NOT NULL,
  session TEXT NOT NULL,
  message TEXT NOT NULL,
  data    TEXT NOT NULL,
  PRIMARY KEY (stream, seq)
) {{strict}};
CREATE UNIQUE INDEX log_heard_once ON log (stream, message) WHERE kind = 'heard';
CREATE INDEX log_session ON log (session) WHERE session <> '';

-- What the payer is told: text and message id are fixed before the first try.
CREATE TABLE says (
  id         TEXT PRIMARY KEY,
  chat       TEXT NOT NULL REFERENCES chats (id),
  seq        {{int}} NOT NULL,
  bubble     {{int}} NOT NULL,
  key        TEXT NOT NULL,
  text       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('pending', 'sent', 'delivered', 'read', 'failed')),
  created_at {{int}} NOT NULL,
  UNIQUE (chat, seq, bubble)
) {{strict}};
CREATE INDEX say_pending ON says (chat, seq, bubble) WHERE state = 'pending';

-- Work that is owed to the outside or to the clock. gen counts how often it was
-- asked for, so that work asked for again while it is done is done again.
CREATE TABLE tasks (
  kind     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  due      {{int}} NOT NULL,
  token    TEXT NOT NULL,
  gen      {{int}} NOT NULL,
  attempts {{int}} NOT NULL,
  PRIMARY KEY (kind, subject)
) {{strict}};
CREATE INDEX task_due ON tasks (due);

-- An idempotent call and its answer; status 0 while it runs.
CREATE TABLE calls (
  project    TEXT NOT NULL,
  key        TEXT NOT NULL,
  hash       TEXT NOT NULL,
  made       TEXT NOT NULL,
  status     {{int}} NOT NULL,
  body       {{blob}} NOT NULL,
  created_at {{int}} NOT NULL,
  PRIMARY KEY (project, key)
) {{strict}};

CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) {{strict}};
