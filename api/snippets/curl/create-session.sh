#!/bin/sh
# Opens a session for ₦5,000.00. Amounts are kobo.
# With the same Idempotency-Key it is done once, however often it is sent.
set -eu

curl --fail-with-body -sS "$TILL_URL/v1/whatsapp/checkout/sessions" \
  -H "Authorization: Bearer $TILL_SECRET_KEY" \
  -H "Content-Type: application/json" \
  -H "Idempotency-Key: $(openssl rand -hex 16)" \
  -d '{"amount": 500000, "customerEmail": "ada@example.com", "mode": "headless"}'
