#!/bin/sh
# Verifies a webhook that is signed by v1a of Standard Webhooks, with OpenSSL 3.
# The body comes on standard input, to the byte as it was received.
set -euf

case $webhook_timestamp in
'' | *[!0-9]*)
  echo "not a time" >&2
  exit 1
  ;;
esac

age=$(($(date +%s) - webhook_timestamp))
if [ "$age" -gt 300 ] || [ "$age" -lt -300 ]; then
  echo "too old or too new" >&2
  exit 1
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{ printf %s "$webhook_id.$webhook_timestamp."; cat; } >"$dir/signed"
# In PEM an Ed25519 key is always these bytes, and then the key.
printf '%s\n' "-----BEGIN PUBLIC KEY-----" "MCowBQYDK2VwAyEA${TILL_WEBHOOK_PUBLIC_KEY#whpk_}" "-----END PUBLIC KEY-----" >"$dir/key"

for signature in $webhook_signature; do
  [ "${signature#v1a,}" != "$signature" ] || continue
  printf %s "${signature#v1a,}" | openssl base64 -d -A >"$dir/signature" || continue
  if openssl pkeyutl -verify -pubin -inkey "$dir/key" -rawin -in "$dir/signed" -sigfile "$dir/signature" >/dev/null; then
    echo "verified"
    exit 0
  fi
done
echo "the signature does not hold" >&2
exit 1
