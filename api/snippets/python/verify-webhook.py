# Verifies a webhook by the Standard Webhooks scheme.
import base64
import hashlib
import hmac
import os
import sys
import time


def verify(secret: str, id: str, timestamp: str, signatures: str, body: bytes) -> bool:
    try:
        age = abs(time.time() - int(timestamp))
    except (ValueError, OverflowError):
        return False
    if age > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{id}.{timestamp}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(want.encode(), one.encode()) for one in signatures.split(" "))


# In a server: the headers of the request, and its body as the bytes that came,
# before anything parses them.
env = os.environ
if not verify(env["TILL_WEBHOOK_SECRET"], env["webhook_id"], env["webhook_timestamp"], env["webhook_signature"], sys.stdin.buffer.read()):
    sys.exit("the signature does not hold")
print("verified")
