-- A refund is found by what the bank calls its transfer.
CREATE INDEX refund_transfer ON refunds (rail_transaction_id) WHERE rail_transaction_id <> '';
