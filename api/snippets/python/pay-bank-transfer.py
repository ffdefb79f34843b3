# Makes the account number of a session: python3 pay-bank-transfer.py wsp_sess_…
# Calling it again gives the same one.
import json
import os
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(
    f"{os.environ['TILL_URL']}/v1/whatsapp/checkout/sessions/{sys.argv[1]}/pay/bank-transfer",
    method="POST",
    headers={"Authorization": "Bearer " + os.environ["TILL_SECRET_KEY"]},
)
try:
    with urllib.request.urlopen(request, timeout=45) as answer:
        print(json.dumps(json.load(answer)["data"]))
except urllib.error.HTTPError as refused:
    error = json.load(refused)["error"]
    sys.exit(f"{error['code']}: {error['message']} ({error['docUrl']})")
