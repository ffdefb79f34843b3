-- What supporters look for, newest first within a project: sessions by the phone,
-- amount, e-mail address and name of who pays, and what waits for somebody.
CREATE INDEX session_amount ON sessions (project, amount, id);
CREATE INDEX session_email ON sessions (project, customer_email, id);
CREATE INDEX session_phone ON sessions (project, customer_phone, id) WHERE customer_phone <> '';
CREATE INDEX session_part ON sessions (project, id) WHERE amount_paid > 0 AND status IN ('PENDING', 'PROCESSING');
CREATE INDEX session_processing ON sessions (project, id) WHERE status = 'PROCESSING';

-- Most payments are what was asked for: they are found by their session.
CREATE INDEX payment_odd ON payments (project, amount, id) WHERE match_status <> 'MATCHED';
CREATE INDEX payment_waits ON payments (match_status, project, id) WHERE resolution = '' AND match_status <> 'MATCHED' AND match_status <> 'PARTIAL';
CREATE INDEX refund_attention ON refunds (project, id) WHERE status = 'NEEDS_ATTENTION';
CREATE INDEX delivery_dead ON deliveries (endpoint, id) WHERE state = 'dead';

CREATE INDEX chat_phone ON chats (phone) WHERE phone <> '';
CREATE INDEX watch_chat ON watches (chat, session);

-- The words of a customer's name, in lower case without marks, each with the whole
-- of it and the amount, which never change: what a name leads to is judged without
-- a look at the session. Only sessions that a name was given for have any, so that
-- the others cost nothing.
{{sqlite}} CREATE TABLE names (
  project TEXT NOT NULL,
  word    TEXT NOT NULL CHECK (word <> ''),
  session TEXT NOT NULL,
  name    TEXT NOT NULL,
  amount  {{int}} NOT NULL,
  PRIMARY KEY (project, word, session)
) {{strict}}, WITHOUT ROWID;
{{postgres}} CREATE TABLE names (
  project TEXT NOT NULL,
  word    TEXT COLLATE "C" NOT NULL CHECK (word <> ''),
  session TEXT NOT NULL,
  name    TEXT NOT NULL,
  amount  {{int}} NOT NULL,
  PRIMARY KEY (project, word, session)
);
{{postgres}} INSERT INTO names SELECT DISTINCT s.project, w.word, s.id, ' ' || lower(s.customer_name), s.amount FROM sessions s, regexp_split_to_table(lower(s.customer_name), '[^[:alnum:]]+') AS w (word) WHERE s.customer_name <> '' AND w.word <> '';
{{sqlite}} INSERT INTO names WITH RECURSIVE w (project, session, name, amount, word, rest) AS (
  SELECT project, id, ' ' || lower(trim(customer_name)), amount, '', lower(trim(customer_name)) || ' ' FROM sessions WHERE customer_name <> ''
  UNION ALL SELECT project, session, name, amount, substr(rest, 1, instr(rest, ' ') - 1), substr(rest, instr(rest, ' ') + 1) FROM w WHERE rest <> '')
  SELECT DISTINCT project, word, session, name, amount FROM w WHERE word <> '';

-- What supporters write down about a session, for each other.
CREATE TABLE notes (
  id      TEXT PRIMARY KEY,
  session TEXT NOT NULL REFERENCES sessions (id),
  author  TEXT NOT NULL,
  text    TEXT NOT NULL CHECK (text <> ''),
  at      {{int}} NOT NULL
) {{strict}};
CREATE INDEX note_session ON notes (session, id);
