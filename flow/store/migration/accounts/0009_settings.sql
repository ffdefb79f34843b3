-- What a merchant sets for all sessions of a project that do not say otherwise, as
-- JSON.
ALTER TABLE projects ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
