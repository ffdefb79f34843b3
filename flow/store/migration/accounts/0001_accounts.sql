-- Who may use Till: accounts, their projects and the keys of those.
CREATE TABLE accounts (
  id            TEXT PRIMARY KEY,
  email         TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  business      TEXT NOT NULL,
  created_at    {{int}} NOT NULL
) {{strict}};

CREATE TABLE projects (
  id         TEXT PRIMARY KEY,
  account    TEXT NOT NULL REFERENCES accounts (id),
  name       TEXT NOT NULL,
  created_at {{int}} NOT NULL
) {{strict}};

CREATE TABLE keys (
  id          TEXT PRIMARY KEY,
  project     TEXT NOT NULL REFERENCES projects (id),
  environment TEXT NOT NULL CHECK (environment IN ('test', 'live')),
  kind        TEXT NOT NULL CHECK (kind IN ('secret', 'public')),
  hash        TEXT NOT NULL UNIQUE,
  hint        TEXT NOT NULL,
  created_at  {{int}} NOT NULL,
  expires_at  {{int}} NOT NULL,
  revoked_at  {{int}} NOT NULL
) {{strict}};

CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) {{strict}};
