-- A project's events are listed, and sent again, in the order of time.
DROP INDEX event_project;
CREATE INDEX event_project ON events (project, created_at, id);
