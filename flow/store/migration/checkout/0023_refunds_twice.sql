-- What of a refund left beyond its amount, and has not come back: the bank sent it
-- under more than one name.
ALTER TABLE refunds ADD COLUMN overpaid {{int}} NOT NULL DEFAULT 0 CHECK (overpaid >= 0);
CREATE INDEX refund_overpaid ON refunds (id) WHERE overpaid > 0;
