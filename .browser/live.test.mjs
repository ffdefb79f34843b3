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

// payer opens a session in a chat, and writes.
async function payer(name, ...words) {
  const s = await till.api("POST", checkout, { amount: 500000, customerEmail: "payer@example.com", mode: "chat" });
  const { phone } = await till.api("POST", "/v1/test/phones", { pushName: name });
  const says = (text) => till.api("POST", `/v1/test/phones/${phone}/messages`, { text });
  let heard = 0;
  for (const text of [new URL(s.checkoutUrl).searchParams.get("text"), ...words]) {
    await says(text);
    await until("the bot answers", async () => {
      const { items } = await till.api("GET", `/v1/test/phones/${phone}/messages?wait=5`);
      const now = items.filter((m) => !m.fromMe).length;
      return now > heard && (heard = now);
    });
  }
  return { says, session: s };
}
const shown = (page) => page.locator("p.sr[role=status]").textContent();
const hides = (page, hidden) => page.evaluate((here) => {
  Object.defineProperty(document, "hidden", { value: here, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

test("who leaves the inbox open learns of a payer who asks for a person", async () => {
  const page = await web.page({ viewport: { width: 1280, height: 260 } });
  await payer("Bola Ade", "9");
  await enter(page, till, "support", "/inbox");
  const first = page.getByRole("link", { name: /Bola Ade/ });
  await first.waitFor();
  await first.focus();
  const scrolled = await page.evaluate(() => { window.scrollTo(0, 40); return window.scrollY; });
  await payer("Chidi Okeke", "9");
  await page.getByRole("link", { name: /Chidi Okeke/ }).waitFor();
  assert.match(await page.title(), /^\(2\) TEST · Inbox/);
  await until("a screen reader is told", async () => /2 payers wait for an answer: Bola Ade, Chidi Okeke\./.test(await shown(page)));
  assert.equal(await first.evaluate((a) => a === document.activeElement), true, "the focus is where it was");
  assert.equal(await page.evaluate(() => window.scrollY), scrolled);
  await hides(page, true);
  await page.clock.install(); // nobody looks at it: it looks by itself now and then
  await hides(page, true);
  await payer("Dupe Bello", "9");
  await until("its title says so", async () => { await page.clock.fastForward(31_000); return /^\(3\) /.test(await page.title()); });
  await page.context().close();
  assert.deepEqual(web.faults.splice(0), []);
});

test("who writes an answer reads what comes meanwhile, and goes on writing", async () => {
  const page = await web.page(), other = await web.page();
  const { says, session } = await payer("Efe Ovie", "1", "9");
  await enter(page, till, "support", "/inbox");
  await page.getByRole("link", { name: /Efe Ovie/ }).click();
  await page.getByLabel(/^Why/).fill("The payer asks");
  await page.keyboard.press("Enter");
  const answer = page.getByLabel(/Your answer/);
  await answer.fill("Good day Efe, one mom");
  await answer.press("ArrowLeft");
  await says("are you there?");
  await page.locator(".bubble", { hasText: "are you there?" }).waitFor();
  await page.keyboard.type("x");
  assert.equal(await answer.inputValue(), "Good day Efe, one moxm");
  assert.match(await page.title(), /^\(1\) TEST · /);
  assert.equal(await shown(page), "Efe Ovie wrote: are you there?");
  await pays(session.id);
  await until("the money is shown", () => reads(page, /₦5,000\.00 of ₦5,000\.00 paid/));
  await enter(other, till, "owner", new URL(page.url()).pathname);
  await other.goto(page.url());
  await until("others read who has it", () => reads(other, /support of \S+ has this chat/));
  await page.getByRole("button", { name: "Give it back to the bot" }).click();
  await until("others read that the bot answers", () => reads(other, /The bot answers\./));
  for (const p of [page, other]) await p.context().close();
  assert.deepEqual(web.faults.splice(0), []);
});

test("who goes through rows by keys keeps their place when a part beside them comes anew", async () => {
  const page = await web.page();
  await enter(page, till, "operator", "/ops");
  for (const to of ["off", "on", "off", "on"]) {
    await page.evaluate(async (to) => {
      const form = document.querySelector('form[action="/ops/methods/card"]');
      await fetch(form.action, { method: "POST", body: new URLSearchParams({ csrf: form.csrf.value, reason: "tried out", confirm: "yes", to }) });
    }, to);
  }
  await page.goto(page.url());
  const rows = page.locator("section[aria-labelledby=moves] tbody tr"), at = page.locator("tr.at");
  await until("a row is reached", async () => { await page.keyboard.press("j"); return /\bat\b/.test(await rows.nth(1).getAttribute("class") ?? ""); });
  await page.evaluate(() => document.querySelector("[data-live]").dispatchEvent(new CustomEvent("live", { bubbles: true })));
  await page.keyboard.press("j");
  assert.equal(await at.count(), 1, "one row is marked");
  assert.match(await rows.nth(2).getAttribute("class") ?? "", /\bat\b/);
  await page.context().close();
  assert.deepEqual(web.faults.splice(0), []);
});

test("an inbox of test shows nobody of live once that is looked at on another page", async () => {
  const page = await web.page();
  await payer("Gozie Eze", "9");
  await enter(page, till, "support", "/inbox");
  await page.getByRole("link", { name: /Gozie Eze/ }).waitFor();
  const other = await page.context().newPage();
  await other.goto(`${till.url}/inbox`);
  await other.evaluate(async () => {
    const csrf = document.querySelector("input[name=csrf]").value;
    await fetch("/choose", { method: "POST", body: new URLSearchParams({ csrf, project: csrf.split(".")[1], env: "live" }) });
  });
  await hides(page, true);
  await hides(page, false);
  await until("it says that it is not live", () => reads(page, /Not live right now/));
  assert.equal(await reads(page, /Gozie Eze/), true);
  await page.context().close();
  assert.deepEqual(web.faults.splice(0).filter((f) => !/status of 403/.test(f)), []);
});
