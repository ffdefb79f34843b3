// Verifies a webhook that is signed by v1a of Standard Webhooks.
import { createPublicKey, verify as holds } from "node:crypto";
import { readFileSync } from "node:fs";

function verify(publicKey, id, timestamp, signatures, body) {
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const x = Buffer.from(publicKey.replace(/^whpk_/, ""), "base64").toString("base64url");
  const key = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  return signatures.split(" ").some((one) => {
    const [version, given] = one.split(",");
    return version === "v1a" && holds(null, signed, key, Buffer.from(given ?? "", "base64"));
  });
}

// In a server: the headers of the request, and its body as the bytes that came,
// before anything parses them.
const { TILL_WEBHOOK_PUBLIC_KEY, webhook_id, webhook_timestamp, webhook_signature } = process.env;
if (!verify(TILL_WEBHOOK_PUBLIC_KEY, webhook_id, webhook_timestamp, webhook_signature, readFileSync(0))) {
  console.error("the signature does not hold");
  process.exit(1);
}
console.log("verified");
