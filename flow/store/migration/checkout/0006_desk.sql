-- Who answers in a chat, why support should look at it, and for how many
-- seconds it keeps its messages (0: for ever). The log has the truth; these
-- columns are for finding it.
ALTER TABLE chats ADD COLUMN desk TEXT NOT NULL DEFAULT '' CHECK (desk IN ('', 'waiting', 'claimed', 'device'));
ALTER TABLE chats ADD COLUMN desk_by TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN desk_since {{int}} NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN flag TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN fades {{int}} NOT NULL DEFAULT 0;
CREATE INDEX chat_desk ON chats (desk_since) WHERE desk <> '' OR flag <> '';
