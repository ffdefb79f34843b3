-- From here on the secrets of endpoints are sealed (store/keyring.go). What is in
-- the clear is sealed by the start of a server, which has the key; this step only
-- keeps out programs that would take a sealed secret for a broken one.
SELECT 1;
