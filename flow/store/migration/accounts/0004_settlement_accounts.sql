-- Where a project is paid out to, in each environment.
CREATE TABLE settlement_accounts (
  project     TEXT NOT NULL REFERENCES projects (id),
  environment TEXT NOT NULL CHECK (environment IN ('test', 'live')),
  bank_code   TEXT NOT NULL,
  number      TEXT NOT NULL,
  name        TEXT NOT NULL,
  updated_at  {{int}} NOT NULL,
  PRIMARY KEY (project, environment)
) {{strict}};
