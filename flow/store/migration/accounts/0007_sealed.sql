-- From here on secret settings are sealed (store/keyring.go). What is in the clear
-- is sealed by the start of a server, which has the key; this step only keeps out
-- programs that would use a sealed secret as it stands.
SELECT 1;
