// Live parts: whoever looks at one knows whether it is, and need not load the page again
// because Till was away for a moment.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { enter, open, start, until } from "./till.mjs";

const checkout = "/v1/whatsapp/checkout/sessions";
let till, web;

before(async () => {
  till = await start();
  web = await open(till);
});
after(async () => { await web?.close(); await till?.stop(); });

const opened = () => till.api("POST", checkout, { amount: 500000, customerEmail: "payer@example.com", customerName: "Amara Nwosu" });
const pays = async (id) => {
  const { accountNumber } = await till.api("POST", `${checkout}/${id}/pay/bank-transfer`);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber });
};
const reads = async (page, pattern) => pattern.test(await page.getByRole("main").innerText());

for (const [how, refuse, fault] of [
  ["a proxy had nobody to ask", (r) => r.fulfill({ status: 502, contentType: "text/html", body: "Bad Gateway" }), /status of 502/],
  ["nobody answered at all", (r) => r.abort("connectionrefused"), /ERR_CONNECTION_REFUSED/],
]) {
  test(`a page says that it is not live, and is live again, after ${how}`, async () => {
    const page = await web.page();
    const session = await opened();
    let away = true;
    await page.route("**/live", (r) => away ? refuse(r) : r.continue());
    await enter(page, till, "support", `/sessions/${session.id}`);
    await until("the page says that it is not live", () => reads(page, /Not live right now/));
    away = false;
    await pays(session.id);
    await until("the page shows the money", () => reads(page, /it is paid/));
    assert.equal(await reads(page, /Not live right now/), false);
    assert.deepEqual(web.faults.splice(0).filter((f) => !fault.test(f)), []);
  });
}

test("a page says that it is not live once its login has ended", async () => {
  const page = await web.page();
  const session = await opened();
  await enter(page, till, "support", `/sessions/${session.id}`);
  const other = await page.context().newPage();
  await other.goto(till.url + "/");
  await other.locator("details.me summary").click();
  await other.getByRole("button", { name: "Log out" }).click();
  await other.waitForURL((u) => u.pathname === "/login");
  await until("the page says that it is not live", () => reads(page, /Not live right now/));
  await page.context().close(); // it would ask on
  web.faults.splice(0); // the browser's own of a stream that is a page
});

test("tabs that nobody looks at take no connection from the one that is", async () => {
  const page = await web.page();
  const session = await opened();
  await enter(page, till, "support", "/sessions");
  const looks = (tab, at) => tab.evaluate((here) => { // headless, every tab says that it is looked at
    Object.defineProperty(document, "hidden", { value: !here, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, at);
  const tabs = [];
  for (let i = 0; i < 8; i++) { // a browser has six connections to one server
    const tab = await page.context().newPage();
    await tab.goto(`${till.url}/sessions/${session.id}`, { timeout: 15_000 });
    await looks(tab, false);
    tabs.push(tab);
  }
  await looks(tabs[0], true);
  await pays(session.id);
  await until("the tab that is looked at again shows the money", () => reads(tabs[0], /it is paid/));
  assert.equal(await reads(tabs[1], /it is paid/), false);
  await looks(tabs[1], true);
  await until("so does another one, of what came meanwhile", () => reads(tabs[1], /it is paid/));
  assert.deepEqual(web.faults.splice(0), []);
});
