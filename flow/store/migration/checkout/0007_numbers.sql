-- Our WhatsApp numbers: where each stands, and which process runs it. token
-- only grows: who holds the highest is the only one that may send.
CREATE TABLE numbers (
  slot        {{int}} PRIMARY KEY CHECK (slot > 0),
  number      TEXT NOT NULL,
  state       TEXT NOT NULL,
  detail      TEXT NOT NULL,
  since       {{int}} NOT NULL,
  until       {{int}} NOT NULL,
  phone_seen  {{int}} NOT NULL,
  weight      {{int}} NOT NULL CHECK (weight BETWEEN 0 AND 1000),
  daily_chats {{int}} NOT NULL CHECK (daily_chats >= 0),
  holder      TEXT NOT NULL,
  token       {{int}} NOT NULL CHECK (token >= 0),
  held_until  {{int}} NOT NULL
) {{strict}};

-- What operators switched off; what is on has no row.
CREATE TABLE switches (
  kind       TEXT NOT NULL CHECK (kind IN ('number', 'method', 'merchant')),
  name       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state <> ''),
  PRIMARY KEY (kind, name)
) {{strict}};

-- Every act of an operator, in order; a row is never changed.
CREATE TABLE switch_moves (
  seq        {{int}} PRIMARY KEY,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  state_from TEXT NOT NULL,
  state_to   TEXT NOT NULL,
  reason     TEXT NOT NULL,
  who        TEXT NOT NULL,
  created_at {{int}} NOT NULL
) {{strict}};

CREATE INDEX chat_created ON chats (number, created_at);
