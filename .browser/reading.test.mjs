// What people read stays as they read it, whatever merchants and payers are called
// and however much there is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { enter, open, start, until } from "./till.mjs";

const checkout = "/v1/whatsapp/checkout/sessions";
let till, web;

before(async () => { till = await start(); web = await open(till); });
after(async () => { await web?.close(); await till?.stop(); });

// ends says whether what ends a sentence that is written from right to left stands where it ends.
const ends = (e) => {
  const left = (i) => { const r = document.createRange(); r.setStart(e.firstChild, i); r.setEnd(e.firstChild, i + 1); return r.getBoundingClientRect().left; };
  const last = e.textContent.length - 1;
  return left(last) < left(last - 1) && left(last - 1) < left(0);
};
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
  await page.locator(`[data-copy="${id}"]`).focus();
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber });
  await page.getByRole("region", { name: "Money that came" }).getByText("duplicate").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.dataset.copy), id);
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("a name that is written from right to left turns no number beside it round", async () => {
  const { id, checkoutUrl } = await opened({ mode: "chat", customerName: "שלמה הלוי", description: "שני ספרים.", customerPhone: "08031234567" });
  const { phone } = await till.api("POST", "/v1/test/phones", { pushName: "שלמה הלוי" });
  for (const text of [new URL(checkoutUrl).searchParams.get("text"), "9"]) await till.api("POST", `/v1/test/phones/${phone}/messages`, { text });
  const page = await web.page();
  await enter(page, till, "support", "/inbox");
  await until("the payer waits", async () => { await page.reload(); return page.getByRole("link", { name: "שלמה" }).count(); });
  const chat = await page.getByRole("link", { name: "שלמה" }).getAttribute("href");
  for (const address of ["/inbox", chat, `/sessions/${id}`]) {
    await page.goto(till.url + address);
    const order = await page.getByRole("main").evaluate((main) => { // whether each number is read from left to right
      const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT), all = [];
      for (let text; (text = texts.nextNode());) {
        const at = text.data.indexOf("+234");
        if (at < 0 || !text.parentElement.checkVisibility()) continue;
        const left = (i) => { const r = document.createRange(); r.setStart(text, i); r.setEnd(text, i + 1); return r.getBoundingClientRect().left; };
        all.push(left(at) < left(at + 4) && left(at + 4) < left(text.data.trimEnd().length - 1));
      }
      return all;
    });
    assert.ok(order.length > 0 && order.every(Boolean), `${address}: ${order}`);
    if (address !== "/inbox") assert.ok(await page.locator("dd").getByText("שני ספרים.", { exact: true }).evaluate(ends), address);
  }
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("on a phone it is told what each amount is and who paid it, and the largest is not cut off", async () => {
  const { id } = await opened({ amount: 2500000000 });
  await till.api("POST", "/v1/test/bank/transfers", { accountNumber: await account(id), amount: 2500000100, senderName: "Chidinma Okafor" });
  await until("it is paid", async () => (await till.api("GET", `${checkout}/${id}`)).status === "PAID");
  const page = await web.page({ viewport: { width: 320, height: 700 } });
  await enter(page, till, "support", `/sessions/${id}`);
  const money = page.getByRole("region", { name: "Money that came" });
  const told = await page.evaluate(() => [...document.querySelectorAll("[aria-labelledby=payments] td.money")].map((td) => getComputedStyle(td, "::before").content.replaceAll('"', "").trim() + td.textContent));
  assert.deepEqual(told, ["Amount₦25,000,001.00", "Set aside₦1.00"]);
  await money.getByText("Chidinma Okafor").waitFor({ state: "visible", timeout: 2000 });
  for (const address of [`/sessions/${id}`, `/try?session=${id}`]) {
    await page.goto(till.url + address);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("main .card")].filter((c) => c.scrollWidth > c.clientWidth).map((c) => c.innerText.slice(0, 60))), [], address);
  }
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("no word of ours is cut into pieces beside what merchants and payers call things", async () => {
  const id = (await opened({ customerName: "A".repeat(100), customerPhone: "08031234567", reference: "W".repeat(100), mode: "chat" })).checkoutUrl;
  const { phone } = await till.api("POST", "/v1/test/phones", { pushName: "W".repeat(100) });
  for (const text of [new URL(id).searchParams.get("text"), "9"]) await till.api("POST", `/v1/test/phones/${phone}/messages`, { text });
  const page = await web.page();
  await enter(page, till, "owner", "/team");
  await page.getByLabel("E-mail address").fill(`${"a".repeat(64)}@${"b".repeat(60)}.${"c".repeat(60)}.example.com`);
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("link", { name: "back to the team" }).click();
  await until("the payer waits", async () => { await page.goto(till.url + "/inbox"); return page.getByRole("link", { name: "WWW" }).count(); });
  for (const address of ["/team", "/inbox", "/sessions", "/team/audit"]) {
    await page.goto(till.url + address);
    const cut = await page.getByRole("main").evaluate((main) => { // words on two lines
      const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT), all = [];
      for (let text; (text = texts.nextNode());) {
        for (const word of text.data.matchAll(/[+\w.•]{4,16}(?!\S)/g)) {
          const r = document.createRange(); r.setStart(text, word.index); r.setEnd(text, word.index + word[0].length);
          if (text.parentElement.checkVisibility() && !/[\w.@]/.test(text.data[word.index - 1] ?? "") && new Set([...r.getClientRects()].map((one) => Math.round(one.top))).size > 1) all.push(word[0]);
        }
      }
      return all;
    });
    assert.deepEqual(cut, [], address);
  }
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("a page says whose time it shows, and on paper of which day, and prints a conversation whole", async () => {
  const { id, checkoutUrl } = await opened({ mode: "chat", customerName: "Efe Ovie" });
  const { phone } = await till.api("POST", "/v1/test/phones", { pushName: "Efe" });
  const write = (text) => till.api("POST", `/v1/test/phones/${phone}/messages`, { text });
  await write(new URL(checkoutUrl).searchParams.get("text"));
  await write("9");
  for (let n = 0; n < 12; n++) await write(`Is somebody there? ${"I wait. ".repeat(20)}`);
  const page = await web.page({ viewport: { width: 718, height: 600 } }); // a sheet of A4
  await enter(page, till, "support", `/sessions/${id}`);
  assert.match(await page.getByRole("contentinfo").innerText(), /Lagos, UTC\+1/);
  const days = () => page.evaluate(() => [...document.querySelectorAll("main time")].filter((t) => /^\d\d:/.test(t.textContent)).map((t) => getComputedStyle(t, "::before").content));
  assert.ok((await days()).length > 0 && (await days()).every((day) => day === "none"));
  await page.emulateMedia({ media: "print" });
  assert.ok((await days()).every((day) => /^"\d+ \w+ \d{4}, "$/.test(day)), `${await days()}`);
  await page.emulateMedia({ media: "screen" });
  await until("the payer waits", async () => { await page.goto(till.url + "/inbox"); return page.getByRole("link", { name: "Efe" }).count(); });
  await page.getByRole("link", { name: "Efe" }).click();
  await page.locator("main .chat").first().waitFor();
  await page.emulateMedia({ media: "print" });
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("main .follow, main .chat")].filter((e) => e.scrollHeight > e.clientHeight + 1).map((e) => e.className)), []);
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("the pretend phone is read in Arabic, on a phone held sideways and in colours of the reader's own", async () => {
  const { phone } = await till.api("POST", "/v1/test/phones", { pushName: "محمد عبد الله" });
  await till.api("POST", `/v1/test/phones/${phone}/messages`, { text: "مرحبا." });
  const page = await web.page({ viewport: { width: 667, height: 375 }, forcedColors: "active" });
  await page.goto(`${till.url}/phone`);
  await page.getByLabel("You hold the phone of").selectOption(phone);
  const words = page.getByLabel("Messages", { exact: true }).getByText("مرحبا.");
  assert.ok(await words.evaluate(ends));
  assert.equal(await page.locator("#phones option:checked").innerText(), `\u2068محمد عبد الله\u2069 · ${phone}`);
  assert.deepEqual(await page.locator("#log li.mine").evaluate((li) => [getComputedStyle(li).borderTopStyle, getComputedStyle(li, "::before").content]), ["solid", "none"]);
  for (const size of [{ width: 667, height: 375 }, { width: 320, height: 256 }, { width: 1280, height: 300 }]) {
    await page.setViewportSize(size);
    const [log, compose] = await page.evaluate(() => ["log", "compose"].map((id) => { const r = document.getElementById(id).getBoundingClientRect(); return { top: r.top, height: r.height, bottom: r.bottom }; }));
    assert.ok(log.height >= 80 && log.bottom <= compose.top + 1, `${size.width}x${size.height}: ${JSON.stringify([log, compose])}`);
  }
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("letters as large as a reader has set them fit a phone, and colours of their own tell messages and pages apart", async () => {
  const { id, checkoutUrl } = await opened({ mode: "chat", amount: 2500000000 });
  const { phone } = await till.api("POST", "/v1/test/phones", {});
  await till.api("POST", `/v1/test/phones/${phone}/messages`, { text: new URL(checkoutUrl).searchParams.get("text") });
  await till.api("GET", `/v1/test/phones/${phone}/messages?wait=20`);
  const hook = await till.api("POST", "/v1/webhook-endpoints", { url: "http://127.0.0.1:9009/hook" });
  const page = await web.page({ viewport: { width: 360, height: 740 }, forcedColors: "active" });
  await enter(page, till, "owner");
  const browser = await page.context().newCDPSession(page);
  await browser.send("Page.enable");
  const wrong = [];
  for (const address of ["/", "/settlements", `/sessions/${id}`, `/sessions/${id}/replay`, `/developers/webhooks/${hook.id}`, "/go-live", "/phone", "/docs/errors", "/docs/errors/rail_timeout", "/docs/snippets"]) {
    await page.goto(till.url + address);
    await browser.send("Page.setFontSizes", { fontSizes: { standard: 32, fixed: 26 } });
    await until(`${address} has large letters`, () => page.evaluate(() => getComputedStyle(document.body).fontSize === "32px"));
    await page.evaluate(() => document.querySelector(".me")?.setAttribute("open", ""));
    const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector(".menu")?.getBoundingClientRect().right ?? 0));
    if (wide > 360) wrong.push(`${address} is ${wide} px wide`);
  }
  assert.deepEqual(wrong, []);
  await page.goto(`${till.url}/sessions/${id}/replay`);
  const edge = (e) => getComputedStyle(e).borderTopStyle;
  assert.equal(await page.locator(".bubble").first().evaluate(edge), "solid");
  const under = (name) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).evaluate((e) => getComputedStyle(e).borderBottomColor);
  assert.notEqual(await under("Sessions"), await under("Inbox"));
  assert.equal(await under("Inbox"), "rgb(255, 255, 255)"); // as the ground
  assert.deepEqual(web.faults, []);
  await page.context().close();
});

