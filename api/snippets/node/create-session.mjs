// Opens a session for ₦5,000.00. Amounts are kobo.
// With the same Idempotency-Key it is done once, however often it is sent.
import { randomUUID } from "node:crypto";

const answer = await fetch(`${process.env.TILL_URL}/v1/whatsapp/checkout/sessions`, {
  method: "POST",
  headers: {
    Authorization: `Bearer ${process.env.TILL_SECRET_KEY}`,
    "Content-Type": "application/json",
    "Idempotency-Key": randomUUID(),
  },
  body: JSON.stringify({ amount: 500000, customerEmail: "ada@example.com", mode: "headless" }),
});
const { status, data, error } = await answer.json();
if (!status) throw new Error(`${error.code}: ${error.message} (${error.docUrl})`);
console.log(JSON.stringify(data));
