# Opens a session in WhatsApp and makes its account number: give checkoutUrl to
# the payer, or show virtualAccount.
import json
import os
import sys
import urllib.error
import urllib.request
import uuid

request = urllib.request.Request(
    os.environ["TILL_URL"] + "/v1/charges",
    method="POST",
    headers={
        "Authorization": "Bearer " + os.environ["TILL_SECRET_KEY"],
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid.uuid4()),
    },
    data=json.dumps({"amount": 500000, "customerEmail": "ada@example.com"}).encode(),
)
try:
    with urllib.request.urlopen(request, timeout=45) as answer:
        print(json.dumps(json.load(answer)["data"]))
except urllib.error.HTTPError as refused:
    error = json.load(refused)["error"]
    sys.exit(f"{error['code']}: {error['message']} ({error['docUrl']})")
