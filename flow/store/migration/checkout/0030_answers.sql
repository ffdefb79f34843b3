-- What endpoints answered is kept for a while: the tries that hold some of it, oldest
-- first.
CREATE INDEX delivery_answered ON delivery_attempts (at) WHERE length(body) > 0;
