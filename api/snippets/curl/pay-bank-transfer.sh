#!/bin/sh
# Makes the account number of a session: sh pay-bank-transfer.sh wsp_sess_…
# Calling it again gives the same one.
set -eu

curl --fail-with-body -sS -X POST "$TILL_URL/v1/whatsapp/checkout/sessions/$1/pay/bank-transfer" \
  -H "Authorization: Bearer $TILL_SECRET_KEY"
