-- An idempotent call about an account and its answer. The key and the request
-- are hashes, the answer is sealed: it may hold a key that is shown once.
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
