-- Look-ups of people. The number that was looked up is kept nowhere: its HMAC
-- tells one from another, its mask is shown, and neither the names nor the date
-- that it was compared with are here.
CREATE TABLE verifications (
  id            TEXT PRIMARY KEY,
  project       TEXT NOT NULL,
  api_key       TEXT NOT NULL,
  type          TEXT NOT NULL CHECK (type IN ('bvn', 'nin')),
  fingerprint   TEXT NOT NULL CHECK (length(fingerprint) = 64),
  mask          TEXT NOT NULL CHECK (mask LIKE '*********__'),
  purpose       TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('PENDING', 'MATCHED', 'PARTIAL', 'NOT_MATCHED', 'FAILED')),
  first_name    TEXT NOT NULL CHECK (first_name IN ('', 'EXACT', 'PARTIAL', 'NONE')),
  last_name     TEXT NOT NULL CHECK (last_name IN ('', 'EXACT', 'PARTIAL', 'NONE')),
  date_of_birth TEXT NOT NULL CHECK (date_of_birth IN ('', 'EXACT', 'PARTIAL', 'NONE')),
  reason        TEXT NOT NULL,
  created_at    {{int}} NOT NULL,
  due_at        {{int}} NOT NULL,
  done_at       {{int}} NOT NULL,
  CHECK ((status = 'PENDING') = (done_at = 0)),
  CHECK ((status IN ('PENDING', 'FAILED')) = (first_name = ''))
) {{strict}};
CREATE INDEX verification_pending ON verifications (due_at) WHERE status = 'PENDING';
CREATE INDEX verification_done ON verifications (created_at) WHERE status <> 'PENDING';

-- Who looked a person up, why, and what came of it: one row for each look-up,
-- kept when the verification is gone. Append-only.
CREATE TABLE lookups (
  verification TEXT PRIMARY KEY,
  project      TEXT NOT NULL,
  api_key      TEXT NOT NULL,
  type         TEXT NOT NULL CHECK (type IN ('bvn', 'nin')),
  mask         TEXT NOT NULL CHECK (mask LIKE '*********__'),
  purpose      TEXT NOT NULL,
  at           {{int}} NOT NULL,
  ended_at     {{int}} NOT NULL,
  outcome      TEXT NOT NULL CHECK (outcome IN ('MATCHED', 'PARTIAL', 'NOT_MATCHED', 'FAILED')),
  reason       TEXT NOT NULL
) {{strict}};
CREATE INDEX lookup_project ON lookups (project, at);
