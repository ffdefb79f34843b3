// A supporter knows no more than what the payer says. Each of twelve cases is
// found and explained by the console in at most four actions: typing, pressing a
// key and following a link count as one each.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { enter, open, start, until } from "./till.mjs";

const checkout = "/v1/whatsapp/checkout/sessions";
let till, web, page;

const ask = (method, where, body) => till.api(method, where, body);
const session = async (name, amount, more = {}) => ask("POST", checkout, { amount, customerEmail: "payer@example.com", customerName: name, ...more });
const account = async (id, more) => (await ask("POST", `${checkout}/${id}/pay/bank-transfer`, more)).accountNumber;
const transfer = (accountNumber, amount, more = {}) => ask("POST", "/v1/test/bank/transfers", { accountNumber, amount, ...more });
const advance = (minutes) => ask("POST", "/v1/test/clock", { advanceSeconds: Math.round(minutes * 60) });

const becomes = (id, status) => until(`${id} is ${status}`, async () => (await ask("GET", `${checkout}/${id}`)).status === status);
const has = (id, exception) => until(`${id} has ${exception}`, async () => (await ask("GET", `${checkout}/${id}`)).exceptions.includes(exception));

before(async () => {
  till = await start();
  web = await open(till);
  page = await web.page();
});
after(async () => { await web?.close(); await till?.stop(); });

// hand counts what a supporter does.
function hand() {
  let actions = 0;
  return {
    get actions() { return actions; },
    async search(words) {
      await page.goto(till.url + "/sessions"); // where a supporter sits
      await page.getByRole("searchbox").fill(words); actions++;
      await page.keyboard.press("Enter"); actions++;
      await page.waitForLoadState();
    },
    async queue(name) {
      await page.goto(till.url + "/sessions");
      await page.getByRole("link", { name: "Exceptions" }).click(); actions++;
      if (name) { await page.getByRole("link", { name }).first().click(); actions++; }
    },
    async follow(name) { await page.getByRole("main").getByRole("link", { name }).first().click(); actions++; await page.waitForLoadState(); },
    async reads(...patterns) {
      const text = await page.getByRole("main").innerText();
      if (process.env.SHOW) console.log(text);
      for (const one of patterns) assert.match(text, one);
      assert.ok(actions <= 4, `${actions} actions`);
    },
  };
}

