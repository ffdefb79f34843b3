#!/bin/sh
# Opens a session in WhatsApp and makes its account number: give data.checkoutUrl
# to the payer, or show data.virtualAccount.
set -eu

curl --fail-with-body -sS "$TILL_URL/v1/charges" \
  -H "Authorization: Bearer $TILL_SECRET_KEY" \
  -H "Content-Type: application/json" \
  -H "Idempotency-Key: $(openssl rand -hex 16)" \
  -d '{"amount": 500000, "customerEmail": "ada@example.com"}'
