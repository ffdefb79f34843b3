// Every page of the console, in both themes and at two widths: no serious fault
// of accessibility, nothing wider than the screen, no error, nothing from another
// host, and small.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, enter, open, start, until } from "./till.mjs";

const themes = ["light", "dark"];
const widths = [{ width: 360, height: 740 }, { width: 1280, height: 900 }];
const checkout = "/v1/whatsapp/checkout/sessions";
let till, web, pages;

before(async () => {
  till = await start();
  web = await open(till);
  const hostile = `<script>alert(1)</script>"'>`;
  const open1 = await till.api("POST", checkout, { amount: 450000, customerEmail: "ada@example.com", customerName: hostile, customerPhone: "08031234567" });
  const hook = await till.api("POST", "/v1/webhook-endpoints", { url: "http://127.0.0.1:9009/hook" });
  const over = (await till.api("POST", checkout, { amount: 450000, customerEmail: "obi@example.com", customerName: "Obi Eze" })).id;
  const { accountNumber } = await till.api("POST", `${checkout}/${over}/pay/bank-transfer`);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber, amount: 460000 });
  const talked = await till.api("POST", checkout, { amount: 500000, customerEmail: "ada@example.com", mode: "chat" });
  const { phone } = await till.api("POST", "/v1/test/phones", { pushName: "Oluwaseun Adebayo-Ogunlesi of a Family with a Very Long Name" });
  await till.api("POST", `/v1/test/phones/${phone}/messages`, { text: new URL(talked.checkoutUrl).searchParams.get("text") });
  await till.api("GET", `/v1/test/phones/${phone}/messages?wait=20`);
  const events = await till.api("GET", "/v1/events");
  const much = (await till.api("POST", checkout, { amount: 450000, customerEmail: "efe@example.com", customerName: "Efe Ovie" })).id;
  const to = await till.api("POST", `${checkout}/${much}/pay/bank-transfer`);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber: to.accountNumber, amount: 20450000 });
  await till.api("PUT", "/v1/test/bank/conditions", { payouts: "fail" });
  const settled = [];
  for (const ahead of [8, 9]) { // the first one fails, and the second has its money
    const date = new Date(Date.now() + ahead * 86400000).toISOString().slice(0, 10);
    await until("a payout is made", async () => (await till.api("POST", "/v1/test/settlements/run", { date })).items.length);
    const { items: [{ id }] } = await till.api("GET", "/v1/settlements");
    await until("the bank has answered", async () => ["FAILED", "SUCCEEDED"].includes((await till.api("GET", `/v1/settlements/${id}`)).status));
    await till.api("PUT", "/v1/test/bank/conditions", {});
    settled.push(id);
  }
  const asker = await web.page();
  await enter(asker, till, "support", `/sessions/${much}`);
  await until("the money is here", async () => { await asker.goto(`${till.url}/sessions/${much}`); return asker.getByRole("button", { name: "Accept it" }).count(); });
  const decide = asker.locator("form", { has: asker.getByRole("button", { name: "Accept it" }) });
  await decide.getByLabel("Why").fill("The order grew");
  await decide.getByLabel("I know that this cannot be undone").check();
  asker.on("dialog", (d) => d.accept());
  await decide.getByRole("button", { name: "Accept it" }).click();
  await asker.getByText("It waits for a second person").waitFor();
  await asker.goto(`${till.url}/sessions?q=4500`);
  await asker.context().close();
  const today = new Date().toISOString().slice(0, 10);
  pages = {
    "": ["/login", "/signup", "/docs/errors", "/docs/errors/rail_timeout", "/docs/snippets"],
    owner: ["/", "/sessions", "/sessions?q=4500", "/sessions?q=nobody+at+all", "/settlements", "/settlements?status=PENDING", "/refunds", "/refunds?status=FAILED", "/reconciliation", `/reconciliation?date=${today}`, ...settled.map((id) => `/settlements/${id}`), `/sessions/${much}`, "/exceptions?queue=second", `/sessions/${open1.id}`, `/sessions/${over}`, `/sessions/${talked.id}/replay`, "/exceptions",
      "/inbox", "/developers", "/developers/webhooks", `/developers/webhooks/${hook.id}`, `/developers/events/${events.items[0].id}`, "/developers/requests",
      "/developers/snippets", "/go-live", "/team", "/password", "/team/audit", "/team/audit?from=2026-01-01&action=payment", "/settings", "/try", "/phone", "/sessions/wsp_sess_00000000000000000000000000"],
    operator: ["/", "/sessions", "/settlements", "/exceptions", "/ops", "/ops/merchants", "/ops/doctor", "/ops/audit", "/ops/people"],
  };
});
after(async () => { await web?.close(); await till?.stop(); });