test("why a form was refused is before the eyes, however far down its page the form stands", async () => {
  for (const javaScriptEnabled of [true, false]) {
    const page = await web.page({ javaScriptEnabled, viewport: { width: 360, height: 740 } });
    await enter(page, till, "owner", "/go-live");
    await page.goto(`${till.url}/go-live`);
    await page.getByLabel("Legal name").fill("Ada Stores Limited");
    await page.getByLabel("Their phone").fill("none");
    await page.getByRole("button", { name: "Hand it in" }).click();
    const why = page.getByRole("alert").filter({ hasText: "must be a phone number" });
    await why.waitFor();
    await until("it is in view", () => why.evaluate((e) => { const r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight && e === document.activeElement; }));
    assert.equal(await page.getByLabel("Legal name").inputValue(), "Ada Stores Limited");
    await page.context().close();
  }
  assert.deepEqual(web.faults.splice(0).filter((f) => !/400/.test(f)), []);
});

test("what was written in a form is shown where the login ended meanwhile or the page is of elsewhere", async () => {
  const { id } = await opened();
  const page = await web.page();
  await enter(page, till, "support", `/sessions/${id}`);
  const keep = async (words) => {
    await page.getByLabel("Note for your colleagues").fill(words);
    return () => page.getByRole("button", { name: "Keep the note" }).click();
  };
  const send = await keep("The payer called;\nit was their sister's account.");
  await page.context().clearCookies();
  await send();
  await page.getByText("your login had ended").waitFor();
  await page.getByText("it was their sister's account.").waitFor();
  await page.getByRole("button", { name: "Enter as support" }).click();
  await page.waitForURL(`${till.url}/sessions/${id}`);
  await page.goto("about:blank"); // a live part that asks without a login would be told so
  await page.context().clearCookies();
  await enter(page, till, "owner", "/go-live");
  const all = { "Legal name": "Ada Stores Limited", "Registration number (RC or BN)": "RC 1234567", Address: "1 Broad Street", "Whom to ask": "Ada Obi", "Their phone": "08031234567", Website: "ada.example.com" };
  for (const [label, words] of Object.entries(all)) await page.getByLabel(label).fill(words);
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Hand it in" }).click();
  await page.getByText("your login had ended").waitFor();
  assert.deepEqual(await page.locator(".reply code").allInnerTexts(), Object.values(all));
  await enter(page, till, "support", `/sessions/${id}`);
  const again = await keep("She sends the rest today.");
  const other = await page.context().newPage();
  await other.goto(`${till.url}/`);
  await other.locator(".me summary").click();
  await other.getByLabel("Environment").selectOption("live");
  await other.getByRole("button", { name: "Look there" }).click();
  await other.waitForLoadState();
  await again();
  await page.getByText("Nothing was done").waitFor();
  await page.getByText("She sends the rest today.").waitFor();
  assert.deepEqual(web.faults.splice(0), []);
  await page.context().close();
});
