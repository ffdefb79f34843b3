-- Up to which line of its log the words of a chat were taken, 0 for none: what
-- was written is kept for a time, what was understood and decided for good.
ALTER TABLE chats ADD COLUMN worn {{int}} NOT NULL DEFAULT 0;
