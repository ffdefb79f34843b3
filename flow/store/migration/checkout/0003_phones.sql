-- Whose the pretend phones of the test environment are: another project's do
-- not exist.
CREATE TABLE phones (
  phone      TEXT PRIMARY KEY,
  project    TEXT NOT NULL,
  created_at {{int}} NOT NULL
) {{strict}};
