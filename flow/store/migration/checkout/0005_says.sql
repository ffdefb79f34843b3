-- How often the network said that it will not take a message: after a few times
-- it is given up.
ALTER TABLE says ADD COLUMN refusals {{int}} NOT NULL DEFAULT 0;
