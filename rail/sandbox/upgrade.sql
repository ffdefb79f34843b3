-- Books of a bank that sent nothing out, opened by one that does: the kinds of
-- movement were fewer. schema.sql makes the table anew after this.
DROP INDEX movements_by_reference;
ALTER TABLE movements RENAME TO movements_before;
ALTER TABLE calls ADD COLUMN project TEXT NOT NULL DEFAULT '';
