#!/bin/sh
# Verifies a webhook by the Standard Webhooks scheme, with openssl.
# The body comes on standard input, to the byte as it was received.
set -euf

case $webhook_timestamp in
'' | *[!0-9]*)
  echo "not a time" >&2
  exit 1
  ;;
esac

body=$(mktemp)
trap 'rm -f "$body"' EXIT
cat >"$body"

age=$(($(date +%s) - webhook_timestamp))
if [ "$age" -gt 300 ] || [ "$age" -lt -300 ]; then
  echo "too old or too new" >&2
  exit 1
fi

key=$(printf %s "${TILL_WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
want=v1,$({ printf %s "$webhook_id.$webhook_timestamp."; cat "$body"; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

for signature in $webhook_signature; do
  if [ "$signature" = "$want" ]; then
    echo "verified"
    exit 0
  fi
done
echo "the signature does not hold" >&2
exit 1
