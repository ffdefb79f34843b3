-- A payer reads the session id of the transfer from their bank's receipt, or from ours.
CREATE INDEX payment_nip ON payments (nip_session) WHERE nip_session <> '';
