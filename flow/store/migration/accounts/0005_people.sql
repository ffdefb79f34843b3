-- Who may log in to the console beside the owners of accounts. Operators belong
-- to no account.
CREATE TABLE people (
  id            TEXT PRIMARY KEY,
  account       TEXT NOT NULL,
  email         TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  role          TEXT NOT NULL CHECK (role IN ('developer', 'support', 'operator')),
  created_at    {{int}} NOT NULL,
  ended_at      {{int}} NOT NULL,
  CHECK ((role = 'operator') = (account = ''))
) {{strict}};

CREATE INDEX people_of_account ON people (account, id);

-- One login to the console from one browser.
CREATE TABLE visits (
  hash       TEXT PRIMARY KEY,
  account    TEXT NOT NULL,
  person     TEXT NOT NULL,
  email      TEXT NOT NULL,
  role       TEXT NOT NULL CHECK (role IN ('owner', 'developer', 'support', 'operator')),
  created_at {{int}} NOT NULL,
  expires_at {{int}} NOT NULL,
  ended_at   {{int}} NOT NULL
) {{strict}};

CREATE INDEX visits_of_who ON visits (email, created_at);

-- What people did, and why. A row is never changed.
CREATE TABLE audit (
  id          TEXT PRIMARY KEY,
  at          {{int}} NOT NULL,
  actor       TEXT NOT NULL,
  role        TEXT NOT NULL,
  account     TEXT NOT NULL,
  project     TEXT NOT NULL,
  environment TEXT NOT NULL,
  action      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  reason      TEXT NOT NULL
) {{strict}};

CREATE INDEX audit_of_account ON audit (account, id);
CREATE INDEX audit_of_subject ON audit (subject, id);

{{sqlite}} CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is never changed'); END;
{{sqlite}} CREATE TRIGGER audit_never_forgets BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is never changed'); END;
{{postgres}} CREATE FUNCTION audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the audit log is never changed'; END $$;
{{postgres}} CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_stays();
