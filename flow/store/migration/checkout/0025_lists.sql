-- A list of the sessions of one state is read by that state, newest first: where
-- few of a million are paid, those few are read.
CREATE INDEX session_status ON sessions (project, status, id);
