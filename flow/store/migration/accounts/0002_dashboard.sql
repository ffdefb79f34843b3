-- What a merchant's dashboard needs: logins, many projects and keys, KYC.

-- Addresses are known in lower case from here on. Where two accounts differ in
-- nothing else, the older rows stay as they are.
UPDATE accounts SET email = lower(email)
 WHERE NOT EXISTS (SELECT 1 FROM accounts o WHERE o.id <> accounts.id AND lower(o.email) = lower(accounts.email));

ALTER TABLE projects ADD COLUMN kyc TEXT NOT NULL DEFAULT 'NONE'
  CHECK (kyc IN ('NONE', 'SUBMITTED', 'APPROVED', 'REJECTED', 'SUSPENDED'));

ALTER TABLE keys ADD COLUMN last_used_at {{int}} NOT NULL DEFAULT 0;

CREATE INDEX projects_of_account ON projects (account, id);

CREATE INDEX keys_of_project ON keys (project, id);

CREATE TABLE tokens (
  hash       TEXT PRIMARY KEY,
  account    TEXT NOT NULL REFERENCES accounts (id),
  created_at {{int}} NOT NULL,
  expires_at {{int}} NOT NULL,
  revoked_at {{int}} NOT NULL
) {{strict}};

CREATE INDEX tokens_of_account ON tokens (account, created_at);

-- Every step of a project's KYC, in order; a row is never changed.
CREATE TABLE kyc_moves (
  project    TEXT NOT NULL REFERENCES projects (id),
  seq        {{int}} NOT NULL,
  kyc_from   TEXT NOT NULL,
  kyc_to     TEXT NOT NULL,
  reason     TEXT NOT NULL,
  details    {{blob}} NOT NULL,
  created_at {{int}} NOT NULL,
  PRIMARY KEY (project, seq)
) {{strict}};
