// What people read stays as they read it, whatever merchants and payers are called
// and however much there is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { enter, open, start } from "./till.mjs";

const checkout = "/v1/whatsapp/checkout/sessions";
let till, web;

before(async () => { till = await start(); web = await open(till); });
after(async () => { await web?.close(); await till?.stop(); });

const opened = (more = {}) => till.api("POST", checkout, { amount: 450000, customerEmail: "ada@example.com", ...more });
const account = async (id) => (await till.api("POST", `${checkout}/${id}/pay/bank-transfer`)).accountNumber;

test("what is opened in a session stays open when news comes, and the keyboard where it is", async () => {
  const { id } = await opened();
  const accountNumber = await account(id);
  const page = await web.page();
  await enter(page, till, "support", `/sessions/${id}`);
  await page.locator(".timeline summary").nth(1).focus();
  await page.keyboard.press("Enter");
  const at = () => page.evaluate(() => [[...document.querySelectorAll(".timeline details")].findIndex((d) => d.open), document.querySelectorAll(".timeline details[open]").length, document.activeElement.tagName]);
  assert.deepEqual(await at(), [1, 1, "SUMMARY"]);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber });
  await page.getByRole("heading", { name: "Money that came" }).waitFor();
  assert.deepEqual(await at(), [1, 1, "SUMMARY"]);
  assert.deepEqual(web.faults, []);
  await page.context().close();
});
