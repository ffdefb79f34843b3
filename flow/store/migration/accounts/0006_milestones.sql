-- What a project has shown of its integration before it goes live: seen by Till in
-- its traffic, or said by somebody.
CREATE TABLE milestones (
  project   TEXT NOT NULL REFERENCES projects (id),
  milestone TEXT NOT NULL,
  at        {{int}} NOT NULL,
  said_by   TEXT NOT NULL,
  PRIMARY KEY (project, milestone)
) {{strict}};
