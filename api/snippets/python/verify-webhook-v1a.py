# Verifies a webhook that is signed by v1a of Standard Webhooks. Python's own library
# knows no Ed25519: pip install cryptography
import base64
import os
import sys
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify(public_key: str, id: str, timestamp: str, signatures: str, body: bytes) -> bool:
    try:
        age = abs(time.time() - int(timestamp))
    except (ValueError, OverflowError):
        return False
    if age > 300:
        return False
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    signed = f"{id}.{timestamp}.".encode() + body
    for one in signatures.split(" "):
        if not one.startswith("v1a,"):
            continue
        try:
            key.verify(base64.b64decode(one.removeprefix("v1a,")), signed)
            return True
        except (ValueError, InvalidSignature):  # no base64, or of another
            continue
    return False


# In a server: the headers of the request, and its body as the bytes that came,
# before anything parses them.
env = os.environ
if not verify(env["TILL_WEBHOOK_PUBLIC_KEY"], env["webhook_id"], env["webhook_timestamp"], env["webhook_signature"], sys.stdin.buffer.read()):
    sys.exit("the signature does not hold")
print("verified")
