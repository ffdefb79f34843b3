-- What somebody waits for is found before what is due for longer.
CREATE INDEX delivery_awaited ON deliveries (next_at) WHERE state = 'pending' AND cause IN ('ping', 'resend');

-- What is held for longest, to be given up in that order.
CREATE INDEX delivery_held_made ON deliveries (endpoint, created_at, id) WHERE state = 'held';

-- Until when each secret of an endpoint but the first signs: there can be two.
ALTER TABLE endpoints ADD COLUMN retiring TEXT NOT NULL DEFAULT '[]';
UPDATE endpoints SET retiring = '[' || retiring_at || ']' WHERE retiring_at > 0;
ALTER TABLE endpoints DROP COLUMN retiring_at;
