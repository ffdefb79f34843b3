// Makes the account number of a session: node pay-bank-transfer.mjs wsp_sess_…
// Calling it again gives the same one.
const session = process.argv[2];

const answer = await fetch(`${process.env.TILL_URL}/v1/whatsapp/checkout/sessions/${session}/pay/bank-transfer`, {
  method: "POST",
  headers: { Authorization: `Bearer ${process.env.TILL_SECRET_KEY}` },
});
const { status, data, error } = await answer.json();
if (!status) throw new Error(`${error.code}: ${error.message} (${error.docUrl})`);
console.log(JSON.stringify(data));
