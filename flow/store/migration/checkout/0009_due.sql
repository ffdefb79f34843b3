-- A session's own row says when it is over: nothing else is kept for that until
-- then. swept says that its time has come and was taken note of.
ALTER TABLE sessions ADD COLUMN swept {{int}} NOT NULL DEFAULT 0 CHECK (swept IN (0, 1));
UPDATE sessions SET swept = 1 WHERE id IN (SELECT subject FROM tasks WHERE kind = 'session.expire');
UPDATE sessions SET swept = 1 WHERE status NOT IN ('PENDING', 'PROCESSING');
CREATE INDEX session_due ON sessions (expires_at) WHERE swept = 0;

-- That a session was opened stands in its row.
DELETE FROM log WHERE kind = 'opened' AND stream = session;
