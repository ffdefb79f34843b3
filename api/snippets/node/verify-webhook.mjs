// Verifies a webhook by the Standard Webhooks scheme.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

function verify(secret, id, timestamp, signatures, body) {
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const want = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(" ").some((one) => {
    const [version, given] = one.split(",");
    const bytes = Buffer.from(given ?? "", "base64");
    return version === "v1" && bytes.length === want.length && timingSafeEqual(bytes, want);
  });
}

// In a server: the headers of the request, and its body as the bytes that came,
// before anything parses them.
const { TILL_WEBHOOK_SECRET, webhook_id, webhook_timestamp, webhook_signature } = process.env;
if (!verify(TILL_WEBHOOK_SECRET, webhook_id, webhook_timestamp, webhook_signature, readFileSync(0))) {
  console.error("the signature does not hold");
  process.exit(1);
}
console.log("verified");