// crowded names what nobody can read or hit: fields and buttons that lie on each
// other, names that stand behind another field, and cells so narrow that their words are cut into columns of letters.
function crowded() {
  const seen = [...document.querySelectorAll("main :is(label, input, select, textarea, button)")]
    .map((e) => ({ e, r: e.getBoundingClientRect() })).filter(({ e, r }) => r.width > 1 && r.height > 1 && e.checkVisibility({ visibilityProperty: true }));
  const name = (e) => e.id || e.textContent.trim().slice(0, 30) || e.name;
  const wrong = [];
  seen.forEach((a, i) => seen.slice(i + 1).forEach((b) => {
    const wide = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left), high = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
    if (wide > 1 && high > 1 && !a.e.contains(b.e) && !b.e.contains(a.e)) wrong.push(`${name(a.e)} lies on ${name(b.e)}`);
  }));
  for (const { e, r } of seen) { // the name of the next line's field, behind another field
    const own = e.control?.getBoundingClientRect();
    const other = own && own.top >= r.bottom - 1 && own.left < r.left - 2 && seen.find((o) => o.e.matches("input, select, textarea") && o.r.top < r.bottom && o.r.bottom > r.top && o.r.right <= r.left + 1);
    if (other) wrong.push(`${name(e)} stands behind ${name(other.e)}`);
  }
  for (const cell of document.querySelectorAll("main td")) {
    const r = cell.getBoundingClientRect();
    if (r.width && r.width < 90 && cell.innerText.split(/\s+/).some((word) => word.length * 4 > r.width)) wrong.push(`"${cell.innerText.slice(0, 30)}" stands in ${Math.round(r.width)} px`);
  }
  return wrong;
}

for (const colorScheme of themes) {
  for (const viewport of widths) {
    test(`${colorScheme}, ${viewport.width} px`, async () => {
      const wrong = [];
      for (const [role, addresses] of Object.entries(pages)) {
        const page = await web.page({ viewport, colorScheme });
        if (role) await enter(page, till, role);
        for (const address of addresses) {
          const answer = await page.goto(till.url + address);
          const expected = address.includes("0000000") ? 404 : 200;
          if (answer.status() !== expected) wrong.push(`${role} ${address}: ${answer.status()}`);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          if (wide > 0) wrong.push(`${role} ${address} is ${wide} px wider than the screen`);
          wrong.push(...(await page.evaluate(crowded)).map((w) => `${role} ${address} ${w}`));
          wrong.push(...(await axe(page)).map((w) => `${role} ${address} ${w}`));
        }
        await page.context().close();
      }
      assert.deepEqual([...wrong, ...web.faults], []);
    });
  }
}

test("the first page is small", async () => {
  const page = await web.page();
  await enter(page, till, "owner");
  let bytes = 0;
  page.on("response", async (r) => { bytes += (await r.body().catch(() => "")).length; });
  await page.goto(till.url + "/", { waitUntil: "networkidle" });
  assert.ok(bytes > 0 && bytes <= 100_000, `${bytes} bytes`);
  await page.context().close();
});

// The name stands on every page, and beside the one of another project.
test("a project whose name is one long word fits a phone", async () => {
  const page = await web.page({ viewport: widths[0] });
  await enter(page, till, "owner", "/developers");
  await page.goto(`${till.url}/developers`);
  await page.getByLabel("New project").fill("Konga".repeat(20));
  await page.getByRole("button", { name: "Make a project" }).click();
  await page.getByRole("heading", { name: "Its test keys" }).waitFor();
  const wrong = [];
  for (const address of ["/developers", "/", "/sessions", "/settlements", "/refunds", "/reconciliation", "/exceptions", "/inbox", "/go-live", "/settings", "/team"]) {
    await page.goto(till.url + address);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) wrong.push(`${address} is ${wide} px wider than the screen`);
    wrong.push(...(await page.evaluate(crowded)).map((w) => `${address} ${w}`), ...(await axe(page)).map((w) => `${address} ${w}`));
  }
  assert.deepEqual([...wrong, ...web.faults], []);
  await page.context().close();
});
