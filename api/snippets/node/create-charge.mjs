// Opens a session in WhatsApp and makes its account number: give checkoutUrl to
// the payer, or show virtualAccount.
import { randomUUID } from "node:crypto";

const answer = await fetch(`${process.env.TILL_URL}/v1/charges`, {
  method: "POST",
  headers: {
    Authorization: `Bearer ${process.env.TILL_SECRET_KEY}`,
    "Content-Type": "application/json",
    "Idempotency-Key": randomUUID(),
  },
  body: JSON.stringify({ amount: 500000, customerEmail: "ada@example.com" }),
});
const { status, data, error } = await answer.json();
if (!status) throw new Error(`${error.code}: ${error.message} (${error.docUrl})`);
console.log(JSON.stringify(data));
