#!/bin/sh
# Opens a session for ₦5,000.00. Amounts are kobo.
# Run again with the same order, it gives back the same session.
set -eu

order="${1:-order-$(date +%s)}"
curl --fail-with-body -sS "$TILL_URL/v1/whatsapp/checkout/sessions" \
  -H "Authorization: Bearer $TILL_SECRET_KEY" \
  -H "Content-Type: application/json" \
  -H "Idempotency-Key: $order" \
  -d '{"amount": 500000, "customerEmail": "ada@example.com", "mode": "headless"}'
