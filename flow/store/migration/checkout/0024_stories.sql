-- The story of a session is read in the order of time, a page at a time.
DROP INDEX log_session;
CREATE INDEX log_session ON log (session, at, stream, seq) WHERE session <> '';
