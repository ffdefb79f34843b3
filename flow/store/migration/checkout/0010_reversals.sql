-- Money that a bank took back after it had come: each time once, by the rail's
-- own name for it. payment is '' while the credit is not known to us.
CREATE TABLE reversals (
  rail_transaction_id TEXT PRIMARY KEY CHECK (rail_transaction_id <> ''),
  reverses            TEXT NOT NULL,
  payment             TEXT NOT NULL,
  project             TEXT NOT NULL,
  session             TEXT NOT NULL,
  amount              {{int}} NOT NULL CHECK (amount > 0),
  taken_at            {{int}} NOT NULL,
  received_at         {{int}} NOT NULL
) {{strict}};
CREATE INDEX reversal_payment ON reversals (payment) WHERE payment <> '';
CREATE INDEX reversal_waits ON reversals (reverses, session) WHERE payment = '';

-- Lines that undo what a payment booked stand behind that payment's own lines,
-- and name the reversal that they are of.
ALTER TABLE postings ADD COLUMN reversal TEXT NOT NULL DEFAULT '';
