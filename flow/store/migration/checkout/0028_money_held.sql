-- What leaves can be held, too: payouts and refunds.
ALTER TABLE switches RENAME TO switches_before;
CREATE TABLE switches (
  kind       TEXT NOT NULL CHECK (kind IN ('number', 'method', 'merchant', 'money')),
  name       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state <> ''),
  PRIMARY KEY (kind, name)
) {{strict}};
INSERT INTO switches (kind, name, state) SELECT kind, name, state FROM switches_before;
DROP TABLE switches_before;
