// Every page of the console, in both themes and at two widths: no serious fault
// of accessibility, nothing wider than the screen, no error, nothing from another
// host, and small.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, enter, open, start } from "./till.mjs";

const themes = ["light", "dark"];
const widths = [{ width: 360, height: 740 }, { width: 1280, height: 900 }];
let till, web, session;

before(async () => {
  till = await start();
  web = await open(till);
  const hostile = `<script>alert(1)</script>"'>`;
  session = (await till.api("POST", "/v1/whatsapp/checkout/sessions", { amount: 450000, customerEmail: "ada@example.com", customerName: hostile, customerPhone: "08031234567" })).id;
  await till.api("POST", "/v1/webhook-endpoints", { url: "http://127.0.0.1:9009/hook" });
  const paid = (await till.api("POST", "/v1/whatsapp/checkout/sessions", { amount: 450000, customerEmail: "obi@example.com", customerName: "Obi Eze" })).id;
  const { accountNumber } = await till.api("POST", `/v1/whatsapp/checkout/sessions/${paid}/pay/bank-transfer`);
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber, amount: 460000 });
});
after(async () => { await web?.close(); await till?.stop(); });

// The addresses that each role is shown. What one may not see is tested with the
// program itself.
const pages = () => ({
  "": ["/login"],
  owner: ["/"],
});

for (const theme of themes) {
  for (const viewport of widths) {
    test(`${theme}, ${viewport.width} px`, async () => {
      const wrong = [];
      for (const [role, addresses] of Object.entries(pages())) {
        const page = await web.page({ viewport, colorScheme: theme });
        if (role) await enter(page, till, role);
        for (const address of addresses) {
          const answer = await page.goto(till.url + address);
          if (answer.status() !== 200) wrong.push(`${role} ${address}: ${answer.status()}`);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          if (wide > 0) wrong.push(`${role} ${address} is ${wide} px wider than the screen`);
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
