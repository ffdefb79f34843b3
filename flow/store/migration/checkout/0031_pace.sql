-- How many webhooks a second an endpoint's merchant wants to be sent at most; 0: as
-- many as it takes.
ALTER TABLE endpoints ADD COLUMN max_per_second {{int}} NOT NULL DEFAULT 0 CHECK (max_per_second BETWEEN 0 AND 100);
