-- Searches that somebody keeps under a name, for themselves. Account is '' for
-- operators.
CREATE TABLE filters (
  account    TEXT NOT NULL,
  email      TEXT NOT NULL,
  name       TEXT NOT NULL CHECK (name <> ''),
  words      TEXT NOT NULL,
  status     TEXT NOT NULL,
  created_at {{int}} NOT NULL,
  PRIMARY KEY (account, email, name)
) {{strict}};

CREATE INDEX audit_of_time ON audit (at);
CREATE INDEX audit_of_actor ON audit (actor, id);