const cases = {
  "it is paid, but the shop says that it was not told": {
    async stage() {
      await ask("POST", "/v1/webhook-endpoints", { url: "http://127.0.0.1:9009/dead" });
      const s = await session("Amara Nwosu", 310000);
      await transfer(await account(s.id), 310000);
      await becomes(s.id, "PAID");
      await until("a delivery failed", async () => {
        const { items } = await ask("GET", "/v1/events?limit=5");
        const own = items.find((e) => e.data?.sessionId === s.id || JSON.stringify(e).includes(s.id));
        return own && (await ask("GET", `/v1/events/${own.id}/deliveries`)).items.some((d) => d.attempts?.length || d.tries?.length || d.attemptCount > 0 || /FAIL|PENDING|WAIT/i.test(d.status));
      });
    },
    async find(h) { await h.search("amara"); await h.follow("Amara Nwosu"); await h.reads(/it is paid;/, /server at 127\.0\.0\.1:9009 was told charge\.success \(try \d+\), and gave no answer: refused/); },
  },
  "I paid 4,500 and it says that I owe more": {
    async stage() { const s = await session("Bola Ade", 500000); await transfer(await account(s.id), 450000); await has(s.id, "PARTIALLY_PAID"); },
    async find(h) { await h.search("bola"); await h.follow("Bola Ade"); await h.reads(/partially paid/i, /₦4,500 of ₦5,000 is paid/); },
  },
  "I sent too much": {
    async stage() { const s = await session("Chidi Okeke", 200000); await transfer(await account(s.id), 250000); await has(s.id, "OVERPAID"); },
    async find(h) { await h.search("2500"); await h.follow("Chidi Okeke"); await h.reads(/overpaid/i, /₦500\.00/); },
  },
  "I paid after the time was over": {
    async stage() {
      const s = await session("Dupe Bello", 320000, { expiresInMinutes: 5 });
      const to = await account(s.id, { expiresInMinutes: 5 });
      await advance(20);
      await becomes(s.id, "EXPIRED");
      await transfer(to, 320000);
      await has(s.id, "PAID_LATE");
    },
    async find(h) { await h.search("dupe"); await h.follow("Dupe Bello"); await h.reads(/paid late/i, /waits for a decision/i); },
  },
  "I paid twice": {
    async stage() {
      const s = await session("Efe Ovie", 330000);
      const to = await account(s.id);
      await transfer(to, 330000);
      await becomes(s.id, "PAID");
      await transfer(to, 330000);
      await has(s.id, "DUPLICATE_PAYMENT");
    },
    async find(h) { await h.search("efe"); await h.follow("Efe Ovie"); await h.reads(/duplicate/i, /goes back by itself/i); },
  },
  "I paid, but to a wrong account": {
    async stage() { await transfer("9991234567", 340000, { senderName: "FEMI ALADE" }); },
    async find(h) {
      await until("it is listed", async () => { await page.goto(till.url + "/exceptions?queue=unmatched"); return (await page.getByRole("main").innerText()).includes("₦3,400.00"); });
      await h.queue(/unmatched|nobody/i);
      await h.reads(/₦3,400\.00/, /unmatched|no session|nobody/i);
    },
    role: "operator",
  },
  "I paid, and for minutes nothing came": {
    async stage() {
      const s = await session("Gozie Eze", 350000);
      await transfer(await account(s.id), 350000, { drop: true });
      await advance(2);
      await becomes(s.id, "PAID");
    },
    async find(h) { await h.search("gozie"); await h.follow("Gozie Eze"); await h.reads(/it is paid;/, /The bank, asked, answers that ₦3,500 came by bank transfer/); },
  },
  "it says that the bank cannot be reached": {
    async stage() {
      const s = await session("Hauwa Sani", 360000);
      await ask("PUT", "/v1/test/bank/conditions", { up: false });
      await account(s.id).catch(() => {});
      await ask("PUT", "/v1/test/bank/conditions", { up: true });
    },
    async find(h) { await h.search("hauwa"); await h.follow("Hauwa Sani"); await h.reads(/could not be reached/); },
  },
  "the link does not work any more": {
    async stage() { const s = await session("Ify Obi", 370000, { expiresInMinutes: 5 }); await advance(6); await becomes(s.id, "EXPIRED"); },
    async find(h) { await h.search("ify"); await h.follow("Ify Obi"); await h.reads(/its time is over; ₦0 of ₦3,700 is paid/); },
  },
  "the shop cancelled it": {
    async stage() { const s = await session("Jide Cole", 380000); await ask("POST", `${checkout}/${s.id}/cancel`); },
    async find(h) { await h.search("jide"); await h.follow("Jide Cole"); await h.reads(/it was cancelled; ₦0 of ₦3,800 is paid/); },
  },
  "my refund has not come": {
    async stage() {
      const s = await session("Kemi Ojo", 390000);
      await transfer(await account(s.id), 390000);
      await becomes(s.id, "PAID");
      await ask("PUT", "/v1/test/bank/conditions", { refunds: "fail" });
      const { items } = await ask("GET", `/v1/payments?sessionId=${s.id}`);
      const r = await ask("POST", "/v1/refunds", { paymentId: items[0].id, amount: 100000 });
      await until("the refund failed", async () => { await advance(0.1); return ["FAILED", "NEEDS_ATTENTION"].includes((await ask("GET", `/v1/refunds/${r.id}`)).status); });
      await ask("PUT", "/v1/test/bank/conditions", { refunds: "ok" });
    },
    async find(h) { await h.search("kemi"); await h.follow("Kemi Ojo"); await h.reads(/refund/i, /failed|needs attention/i, /₦1,000\.00/); },
  },
  "I asked for a person in the chat": {
    async stage() {
      const s = await session("Lara Musa", 400000, { mode: "chat" });
      const { phone } = await ask("POST", "/v1/test/phones", { pushName: "Lara" });
      await ask("POST", `/v1/test/phones/${phone}/messages`, { text: new URL(s.checkoutUrl).searchParams.get("text") });
      await ask("GET", `/v1/test/phones/${phone}/messages?wait=20`);
      await ask("POST", `/v1/test/phones/${phone}/messages`, { text: "9" });
    },
    async find(h) {
      await until("somebody waits", async () => { await page.goto(till.url + "/inbox"); return /lara/i.test(await page.getByRole("main").innerText()); });
      await h.follow(/lara/i);
      await h.reads(/₦4,000\.00|4,000/, /wait|person/i);
    },
  },
};

for (const [says, one] of Object.entries(cases)) {
  test(says, async () => {
    await one.stage();
    await page.goto("about:blank"); // a live part that asks without a login would be told so
    await page.context().clearCookies();
    await enter(page, till, one.role ?? "support", "/sessions");
    await one.find(hand());
    assert.deepEqual(web.faults.splice(0), []);
  });
}
