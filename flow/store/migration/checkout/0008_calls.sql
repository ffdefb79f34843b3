-- Idempotent calls are kept by whose they are, which is not always a project,
-- and no longer in the clear: the key and the request are hashes, the answer is
-- sealed. What was kept in the clear for a day cannot be turned into that.
DROP TABLE calls;

CREATE TABLE calls (
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  hash       TEXT NOT NULL,
  made       TEXT NOT NULL,
  status     {{int}} NOT NULL,
  body       {{blob}} NOT NULL,
  created_at {{int}} NOT NULL,
  PRIMARY KEY (scope, key)
) {{strict}};

CREATE INDEX calls_by_age ON calls (created_at);
